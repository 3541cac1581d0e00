#include "client/cli/arrays/npz.h"

#include <zip.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

constexpr char kMemberSuffix[] = ".npy";

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

absl::StatusOr<Archive> OpenArchive(const std::string& path) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive != nullptr) return archive;
  // No archive was opened that could be asked for its error: the text is made from the code.
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (code == ZIP_ER_NOENT) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", text));
}

// Deflate makes no byte of more than this.
constexpr uint64_t kMaxExpansion = 1032;

absl::StatusOr<OwnedBytes> ReadMember(zip_t* archive, const std::string& file_name) {
  zip_stat_t stat;
  if (zip_stat(archive, file_name.c_str(), 0, &stat) != 0) {
    return absl::InvalidArgumentError(zip_strerror(archive));
  }
  // Memory is not taken on the word of a file that cannot keep it.
  if (stat.size / kMaxExpansion > stat.comp_size + 1) {
    return absl::InvalidArgumentError(absl::StrCat("claims ", stat.size, " bytes in ",
                                                   stat.comp_size, ", more than there can be"));
  }
  OPSERVE_ASSIGN_OR_RETURN(OwnedBytes bytes, OwnedBytes::Allocate(stat.size));
  const Member member(zip_fopen(archive, file_name.c_str(), 0));
  if (member == nullptr) return absl::InvalidArgumentError(zip_strerror(archive));
  // At the end the library compares the checksum, so one more byte is asked for.
  std::byte beyond{};
  if (zip_fread(member.get(), bytes.owner.get(), stat.size) !=
          static_cast<zip_int64_t>(stat.size) ||
      zip_fread(member.get(), &beyond, 1) != 0) {
    return absl::InvalidArgumentError("is damaged");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListNpz(const std::string& path) {
  OPSERVE_ASSIGN_OR_RETURN(const Archive archive, OpenArchive(path));
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    const char* file_name = zip_get_name(archive.get(), static_cast<zip_uint64_t>(i), 0);
    absl::string_view name = file_name != nullptr ? file_name : "";
    if (absl::ConsumeSuffix(&name, kMemberSuffix)) names.emplace_back(name);
  }
  return names;
}

absl::StatusOr<Tensor> ReadNpz(const std::string& path, const std::string& name,
                               NpyReading reading) {
  OPSERVE_ASSIGN_OR_RETURN(const Archive archive, OpenArchive(path));
  const std::string file_name = absl::StrCat(name, kMemberSuffix);
  if (zip_name_locate(archive.get(), file_name.c_str(), 0) < 0) {
    return absl::NotFoundError(absl::StrCat(path, ": no array \"", name, "\""));
  }
  const absl::StatusOr<OwnedBytes> bytes = ReadMember(archive.get(), file_name);
  absl::StatusOr<Tensor> tensor = bytes.ok() ? ParseNpy(*bytes, reading) : bytes.status();
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(),
                      absl::StrCat(path, ": ", file_name, ": ", tensor.status().message()));
}

}  // namespace opserve::cli
