// The books of a device memory pool: regions, their blocks, and the users each block is free for.
//
// Free blocks that lie side by side are one block if the same streams may have them and the same
// tenant used them. Idle ones of different tenants stay apart, because a merged one would have to
// be scrubbed for both; they merge when a request needs them together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/device/memory/allocation_log.h"
#include "server/device/memory/free_blocks.h"
#include "server/device/memory/memory_region.h"

namespace opserve::server {

// Calls no ACL function. Not thread-safe. Blocks and regions are the heap's; a pointer to a lent
// block is valid until its return, any other until the heap changes.
class MemoryHeap {
 public:
  // Sums over all blocks. reserved = allocated + idle + retired.
  struct Bytes {
    uint64_t reserved = 0;
    uint64_t allocated = 0;
    uint64_t requested = 0;  // of the allocated
    uint64_t idle = 0;
    uint64_t retired = 0;
  };

  // A block that was lent, and its former state: `tenant` is still the former one.
  struct Lent {
    MemoryBlock* block = nullptr;
    aclrtStream last_stream = nullptr;
    bool is_split = false;  // from a larger block
  };

  // `log`, if not null, gets every change.
  explicit MemoryHeap(std::unique_ptr<AllocationLog> log = nullptr) : log_(std::move(log)) {}
  MemoryHeap(const MemoryHeap&) = delete;
  MemoryHeap& operator=(const MemoryHeap&) = delete;

  // Books a region of `bytes` bytes, a multiple of kBlockAlignment, at the first aligned address of
  // `allocation`, and lends a block of it. `is_poisoned`: as of a block.
  Lent AddRegion(void* allocation, size_t bytes, const BlockRequest& request,
                 bool is_poisoned = false);

  // The first aligned address of an allocation.
  static char* FirstBlockOf(void* allocation);

  // Each lends a fitting block, if there is one: of those retired by the request's stream; of the
  // idle ones; of idle neighbours merged to that end.
  Lent TakeRetired(const BlockRequest& request);
  Lent TakeIdle(const BlockRequest& request);
  Lent TakeMerged(const BlockRequest& request);

  // The bytes of a lent block belong to this tenant from now on.
  void SetTenant(MemoryBlock* block, uint64_t tenant);

  // A lent block comes back: retired by its stream, idle if it has none. `is_idle`: StreamIsIdle
  // follows for its stream.
  void Return(MemoryBlock* block, bool is_idle = false);

  // A lent block is used in no stream's order from now on, or in the order of `stream`.
  void LeaveStream(MemoryBlock* block);
  void JoinStream(MemoryBlock* block, aclrtStream stream);

  // Blocks that `stream` retired become idle.
  void StreamIsIdle(aclrtStream stream);
  // Likewise, but the contents of its blocks, the lent ones included, are unknown from now on.
  void StreamWasAborted(aclrtStream stream);

  // Regions without a lent or retired block.
  std::vector<MemoryRegion*> IdleRegions() const;
  // Takes one of those out of the books.
  std::unique_ptr<MemoryRegion> Remove(MemoryRegion* region);

  // Forgets all regions. Blocks that are lent stay valid; returning them changes no sum.
  void Forget();

  // Whether any stream for which `counts` holds has a lent or a retired block.
  bool AnyStream(absl::FunctionRef<bool(aclrtStream)> counts) const;

  // Whether it is a block of this heap that is lent. Looks at every block.
  bool IsLent(const MemoryBlock* block) const;

  // The number of a stream that has or had memory, from 1 on; 0: null, or it has none any more.
  uint32_t NumberOf(aclrtStream stream) const;

  const Bytes& bytes() const { return bytes_; }
  uint64_t merges() const { return merges_; }  // of two blocks, so far
  // All sums, in the order of the log's line "state"; and that line.
  std::vector<uint64_t> Sums() const;
  void LogSums();
  size_t largest_idle_bytes() const { return idle_.largest_bytes(); }
  const std::vector<std::unique_ptr<MemoryRegion>>& regions() const { return regions_; }

 private:
  struct StreamMemory {
    uint32_t number = 0;
    FreeBlocks retired;
    size_t lent_blocks = 0;

    bool is_empty() const { return lent_blocks == 0 && retired.empty(); }
  };

  StreamMemory& MemoryOf(aclrtStream stream);
  // Lends `block`, which is free and in no FreeBlocks, after splitting it if that is worth it.
  // `source`: as the log has it.
  Lent Lend(MemoryBlock* block, const BlockRequest& request, absl::string_view source);
  void Log(absl::string_view verb, uint64_t number);
  void LogLine(absl::string_view line);
  void ReturnUnlogged(MemoryBlock* block, bool is_idle);
  void MakeIdle(aclrtStream stream);
  void SplitOff(MemoryBlock* block, size_t bytes);
  // Marks `block`, which is in no FreeBlocks, free, and merges it with neighbours of its kind.
  void AddFree(MemoryBlock* block, MemoryBlock::State state);
  void AddIdle(MemoryBlock* block);
  FreeBlocks& ListOf(const MemoryBlock& block);
  // `block` swallows the one behind it; neither is in a FreeBlocks.
  void Absorb(MemoryBlock* block);

  MemoryBlock* NewBlock();
  void RecycleBlocks(MemoryRegion* region);
  void Recycle(MemoryBlock* block);
  std::unique_ptr<MemoryRegion> Detach(MemoryRegion* region,
                                       std::vector<std::unique_ptr<MemoryRegion>>* owner);

  const std::unique_ptr<AllocationLog> log_;  // null: none
  uint64_t log_lines_ = 0;
  uint64_t lendings_ = 0;
  uint64_t merges_ = 0;
  uint32_t stream_numbers_ = 0;
  Bytes bytes_;
  std::vector<std::unique_ptr<MemoryRegion>> regions_;
  std::vector<std::unique_ptr<MemoryRegion>> forgotten_;  // those with lent blocks
  FreeBlocks idle_;
  absl::flat_hash_map<aclrtStream, StreamMemory> streams_;
  std::deque<MemoryBlock> blocks_;  // all there ever were since there was no region
  MemoryBlock* spare_ = nullptr;    // of blocks_, linked by `next`
};

}  // namespace opserve::server
