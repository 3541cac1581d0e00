// Makes the changes that an allocation log records once more, on books of their own.
#pragma once

#include <cstdint>
#include <istream>

#include "absl/status/statusor.h"
#include "server/device/memory/memory_heap.h"

namespace opserve::server {

struct AllocationReplay {
  MemoryHeap::Bytes bytes;  // at the end
  uint64_t largest_idle_bytes = 0;
  uint64_t merges = 0;
  uint64_t lines = 0;
  uint64_t lendings = 0;
  uint64_t states = 0;  // sums of the log that were compared, and are the same
  bool is_full = false;
};

// Touches no device. kInvalidArgument: it is no such log; names the line.  kDataLoss: the sums are
// not those of the log, or a block is not where the log has it; likewise.
absl::StatusOr<AllocationReplay> ReplayAllocationLog(std::istream& log);

}  // namespace opserve::server
