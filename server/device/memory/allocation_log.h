// A record of all changes of a memory heap's books, as text: a change is a line, in the order in
// which they happened, so that a heap that makes them again is in the same state
// (allocation_replay.h).
//
//   opserve-allocation-log 1
//   region ADDRESS BYTES REQUEST         a region came; a block of it was lent
//   retired|idle|merged REQUEST          a block was lent: found among those
//   tenant LENDING TENANT                the bytes of a lent block belong to this tenant
//   return|leave LENDING                 it came back, or left its stream's order
//   join LENDING STREAM                  it is used in this stream's order again
//   stream_idle|aborted STREAM
//   remove ADDRESS                       the region went
//   forget                               all regions were lost
//   state RESERVED ALLOCATED REQUESTED IDLE RETIRED LARGEST MERGES
//                                        the sums at this point
//   full                                 the log had no room for more
//
// REQUEST: requested, least, class and most bytes, stream, tenant. Lendings are numbered from 1 on
// in the order of their lines, streams from 1 on as they come up (0: none).
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/device/memory/memory_region.h"

namespace opserve::server {

inline constexpr absl::string_view kAllocationLogHeader = "opserve-allocation-log 1";

// Not thread-safe.
class AllocationLog {
 public:
  // Begins a log in a new file that only this user can read, in place of an older one. Takes at
  // most `max_bytes`, then it ends. kPermissionDenied, kNotFound, ...: why that cannot be.
  static absl::StatusOr<std::unique_ptr<AllocationLog>> Create(const std::string& path,
                                                               uint64_t max_bytes = uint64_t{256}
                                                                                    << 20);

  // Adds a line.
  void Write(absl::string_view line);
  // `source`: "region ADDRESS BYTES", "retired", "idle" or "merged".
  void WriteLending(absl::string_view source, const BlockRequest& request);

  // The number of a stream; the one that it had before, if it had one.
  uint64_t NumberOf(aclrtStream stream);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  AllocationLog(std::FILE* file, uint64_t max_bytes) : file_(file), left_bytes_(max_bytes) {}

  std::unique_ptr<std::FILE, Close> file_;  // null: it is full, or cannot be written
  uint64_t left_bytes_;
  absl::flat_hash_map<aclrtStream, uint64_t> streams_;
};

}  // namespace opserve::server
