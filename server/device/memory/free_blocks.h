// Free blocks in order of size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/btree_set.h"
#include "server/device/memory/memory_region.h"

namespace opserve::server {

// Does not own the blocks. Their size and tenant must not change while they are inside. Not
// thread-safe.
class FreeBlocks {
 public:
  void Insert(MemoryBlock* block) { entries_.insert(EntryOf(block)); }
  void Erase(MemoryBlock* block) { entries_.erase(EntryOf(block)); }
  void Clear() { entries_.clear(); }

  // Removes and returns a block of at least `request.least_bytes`, one of the smallest; null if
  // there is none. Among those that fit about as well it prefers one that the same tenant used,
  // then one that any tenant would have to scrub, so that tenants which take turns keep to their
  // own blocks.
  MemoryBlock* Take(const BlockRequest& request);

  // Removes and returns any block.
  MemoryBlock* TakeAny();

  bool empty() const { return entries_.empty(); }
  size_t largest_bytes() const { return entries_.empty() ? 0 : entries_.rbegin()->bytes; }

 private:
  // By size, so that a search finds the best fit; then by tenant, so that it finds a tenant's own
  // block of the usual size at once; then by address, so that low addresses are used first.
  struct Entry {
    size_t bytes;
    uint64_t tenant;
    const char* data;
    MemoryBlock* block;

    bool operator<(const Entry& other) const {
      if (bytes != other.bytes) return bytes < other.bytes;
      if (tenant != other.tenant) return tenant < other.tenant;
      return data < other.data;
    }
  };
  using Entries = absl::btree_set<Entry>;

  static Entry EntryOf(MemoryBlock* block) {
    return {block->bytes, block->tenant, block->data, block};
  }
  Entries::iterator Choose(const BlockRequest& request);

  Entries entries_;
};

}  // namespace opserve::server
