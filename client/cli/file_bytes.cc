#include "client/cli/file_bytes.h"

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
  if (error || !std::filesystem::is_regular_file(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", error ? error.message() : "not a regular file"));
  }
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return absl::ErrnoToStatus(errno, path);

  const uint64_t rest = file_bytes - std::min(offset, file_bytes);
  if (size == UINT64_MAX) size = rest;
  if (size > rest) return absl::InvalidArgumentError(absl::StrCat(path, ": cut off"));
  OPSERVE_ASSIGN_OR_RETURN(OwnedBytes bytes, OwnedBytes::Allocate(size));
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(bytes.owner.get()), static_cast<std::streamsize>(size));
  if (!file) return absl::InvalidArgumentError(absl::StrCat(path, ": cut off"));
  return bytes;
}

}  // namespace opserve::cli
