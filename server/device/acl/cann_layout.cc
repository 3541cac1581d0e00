#include "server/device/acl/cann_layout.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

constexpr char kFromEnvironment[] = "cann";
constexpr std::array<const char*, 2> kHomeVariables = {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"};
constexpr std::array<const char*, 2> kDefaultHomes = {"/usr/local/Ascend/cann",
                                                      "/usr/local/Ascend/ascend-toolkit/latest"};
constexpr char kDriver[] = "/usr/local/Ascend/driver/lib64";
// Newer installations have both names, of which the first is to stay.
constexpr std::array<const char*, 2> kRuntimes = {"libacl_rt.so", "libascendcl.so"};
constexpr char kCustom[] = "libcust_opapi.so";
constexpr char kCustomInPackage[] = "op_api/lib/libcust_opapi.so";
// Of split packages; then the one library of those before.
constexpr std::array<const char*, 7> kOperatorLibraries = {
    "libopapi_math.so", "libopapi_nn.so",     "libopapi_cv.so", "libopapi_transformer.so",
    "libopapi_oam.so",  "libopapi_legacy.so", "libopapi.so"};

#if defined(__aarch64__)
constexpr char kBuiltIn[] = "built-in/op_impl/ai_core/tbe/op_api/lib/linux/aarch64/libopapi.so";
#else
constexpr char kBuiltIn[] = "built-in/op_impl/ai_core/tbe/op_api/lib/linux/x86_64/libopapi.so";
#endif

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Whether the library is there under that name, and not as a link to another one of `names` beside
// it: one file has one name here, so that nothing is loaded and listed twice.
bool Holds(const fs::path& directory, const char* name, absl::Span<const char* const> names) {
  if (!Exists(directory / name)) return false;
  std::error_code no_link;
  const fs::path target = fs::read_symlink(directory / name, no_link);
  // A link to another directory is the only name of its file here.
  if (no_link || target.has_parent_path() || target == name) return true;
  return std::find(names.begin(), names.end(), target.string()) == names.end();
}

std::string FirstOf(const fs::path& directory, absl::Span<const char* const> names) {
  for (const char* name : names) {
    if (Holds(directory, name, names)) return (directory / name).string();
  }
  return "";
}

absl::StatusOr<fs::path> DirectoryFromEnvironment(EnvironmentVariable environment) {
  for (const char* variable : kHomeVariables) {
    const char* value = environment(variable);
    if (value != nullptr && *value != '\0') return fs::path(value);
  }
  for (const char* home : kDefaultHomes) {
    if (Exists(home)) return fs::path(home);
  }
  return absl::NotFoundError(
      absl::StrCat("no CANN: neither ", absl::StrJoin(kHomeVariables, " nor "),
                   " is set, and there is no ", absl::StrJoin(kDefaultHomes, " or "),
                   "; install the CANN toolkit and run its set_env.sh, or name its directory with "
                   "--acl_library_dir"));
}

// The vendors that the packages' list names, the first first.
std::vector<std::string> ListedVendors(const fs::path& vendors) {
  std::ifstream file(vendors / "config.ini");
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
    // A line "load_priority=a,b", as the vendor's installer writes it.
    if (absl::StripAsciiWhitespace(entry.first) != "load_priority") continue;
    std::vector<std::string> names;
    for (absl::string_view name : absl::StrSplit(entry.second, ',')) {
      name = absl::StripAsciiWhitespace(name);
      if (!name.empty()) names.emplace_back(name);
    }
    return names;
  }
  return {};
}

// Finds the custom packages' libraries.
void AddCustomPackages(EnvironmentVariable environment, CannLayout* layout) {
  const char* elsewhere = environment("ASCEND_CUSTOM_OPP_PATH");
  for (absl::string_view package :
       absl::StrSplit(elsewhere == nullptr ? "" : elsewhere, ':', absl::SkipEmpty())) {
    const fs::path library = fs::path(std::string(package)) / kCustomInPackage;
    if (Exists(library)) {
      layout->operators.push_back(library.string());
    } else {
      layout->oddities.push_back(absl::StrCat("ASCEND_CUSTOM_OPP_PATH names ", package,
                                              ", which has no ", kCustomInPackage));
    }
  }
  if (layout->opp.empty()) return;
  const fs::path vendors = fs::path(layout->opp) / "vendors";
  const std::vector<std::string> listed = ListedVendors(vendors);
  // In the list's order, which is the priority.
  for (const std::string& vendor : listed) {
    const fs::path library = vendors / vendor / kCustomInPackage;
    if (Exists(library)) layout->operators.push_back(library.string());
  }
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(vendors, ignored)) {
    const std::string vendor = entry.path().filename().string();
    const bool is_listed = std::find(listed.begin(), listed.end(), vendor) != listed.end();
    if (is_listed || !Exists(entry.path() / kCustomInPackage)) continue;
    layout->oddities.push_back(absl::StrCat("the operator package ", vendor, " in ",
                                            vendors.string(),
                                            " is not in load_priority of its config.ini, so "
                                            "nothing of it is used"));
  }
}

}  // namespace

absl::StatusOr<CannLayout> FindCann(const std::string& where, EnvironmentVariable environment) {
  fs::path directory = where;
  if (where == kFromEnvironment) {
    OPSERVE_ASSIGN_OR_RETURN(directory, DirectoryFromEnvironment(environment));
  }
  directory = fs::path(directory).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();  // "lib64/"
  if (directory.filename() == "devlib") {
    return absl::NotFoundError(absl::StrCat(
        directory.string(), " has stubs to link with, not the libraries; they are in its lib64"));
  }
  CannLayout layout;
  layout.runtime = FirstOf(directory, kRuntimes);
  if (layout.runtime.empty()) {
    // The path of an installation instead of its lib64.
    layout.runtime = FirstOf(directory / "lib64", kRuntimes);
    if (!layout.runtime.empty()) directory /= "lib64";
  }
  if (layout.runtime.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no ", absl::StrJoin(kRuntimes, " or "), " in ", directory.string(), " or its lib64",
        "; name an installation of CANN (toolkit or runtime package) with --acl_library_dir, or "
        "leave it empty for the host CANN"));
  }
  layout.library_dir = directory.string();
  layout.nnopbase = FirstOf(directory, std::array{"libnnopbase.so"});
  if (layout.nnopbase.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no libnnopbase.so in ", layout.library_dir,
                     "; it comes with the CANN toolkit, and not with the runtime package alone"));
  }
  layout.dependency_dirs = {layout.library_dir, absl::StrCat(kDriver, "/driver"),
                            absl::StrCat(kDriver, "/common"), kDriver};

  // A directory that has everything, as the host CANN's.
  if (std::string own = FirstOf(directory, std::array{kCustom}); !own.empty()) {
    layout.operators.push_back(std::move(own));
  } else {
    if (directory.filename() == "lib64") layout.home = directory.parent_path().string();
    if (const char* opp = environment("ASCEND_OPP_PATH"); opp != nullptr && *opp != '\0') {
      layout.opp = opp;
    } else if (Exists(fs::path(layout.home) / "opp")) {
      layout.opp = (fs::path(layout.home) / "opp").string();
    }
    AddCustomPackages(environment, &layout);
  }
  const size_t custom = layout.operators.size();
  // After the custom packages, so that their operators win.
  for (const char* name : kOperatorLibraries) {
    if (!Holds(directory, name, kOperatorLibraries)) continue;
    layout.operators.push_back((directory / name).string());
  }
  // Some installations have the library among the operator packages alone.
  if (layout.operators.size() == custom && Exists(fs::path(layout.opp) / kBuiltIn)) {
    layout.operators.push_back((fs::path(layout.opp) / kBuiltIn).string());
  }
  if (layout.operators.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no operator library (libopapi.so, libopapi_nn.so) in ", layout.library_dir,
                     layout.opp.empty() ? "" : absl::StrCat(" or ", layout.opp),
                     "; install the operator package (ops or kernels) of this machine's NPU"));
  }
  return layout;
}

}  // namespace opserve::server
