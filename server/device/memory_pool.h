// Device memory of one device, for tensors and workspaces alike, reused in stream order.
//
// A block released on a stream serves that stream again at once, since what is queued there later
// runs later; other streams get it once the owner has seen the stream idle. Allocating from the
// device (slow, and a hidden synchronisation on some drivers) happens only when no block fits.
// When the device is out of memory, every idle block is given back and the allocation tried once
// more before that one request is refused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/device/acl_library.h"

namespace opserve::server {

class DeviceMemoryPool;

// A lent block. Move-only; returns itself to the pool in the order of its stream.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;  // empty: null, 0 bytes
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer() { Release(); }

  void* data() const { return data_; }
  size_t size() const { return size_; }  // bytes asked for

 private:
  friend class DeviceMemoryPool;
  DeviceBuffer(DeviceMemoryPool* pool, aclrtStream stream, void* data, size_t size, size_t block)
      : pool_(pool), stream_(stream), data_(data), size_(size), block_bytes_(block) {}
  void Release();

  DeviceMemoryPool* pool_ = nullptr;
  aclrtStream stream_ = nullptr;
  void* data_ = nullptr;
  size_t size_ = 0;
  size_t block_bytes_ = 0;
};

// Thread-safe. Destroy it after every buffer, with the device bound to the thread.
class DeviceMemoryPool {
 public:
  // How allocations were served.
  enum Outcome { kHit, kCrossStream, kGrow, kRetry, kOutOfMemory, kOutcomes };

  struct Statistics {
    uint64_t reserved_bytes = 0;   // taken from the device: allocated + idle
    uint64_t allocated_bytes = 0;  // lent now, in whole blocks
    uint64_t requested_bytes = 0;  // lent now, as asked for
    uint64_t idle_bytes = 0;
    uint64_t peak_bytes = 0;  // highest reserved_bytes so far
    uint64_t trimmed_bytes_total = 0;
    uint64_t allocations[kOutcomes] = {};
  };

  explicit DeviceMemoryPool(const AclLibrary& acl) : acl_(acl) {}
  ~DeviceMemoryPool();
  DeviceMemoryPool(const DeviceMemoryPool&) = delete;
  DeviceMemoryPool& operator=(const DeviceMemoryPool&) = delete;

  // Lends at least `bytes` bytes, 64-byte aligned, for use in the order of `stream`. Contents are
  // unspecified. 0 bytes: an empty buffer. The calling thread must be bound to the device.
  //
  // kResourceExhausted: the device is out of memory even after a trim; nothing changed.
  // Other codes: the device failed (AclCallStatus).
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes, aclrtStream stream)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Says that everything queued on `stream` so far has run: blocks released on it serve any stream.
  void StreamIsIdle(aclrtStream stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives blocks that no stream can still be using back to the device.
  void Trim() ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes no lock, so that watching the pool cannot slow it down: while it is in use, the figures
  // may be of slightly different moments.
  Statistics statistics() const;

 private:
  friend class DeviceBuffer;
  // As Statistics; written with mutex_ held, read without.
  struct Counters {
    std::atomic<uint64_t> allocated_bytes = 0, requested_bytes = 0, idle_bytes = 0;
    std::atomic<uint64_t> reserved_bytes = 0, peak_bytes = 0, trimmed_bytes_total = 0;
    std::atomic<uint64_t> allocations[kOutcomes] = {};
  };
  // Idle blocks by size; a block's size is always a SizeClass.
  using FreeBlocks = std::multimap<size_t, void*>;

  // Takes the smallest fitting block that is not more than twice as large; null if there is none.
  void* TakeFrom(FreeBlocks* blocks, size_t block_bytes, size_t* taken_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  DeviceBuffer Lend(void* data, size_t bytes, size_t block_bytes, aclrtStream stream,
                    Outcome outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(aclrtStream stream, void* data, size_t bytes, size_t block_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const AclLibrary& acl_;
  absl::Mutex mutex_;
  FreeBlocks idle_ ABSL_GUARDED_BY(mutex_);  // for any stream
  absl::flat_hash_map<aclrtStream, FreeBlocks> idle_on_stream_ ABSL_GUARDED_BY(mutex_);
  Counters counters_;
};

}  // namespace opserve::server
