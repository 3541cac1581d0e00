// Which memory is live: finds the block that an address lies in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "ops/host_cann/runtime/memory_block.h"
#include "ops/host_cann/runtime/mutex.h"

namespace opserve::host_cann {

using BlockPtr = std::shared_ptr<const MemoryBlock>;

// Thread-safe. A block that leaves the table is given back to its device's capacity.
class MemoryTable {
 public:
  // Adds a block of kDevice, already charged to the device, or of kPinned.
  void InsertOwned(BlockPtr block) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the block that starts at `address`. Null: there is none of that kind.
  BlockPtr TakeOwned(const void* address, MemoryBlock::Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  // The block of kDevice or kPinned that `address` lies in (or is just behind); null: none.
  BlockPtr FindOwned(const void* address) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of two addresses.
  std::pair<BlockPtr, BlockPtr> FindOwned(const void* first, const void* second)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds registered memory. False: part of it is registered with the same device.
  bool InsertRegistered(BlockPtr block) ABSL_LOCKS_EXCLUDED(mutex_);
  BlockPtr TakeRegistered(const void* address, int32_t device) ABSL_LOCKS_EXCLUDED(mutex_);
  BlockPtr FindRegistered(const void* address, int32_t device) ABSL_LOCKS_EXCLUDED(mutex_);

  // The page-locked block, allocated or registered, that holds all of the host memory; null: none.
  BlockPtr FindPinned(const void* address, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsPinned(const void* address, size_t bytes) { return FindPinned(address, bytes) != nullptr; }
  // Whether the block is still in the table.
  bool Holds(const BlockPtr& block) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether any registration overlaps the block.
  bool IsRegistered(const MemoryBlock& block) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t PinnedBytes() ABSL_LOCKS_EXCLUDED(mutex_);
  size_t NumRegistered() ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the device's memory and its registrations. Pinned memory stays.
  void RemoveDevice(int32_t device) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using ByStart = std::map<uintptr_t, BlockPtr>;
  static BlockPtr FindIn(const ByStart& blocks, const void* address);
  static bool Overlaps(const ByStart& blocks, const MemoryBlock& block);
  // Books a block of kDevice in (1) or out of (-1) its device.
  static void Count(const MemoryBlock& block, int64_t sign);

  Mutex mutex_;
  ByStart owned_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, ByStart> registered_ ABSL_GUARDED_BY(mutex_);  // by device
};

}  // namespace opserve::host_cann
