#include "client/cli/arrays/file_bytes.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/tensor_layout.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {

absl::StatusOr<OwnedBytes> OwnedBytes::Allocate(uint64_t bytes) {
  OPSERVE_ASSIGN_OR_RETURN(auto memory, AllocateBytes(bytes));
  return OwnedBytes{.owner = std::move(memory), .size = bytes};
}

absl::StatusOr<OwnedBytes> ReadFileBytes(const std::string& path, uint64_t offset, uint64_t size) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  }
  // Devices and pipes have no size to go by.
  if (error || !std::filesystem::is_regular_file(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", error ? error.message() : "not a regular file"));
  }
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return absl::ErrnoToStatus(errno, path);

  // An offset behind the end leaves nothing.
  const uint64_t rest = file_bytes - std::min(offset, file_bytes);
  if (size == UINT64_MAX) size = rest;
  if (size > rest) return absl::InvalidArgumentError(absl::StrCat(path, ": cut off"));
  OPSERVE_ASSIGN_OR_RETURN(OwnedBytes bytes, OwnedBytes::Allocate(size));
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(bytes.owner.get()), static_cast<std::streamsize>(size));
  // The file became shorter after its size was read.
  if (!file) return absl::InvalidArgumentError(absl::StrCat(path, ": cut off"));
  return bytes;
}

absl::StatusOr<OwnedBytes> ReadStreamBytes(std::istream& stream, uint64_t limit) {
  constexpr uint64_t kFirstBytes = 1 << 20;
  OwnedBytes bytes;
  OPSERVE_ASSIGN_OR_RETURN(OwnedBytes memory, OwnedBytes::Allocate(kFirstBytes));
  for (;;) {
    stream.read(reinterpret_cast<char*>(memory.owner.get()) + bytes.size,
                static_cast<std::streamsize>(memory.size - bytes.size));
    bytes.size += stream.gcount();
    // In each round, so that an endless stream ends here and not with the memory.
    if (bytes.size > limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("standard input: more than ", limit, " bytes; give a file instead"));
    }
    if (stream.bad()) return absl::InvalidArgumentError("standard input: cannot be read");
    if (bytes.size < memory.size) break;  // the end
    // Twice as much each time: the bytes of a stream are copied about once more.
    OPSERVE_ASSIGN_OR_RETURN(OwnedBytes larger, OwnedBytes::Allocate(2 * memory.size));
    std::copy_n(memory.owner.get(), bytes.size, larger.owner.get());
    memory = std::move(larger);
  }
  bytes.owner = std::move(memory.owner);
  return bytes;
}

}  // namespace opserve::cli
