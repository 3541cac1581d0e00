// Page-locked host memory for results: the device copies into it, and gRPC sends from it without
// another copy. Blocks are kept and reused, because fresh pages cost more than copying into old
// ones. A block is at most an eighth larger than asked for, or 512 bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/device/acl/acl_library.h"
#include "server/device/memory/pinned_allowance.h"

namespace opserve::server {

class PinnedPool;

// A lent block. Move-only; goes back to the pool from any thread, without calling ACL.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;  // empty: null, 0 bytes
  PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer() { Release(); }

  void* data() const { return data_; }
  size_t size() const { return size_; }  // bytes asked for

 private:
  friend class PinnedPool;
  PinnedBuffer(std::shared_ptr<PinnedPool> pool, void* data, size_t size, size_t block_bytes,
               std::shared_ptr<void> charge)
      : pool_(std::move(pool)),
        charge_(std::move(charge)),
        data_(data),
        size_(size),
        block_bytes_(block_bytes) {}
  void Release();

  // gRPC may keep a result longer than the daemon its pools. Null: ordinary memory, the buffer's
  // own.
  std::shared_ptr<PinnedPool> pool_;
  std::shared_ptr<void> charge_;
  void* data_ = nullptr;
  size_t size_ = 0;
  size_t block_bytes_ = 0;
};

// Thread-safe.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  struct Statistics {
    uint64_t reserved_bytes = 0;   // taken from the system
    uint64_t allocated_bytes = 0;  // lent now, in whole blocks
    uint64_t fallbacks_total = 0;  // ordinary memory lent instead
  };

  // Never reserves more than `limit_bytes`. With `allow_host_fallback`, ordinary memory is lent
  // when the limit is reached: copies from the device then block and are slower, but nothing is
  // refused. It belongs to no pool, is counted in no bytes, and goes back to the system when it is
  // returned.
  static std::shared_ptr<PinnedPool> Create(const AclLibrary& acl, size_t limit_bytes,
                                            bool allow_host_fallback = false);
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // The share of the limit that a buffer of `bytes` bytes takes.
  static size_t BlockBytes(size_t bytes);

  // Lends at least `bytes` bytes, 64-byte aligned, contents unspecified. The calling thread must be
  // bound to a device. Never refused while lent bytes stay within booked ones, and these within the
  // limit.
  //
  // kFailedPrecondition: more than the limit; it can never be had.
  // kResourceExhausted: the limit is reached now, even if idle blocks were given back, and
  // ordinary memory is not allowed or there is none.
  absl::StatusOr<PinnedBuffer> Allocate(size_t bytes, const PinnedAllowance& allowance = {})
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As Allocate, if a block of that size is idle: asks nothing of the system, and any thread may
  // call it.
  std::optional<PinnedBuffer> TryAllocate(size_t bytes, const PinnedAllowance& allowance)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives all idle blocks back to the system. To be called before ACL is finalised: blocks that
  // come back later stay with the process.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t limit_bytes() const { return limit_bytes_; }
  bool allows_host_fallback() const { return allow_host_fallback_; }
  // Takes no lock.
  Statistics statistics() const { return {reserved_bytes_, allocated_bytes_, fallbacks_total_}; }

 private:
  friend class PinnedBuffer;
  // By size. A size that was there once stays, without blocks: to make its place anew for each
  // buffer would cost more than all the rest.
  using FreeBlocks = absl::btree_map<size_t, std::vector<void*>>;

  PinnedPool(const AclLibrary& acl, size_t limit_bytes, bool allow_host_fallback)
      : acl_(acl), limit_bytes_(limit_bytes), allow_host_fallback_(allow_host_fallback) {}
  absl::StatusOr<PinnedBuffer> AllocateOrdinary(size_t bytes);
  std::optional<PinnedBuffer> TakeIdle(size_t bytes, const PinnedAllowance& allowance)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(void* data, size_t block_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes idle blocks out of the books, largest first, until `bytes` more fit under the limit; none
  // if all of them would not do.
  std::vector<void*> MakeRoom(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AclLibrary& acl_;
  const size_t limit_bytes_;
  const bool allow_host_fallback_;
  absl::Mutex mutex_;
  FreeBlocks idle_ ABSL_GUARDED_BY(mutex_);
  // As Statistics; written with mutex_ held, read without.
  std::atomic<uint64_t> reserved_bytes_ = 0;
  std::atomic<uint64_t> allocated_bytes_ = 0;
  std::atomic<uint64_t> fallbacks_total_ = 0;  // counted without it
};

}  // namespace opserve::server
