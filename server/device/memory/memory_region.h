// The entities in a device memory pool's books: regions, as the device gave them, and the blocks
// that each is divided into. Plain data; MemoryHeap changes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "acl/acl.h"

namespace opserve::server {

// Of every block's address and size, in bytes.
inline constexpr size_t kBlockAlignment = 512;

// aclrtMalloc promises an alignment of 64 bytes, so a region asks for room to align its first
// block. Beyond its blocks it takes from the device at most this room and the 32 bytes that
// aclrtMalloc adds.
inline constexpr size_t kAlignmentRoom = kBlockAlignment - 64;
inline constexpr size_t kRegionOverhead = 512;

// A block's bytes belong to a tenant, by number, or to this: to several tenants or an unknown one.
inline constexpr uint64_t kUnknownTenant = UINT64_MAX;

struct MemoryRegion;

struct MemoryBlock {
  enum class State : uint8_t {
    kAllocated,
    kIdle,    // free for any stream
    kRetired  // free for `stream`, which may still be using it
  };

  MemoryRegion* region = nullptr;
  MemoryBlock* previous = nullptr;  // neighbours by address; null at the region's ends
  MemoryBlock* next = nullptr;
  char* data = nullptr;  // on the device
  size_t bytes = 0;
  size_t requested_bytes = 0;        // 0 unless allocated
  aclrtStream stream = nullptr;      // which used it last; null: none, several, or without an order
  uint64_t tenant = kUnknownTenant;  // no other tenant can have written any of its bytes
  State state = State::kIdle;
  bool is_poisoned = false;  // free memory that has the guard's pattern
  // Of a lent block: the tenant, when it was lent (Unix time), and its number in the log.
  uint32_t owner = 0;
  int64_t lent_ns = 0;
  uint64_t lending = 0;
};

struct MemoryRegion {
  void* allocation = nullptr;  // as the device gave it; `first` begins at the next aligned address
  size_t bytes = 0;            // of all its blocks
  size_t idle_bytes = 0;       // of its idle blocks
  size_t allocated_blocks = 0;
  size_t index = 0;  // where its heap keeps it
  MemoryBlock* first = nullptr;
  bool is_forgotten = false;  // its memory is gone; it stays only until its blocks come back
  // When decay first found it wholly idle; InfiniteFuture if it has been used since.
  absl::Time idle_since = absl::InfiniteFuture();

  bool is_idle() const { return idle_bytes == bytes; }
};

// A block that is wanted.
struct BlockRequest {
  size_t requested_bytes = 0;
  size_t least_bytes = 0;  // the smallest block that will do
  size_t class_bytes = 0;  // cut off a larger block
  size_t most_bytes = 0;   // a block up to this size is lent whole
  aclrtStream stream = nullptr;
  uint64_t tenant = kUnknownTenant;  // preferred: blocks that it used before
};

}  // namespace opserve::server
