// A part of a file in memory, mapped into the daemon.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/shared_memory/fault_guard.h"

namespace opserve::server {

// Which part of a file, in bytes.
struct SharedRegionSpec {
  uint64_t offset = 0;  // a multiple of the page size, unless the file's owner may cut it off
  uint64_t size = 0;    // at least 1
  bool read_only = false;
};

// Mapped until it is destroyed. Thread-safe.
class SharedMapping {
 public:
  static uint64_t PageBytes();

  // Maps a part of the file `fd`, which stays the caller's. `may_shrink`: the file's owner may cut
  // it off at any time. Missing bytes read as zeros then (FaultGuard).
  //
  // kPermissionDenied (reason "forbidden"): it may not be read, or written to.
  // kResourceExhausted: there is no room for the mapping.
  // kInvalidArgument (reason "shm_invalid"): else.
  static absl::StatusOr<std::shared_ptr<const SharedMapping>> Create(int fd,
                                                                     const SharedRegionSpec& spec,
                                                                     bool may_shrink);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  char* data() const { return data_; }  // the part's first byte
  // All that is mapped, whole pages: the part, and perhaps bytes before and behind it.
  char* begin() const { return begin_; }
  uint64_t bytes() const { return bytes_; }

  // Whether kernels may use the part's bytes [offset, offset + size) where they are, as far as
  // aclnn asks: their alignment, and room behind them that is mapped as well.
  bool FitsInPlace(uint64_t offset, uint64_t size) const;

  // Whether nobody has found one of the part's first `bytes` bytes missing.
  bool IsIntact(uint64_t bytes) const;

 private:
  SharedMapping(char* begin, uint64_t bytes, char* data)
      : begin_(begin), bytes_(bytes), data_(data) {}

  char* const begin_;
  const uint64_t bytes_;
  char* const data_;
  std::optional<FaultGuard> guard_;  // none: it cannot shrink
};

}  // namespace opserve::server
