#include "ops/host_cann/runtime/memory_table.h"

#include <iterator>
#include <vector>

#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/runtime.h"

namespace opserve::host_cann {

BlockPtr MemoryTable::FindIn(const ByStart& blocks, const void* address) {
  // The last block that starts at or before the address is the only one that can hold it: blocks do
  // not overlap.
  auto next = blocks.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (next == blocks.begin()) return nullptr;
  const BlockPtr& block = std::prev(next)->second;
  // 0 bytes: the address just behind a block is found too, for empty tensors there.
  return block->Contains(address, 0) ? block : nullptr;
}

bool MemoryTable::Overlaps(const ByStart& blocks, const MemoryBlock& block) {
  // The last block that starts before the end of `block`: if any overlaps, this one does, as those
  // in the table do not overlap each other.
  const auto behind = blocks.lower_bound(block.end());
  return behind != blocks.begin() && std::prev(behind)->second->end() > block.start;
}

void MemoryTable::Count(const MemoryBlock& block, int64_t sign) {
  if (block.kind != MemoryBlock::Kind::kDevice) return;
  // The device of a block always exists: devices live as long as the process.
  Device& device = *Runtime::Get().FindDevice(block.device);
  device.allocations += sign;
  // The charge is taken before a block exists, but returned here, where every block leaves.
  if (sign < 0) device.memory().Return(block.charged_bytes);
}

void MemoryTable::InsertOwned(BlockPtr block) {
  // Counted before it is found: a free right behind it must not take the number below 0.
  Count(*block, 1);
  MutexLock lock(mutex_);
  owned_.emplace(block->start, std::move(block));
}

BlockPtr MemoryTable::TakeOwned(const void* address, MemoryBlock::Kind kind) {
  MutexLock lock(mutex_);
  const auto found = owned_.find(reinterpret_cast<uintptr_t>(address));
  // The kind as well: device memory and page-locked memory have functions of their own, and the
  // wrong one is refused.
  if (found == owned_.end() || found->second->kind != kind) return nullptr;
  const BlockPtr block = found->second;
  owned_.erase(found);
  Count(*block, -1);
  // The caller drops the block outside the lock: munmap of a large one takes long.
  return block;
}

BlockPtr MemoryTable::FindOwned(const void* address) {
  MutexLock lock(mutex_);
  return FindIn(owned_, address);
}

std::pair<BlockPtr, BlockPtr> MemoryTable::FindOwned(const void* first, const void* second) {
  MutexLock lock(mutex_);
  return {FindIn(owned_, first), FindIn(owned_, second)};
}

bool MemoryTable::InsertRegistered(BlockPtr block) {
  MutexLock lock(mutex_);
  // By device: the same memory may be registered with each.
  ByStart& blocks = registered_[block->device];
  if (Overlaps(blocks, *block)) return false;
  blocks.emplace(block->start, std::move(block));
  return true;
}

BlockPtr MemoryTable::TakeRegistered(const void* address, int32_t device) {
  MutexLock lock(mutex_);
  ByStart& blocks = registered_[device];
  const auto found = blocks.find(reinterpret_cast<uintptr_t>(address));
  if (found == blocks.end()) return nullptr;
  const BlockPtr block = found->second;
  blocks.erase(found);
  return block;
}

BlockPtr MemoryTable::FindRegistered(const void* address, int32_t device) {
  MutexLock lock(mutex_);
  return FindIn(registered_[device], address);
}

BlockPtr MemoryTable::FindPinned(const void* address, size_t bytes) {
  MutexLock lock(mutex_);
  BlockPtr owned = FindIn(owned_, address);
  if (owned != nullptr && owned->pinned && owned->Contains(address, bytes)) return owned;
  // Registered with any device: page-locking belongs to the host.
  for (const auto& [device, blocks] : registered_) {
    BlockPtr block = FindIn(blocks, address);
    if (block != nullptr && block->pinned && block->Contains(address, bytes)) return block;
  }
  return nullptr;
}

bool MemoryTable::Holds(const BlockPtr& block) {
  MutexLock lock(mutex_);
  const bool is_registered = block->kind == MemoryBlock::Kind::kRegistered;
  const ByStart& blocks = is_registered ? registered_[block->device] : owned_;
  const auto found = blocks.find(block->start);
  // The same object, not the same address: memory that was freed and allocated again is another
  // block.
  return found != blocks.end() && found->second == block;
}

bool MemoryTable::IsRegistered(const MemoryBlock& block) {
  // With any device, since the pages would go from all of them.
  MutexLock lock(mutex_);
  for (const auto& [device, blocks] : registered_) {
    if (Overlaps(blocks, block)) return true;
  }
  return false;
}

void MemoryTable::RemoveDevice(int32_t device) {
  std::vector<BlockPtr> removed;  // declared first: memory goes back to the system outside the lock
  MutexLock lock(mutex_);
  for (auto it = owned_.begin(); it != owned_.end();) {
    const MemoryBlock& block = *it->second;
    // Page-locked memory is the host's and outlives the device's reset.
    if (block.kind == MemoryBlock::Kind::kDevice && block.device == device) {
      Count(block, -1);
      removed.push_back(std::move(it->second));
      it = owned_.erase(it);
    } else {
      ++it;
    }
  }
  registered_.erase(device);
}

uint64_t MemoryTable::PinnedBytes() {
  MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [start, block] : owned_) {
    // Registered memory is the program's own and is counted apart.
    if (block->kind == MemoryBlock::Kind::kPinned) bytes += block->bytes;
  }
  return bytes;
}

size_t MemoryTable::NumRegistered() {
  MutexLock lock(mutex_);
  size_t regions = 0;
  for (const auto& [device, blocks] : registered_) regions += blocks.size();
  return regions;
}

}  // namespace opserve::host_cann
