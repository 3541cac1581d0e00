#include "server/program/operator_pack.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/catalog/catalog.h"
#include "ops/catalog/description_text.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/library_loader.h"
#include "server/device/trusted_file.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

constexpr char kExtension[] = ".textproto";
// A text of a hundred operators has 100 KB.
constexpr size_t kMaxTextBytes = 1 << 20;
constexpr size_t kMaxNameBytes = 64;
// Of a directory; each has an operator at least, of which there may be fewer.
constexpr size_t kMaxFiles = 4096;

// In the order of the enum, by which PackRefusalName looks them up.
constexpr std::pair<PackRefusal, absl::string_view> kRefusalNames[] = {
    {PackRefusal::kNone, "none"},
    {PackRefusal::kLibrary, "library"},
    {PackRefusal::kUnsupported, "unsupported"},
    {PackRefusal::kFailed, "failed"},
    {PackRefusal::kWrong, "wrong"},
    {PackRefusal::kCrash, "crash"},
    {PackRefusal::kHang, "hang"},
    {PackRefusal::kTrial, "trial"},
};

absl::Status Wrong(absl::string_view path, int line, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", problem));
}

// Collects packs. Each operator and each pack has a name of its own.
class PackReader {
 public:
  explicit PackReader(size_t max_operators) : max_operators_(max_operators) {}

  absl::Status Add(const std::string& path) {
    std::error_code error;
    // A file alone is read by way of its folder as well, as the folder's rights decide.
    if (!fs::is_directory(path, error)) {
      const fs::path file = path;
      const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
      OPSERVE_ASSIGN_OR_RETURN(const TrustedFolder opened, TrustedFolder::Open(folder));
      return AddFile(opened, folder, file.filename().string());
    }
    OPSERVE_ASSIGN_OR_RETURN(const TrustedFolder opened, TrustedFolder::Open(path));
    OPSERVE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             opened.List(kExtension, kMaxFiles));
    // The path is wrong, most likely, and the daemon would lack the operators without a word.
    if (names.empty()) {
      return absl::NotFoundError(absl::StrCat(path, ": has no file *", kExtension));
    }
    for (const std::string& name : names) {
      OPSERVE_RETURN_IF_ERROR(AddFile(opened, path, name));
    }
    return absl::OkStatus();
  }

  std::vector<OperatorPack> Take() { return std::move(packs_); }

 private:
  absl::Status AddFile(const TrustedFolder& folder, const std::string& folder_path,
                       const std::string& file) {
    OperatorPack pack;
    pack.path = folder.PathOf(file);
    pack.folder = folder_path;
    pack.name = fs::path(file).stem().string();
    // A word of metrics and messages.
    const bool is_word = std::all_of(pack.name.begin(), pack.name.end(), [](char c) {
      return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
    });
    if (!is_word || pack.name.empty() || pack.name.size() > kMaxNameBytes) {
      return absl::InvalidArgumentError(absl::StrCat(absl::CHexEscape(pack.path),
                                                     ": its name must be letters, digits, '_', '-' "
                                                     "and '.', at most ",
                                                     kMaxNameBytes,
                                                     " of them, before the extension"));
    }
    const auto [other, is_new] = packs_by_name_.emplace(pack.name, pack.path);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(pack.path, ": another pack has the name ", pack.name, ": ", other->second));
    }
    OPSERVE_ASSIGN_OR_RETURN(const std::string text, folder.ReadFile(file, kMaxTextBytes));
    OPSERVE_ASSIGN_OR_RETURN(catalog::Descriptions descriptions,
                             catalog::ReadDescriptions(text, pack.path));
    pack.library = descriptions.library;
    pack.library_line = descriptions.library_line;
    // The rights of this folder were checked, and only those.
    if (absl::StrContains(pack.library, '/') || pack.library == "." || pack.library == "..") {
      return Wrong(pack.path, pack.library_line,
                   absl::StrCat("library: \"", absl::CHexEscape(pack.library),
                                "\" must be the name of a file beside this text"));
    }
    if (descriptions.operators.empty()) return Wrong(pack.path, 1, "has no operator");
    for (catalog::DescribedOperator& described : descriptions.operators) {
      OPSERVE_RETURN_IF_ERROR(AddOperator(std::move(described), &pack));
    }
    packs_.push_back(std::move(pack));
    return absl::OkStatus();
  }

  absl::Status AddOperator(catalog::DescribedOperator described, OperatorPack* pack) {
    const std::string& name = described.descriptor.name;
    // A pack must not change the meaning of a name on which clients of any daemon rely.
    if (catalog::FindOperator(name) != nullptr) {
      return Wrong(pack->path, described.line,
                   absl::StrCat(name, ": is the name of a built-in operator"));
    }
    const std::string place = absl::StrCat(pack->path, ":", described.line);
    const auto [other, is_new] = operators_by_name_.emplace(name, place);
    if (!is_new) {
      return Wrong(pack->path, described.line,
                   absl::StrCat(name, ": is described at ", other->second, ", too"));
    }
    // The operator is counted already.
    if (operators_by_name_.size() > max_operators_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(place, ": ", name, ": is one operator more than the ", max_operators_,
                       " that --max_pack_operators allows"));
    }
    pack->operators.push_back(
        {std::make_shared<const catalog::OperatorDescriptor>(std::move(described.descriptor)),
         described.line});
    return absl::OkStatus();
  }

  const size_t max_operators_;
  std::vector<OperatorPack> packs_;
  std::map<std::string, std::string> packs_by_name_;      // to paths
  std::map<std::string, std::string> operators_by_name_;  // to places
};

// Loads the pack's library from the very file that was found to have the right rights.
absl::StatusOr<void*> OpenPackLibrary(const AclLibrary& acl, const OperatorPack& pack) {
  OPSERVE_ASSIGN_OR_RETURN(const TrustedFolder folder, TrustedFolder::Open(pack.folder));
  OPSERVE_ASSIGN_OR_RETURN(const int file, folder.OpenFile(pack.library));
  absl::StatusOr<void*> handle =
      LoadPrivateLibrary(file, folder.PathOf(pack.library), acl.layout().dependency_dirs);
  if (!handle.ok()) close(file);
  return handle;
}

}  // namespace

absl::string_view PackRefusalName(PackRefusal refusal) {
  return kRefusalNames[static_cast<size_t>(refusal)].second;
}

PackRefusal PackRefusalOfName(absl::string_view name) {
  // The name comes from the output of a child process, which may be anything.
  for (const auto& [refusal, text] : kRefusalNames) {
    if (text == name) return refusal;
  }
  return PackRefusal::kTrial;
}

void OperatorPack::Refuse(PackRefusal why, std::string because) {
  refusal = why;
  problem = std::move(because);
}

std::string OperatorPack::PlaceOf(const PackOperator& op) const {
  return absl::StrCat(path, ":", op.line, ": ");
}

absl::StatusOr<std::vector<OperatorPack>> ReadOperatorPacks(absl::Span<const std::string> paths,
                                                            size_t max_operators) {
  PackReader reader(max_operators);
  for (const std::string& path : paths) OPSERVE_RETURN_IF_ERROR(reader.Add(path));
  return reader.Take();
}

absl::StatusOr<std::vector<AclLibrary::Operator>> LoadPack(const AclLibrary& acl,
                                                           const OperatorPack& pack) {
  void* library = nullptr;
  if (!pack.library.empty()) {
    absl::StatusOr<void*> opened = OpenPackLibrary(acl, pack);
    if (!opened.ok()) {
      return absl::Status(opened.status().code(),
                          absl::StrCat(pack.path, ":", pack.library_line,
                                       ": library: ", opened.status().message()));
    }
    library = *opened;
  }
  std::vector<AclLibrary::Operator> functions;
  for (const PackOperator& op : pack.operators) {
    const char* const stage_one = op.descriptor->stage_one.c_str();
    const char* const stage_two = op.descriptor->stage_two.c_str();
    // Without a library of its own a pack describes functions of the vendor's libraries.
    AclLibrary::Operator found = acl.FindOperator(stage_one, stage_two);
    if (library != nullptr) {
      found = {dlsym(library, stage_one), dlsym(library, stage_two),
               absl::StrCat(pack.folder, "/", pack.library)};
    }
    if (found.stage_one == nullptr || found.stage_two == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          pack.PlaceOf(op), op.descriptor->name,
          ": function: ", library != nullptr ? pack.library : "the libraries of --acl_library_dir",
          " lacks ", found.stage_one == nullptr ? stage_one : stage_two));
    }
    functions.push_back(std::move(found));
  }
  return functions;
}

void LogPack(const OperatorPack& pack) {
  std::vector<std::string> operators;
  for (const PackOperator& op : pack.operators) operators.push_back(op.descriptor->name);
  if (pack.is_refused()) {
    LogError("operator_pack_refused", {{"pack", pack.name},
                                       {"reason", std::string(PackRefusalName(pack.refusal))},
                                       {"error", pack.problem},
                                       {"operators", operators}});
  } else {
    LogInfo("operator_pack", {{"pack", pack.name}, {"path", pack.path}, {"operators", operators}});
  }
}

}  // namespace opserve::server
