// Bytes of files, to be read as arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace opserve::cli {

// Bytes that live as long as a copy of `owner`, aligned for elements of any dtype.
struct OwnedBytes {
  std::shared_ptr<std::byte[]> owner = {};
  size_t size = 0;

  // `bytes` of them, not initialised. kResourceExhausted: there is no such memory.
  static absl::StatusOr<OwnedBytes> Allocate(uint64_t bytes);

  absl::Span<const std::byte> span() const { return {owner.get(), size}; }
};

// `size` bytes from `offset` on, or all that follow it.
// kInvalidArgument: no regular file, or it has fewer bytes. kNotFound, kPermissionDenied, ...: it
// cannot be read. Messages begin with the path.
absl::StatusOr<OwnedBytes> ReadFileBytes(const std::string& path, uint64_t offset = 0,
                                         uint64_t size = UINT64_MAX);

// Limit on the contents of a stream that is read to its end.
inline constexpr uint64_t kMaxStreamBytes = uint64_t{16} << 30;

// All bytes up to the stream's end.
// kInvalidArgument: more than `limit`, or reading failed. Messages begin with "standard input".
absl::StatusOr<OwnedBytes> ReadStreamBytes(std::istream& stream, uint64_t limit = kMaxStreamBytes);

}  // namespace opserve::cli
