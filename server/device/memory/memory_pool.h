// Device memory of one device, for tensors and workspaces alike, reused in stream order.
//
// Memory is taken from the device in regions and lent in blocks, which are split from idle ones and
// merge with their idle neighbours when they come back. A block released on a stream serves that
// stream again at once, since work queued on it later runs later; other streams get it once its
// owner has seen the stream idle (until then it is "retired"). Asking the device for memory (slow,
// and a hidden synchronisation on some drivers) happens only when no block fits, outside the lock.
//
// The pool's guarantees are P1 to P13 in server/device/README.md, each with its test.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/device/acl/acl_library.h"
#include "server/device/memory/memory_guard.h"
#include "server/device/memory/memory_heap.h"
#include "server/device/memory/memory_region.h"

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
  DeviceBuffer(DeviceMemoryPool* pool, MemoryBlock* block, char* data, size_t size)
      : pool_(pool), block_(block), data_(data), size_(size) {}
  void Release();

  DeviceMemoryPool* pool_ = nullptr;
  MemoryBlock* block_ = nullptr;
  char* data_ = nullptr;
  size_t size_ = 0;
};

// Thread-safe. Destroy it after every buffer, with the device bound to the thread.
class DeviceMemoryPool {
 public:
  // How allocations were served, in the order in which it is tried.
  enum Outcome {
    kHit,          // a block that fits, used by this stream before
    kSplit,        // part of a larger block
    kCrossStream,  // a block that fits, used by another stream before, or by several or none
    kGrow,         // new memory from the device
    kRetry,        // likewise, after idle memory was given back
    kOutOfMemory,  // refused with kResourceExhausted
    kOutcomes
  };

  // When a block is overwritten with zeros before it is lent.
  enum class Scrub {
    kCrossTenant,  // another tenant used any of its bytes before, or an unknown one
    kAlways,
    kNever
  };

  struct Options {
    uint64_t max_bytes = UINT64_MAX;             // never more than this taken from the device
    uint64_t floor_bytes = uint64_t{64} << 20;   // decay gives nothing back below this
    uint64_t region_bytes = uint64_t{32} << 20;  // least size of a region, if the limit allows it
    absl::Duration decay = absl::Seconds(10);    // how long a region stays idle before it goes
    Scrub scrub = Scrub::kCrossTenant;
    // Aborts the process where memory that is not lent was written, or a buffer comes back twice or
    // is another pool's (MemoryGuard); waits for the stream of each buffer that comes back.
    bool guard = false;
    std::string allocation_log = {};  // a file for all changes (AllocationLog); empty: none
  };

  struct Allocation {
    size_t bytes = 0;
    // The order in which the block is used. Null: no order, as for resident tensors; the block is
    // written by copies that have ended before others see it (so it is never scrubbed), and it is
    // released when nothing uses it any more.
    aclrtStream stream = nullptr;
    uint32_t tenant = 0;  // for scrubbing
    // If the memory is there but lent to requests, waits for it until then, first come, first
    // served. InfinitePast: never waits. No wait for memory that cannot come back: memory lent
    // without a stream, and that of streams which wait themselves (so one thread uses a stream).
    absl::Time wait_until = absl::InfinitePast();
    // If not null: the wait ends (kCancelled) when this is true and WakeWaiters is called.
    const std::atomic<bool>* is_cancelled = nullptr;
  };

  struct Statistics {
    uint64_t reserved_bytes = 0;      // of all blocks: allocated + idle + retired
    uint64_t allocated_bytes = 0;     // lent now, in whole blocks
    uint64_t requested_bytes = 0;     // lent now, as asked for
    uint64_t idle_bytes = 0;          // free for any stream
    uint64_t retired_bytes = 0;       // free for the stream that used them last
    uint64_t largest_free_bytes = 0;  // of one idle block
    uint64_t peak_bytes = 0;          // highest reserved_bytes so far
    uint64_t trimmed_bytes_total = 0;
    uint64_t scrubbed_bytes_total = 0;
    uint64_t merges_total = 0;  // of two blocks
    uint64_t trims_total = 0;   // times regions were given back, one or several
    uint64_t waits_total = 0;   // allocations that waited for memory of others, and how long
    absl::Duration wait_time_total;
    uint64_t waiting = 0;  // allocations that wait now
    uint64_t allocations[kOutcomes] = {};

    // 0: all idle memory is in one block; towards 1: it is in many small ones.
    double fragmentation() const {
      return idle_bytes == 0 ? 0 : 1 - static_cast<double>(largest_free_bytes) / idle_bytes;
    }
  };

  struct Snapshot {
    enum class BlockState { kAllocated, kIdle, kRetired };
    struct Block {
      uint64_t offset = 0;  // in its region
      uint64_t bytes = 0;
      BlockState state = BlockState::kIdle;
      uint64_t requested_bytes = 0;   // 0 unless allocated
      uint32_t stream = 0;            // number of that in whose order it is used; 0: none
      std::optional<uint64_t> owner;  // tenant that used it last; none: several, or unknown
      absl::Time lent = absl::InfinitePast();  // if it is allocated: when
    };
    struct Region {
      uint64_t bytes = 0;
      std::vector<Block> blocks;  // by offset, without gaps
    };
    std::vector<Region> regions;
    Statistics statistics;  // of the same moment
  };

  DeviceMemoryPool(const AclLibrary& acl, const Options& options);
  ~DeviceMemoryPool();

  // To be called before the first allocation. `give_back`: has lent memory come back that can be
  // done without; whether some did. The thread of an allocation that finds no memory calls it, with
  // no lock held, before the allocation waits or is refused.
  void OnShortage(std::function<bool()> give_back) { give_back_ = std::move(give_back); }
  DeviceMemoryPool(const DeviceMemoryPool&) = delete;
  DeviceMemoryPool& operator=(const DeviceMemoryPool&) = delete;

  // Lends at least `bytes` bytes, aligned to 512 bytes and with 32 bytes of slack behind them
  // (CANN's rule for tensors inside a larger allocation). Contents are unspecified but, as Scrub
  // says, never another tenant's. 0 bytes: an empty buffer. The calling thread must be bound to the
  // device. `outcome`, if not null, is set to how it was served; 0 bytes and other errors leave it
  // alone.
  //
  // While others wait, an allocation that may wait queues behind them, unless its own stream's
  // retired memory serves it, which no other stream could have now. One that may not wait takes
  // free memory, but none from the device.
  //
  // kFailedPrecondition (reason "device_memory", pushback -1): more than the limit can ever give.
  // kResourceExhausted (reason "device_memory"): not there now, nor by `wait_until`, even after
  // idle memory was given back. kCancelled: the wait was cancelled.  Other codes: the device failed
  // (AclCallStatus). After an error the pool is as before.
  absl::StatusOr<DeviceBuffer> Allocate(const Allocation& allocation, Outcome* outcome = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As Allocate, but of free memory only: never waits nor asks the device. Ignores `wait_until`.
  std::optional<DeviceBuffer> TryAllocate(const Allocation& allocation, Outcome* outcome)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Says that everything queued on the buffer's stream so far has run, and that it is used without
  // an order from now on, as if it had been allocated so.
  void LeaveStream(const DeviceBuffer& buffer) ABSL_LOCKS_EXCLUDED(mutex_);
  // The opposite: from now on the buffer is used in the order of `stream`. Either nothing is queued
  // on it for the buffer yet, or the stream was given up and keeps the buffer, once it is released,
  // until the device is reset. No effect on one that is used in a stream's order already.
  void JoinStream(const DeviceBuffer& buffer, aclrtStream stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Says that everything queued on `stream` so far has run: blocks released on it serve any stream.
  // `last`, if it is not empty, is released before.
  void StreamIsIdle(aclrtStream stream, DeviceBuffer last = {}) ABSL_LOCKS_EXCLUDED(mutex_);

  // Likewise if some of it was dropped, by an abort or after an error. Dropped scrubs leave the
  // blocks used on the stream since it was last idle with unknown contents.
  void StreamWasAborted(aclrtStream stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes allocations that wait look at their `is_cancelled`.
  void WakeWaiters() ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives every region without a lent or retired block back to the device; returns the bytes. The
  // calling thread must be bound to the device.
  uint64_t Trim() ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives back regions that have been wholly idle for the decay at `now`, oldest first, while
  // reserved_bytes is above the floor. The pool has no other clock: a region's time starts with the
  // first call that finds it idle. Returns when to call it next; InfiniteFuture if nothing is above
  // the floor. The calling thread must be bound to the device.
  absl::Time TrimDecayed(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets all memory without telling the device, which was reset: its addresses mean nothing any
  // more, those of lent buffers included; returning one then has no effect. No allocation may be
  // under way, except one that waits.
  void ForgetAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes no lock, so that watching the pool cannot slow it down: while it is in use, the figures
  // may be of slightly different moments.
  Statistics statistics() const;
  Snapshot snapshot() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options& options() const { return options_; }

 private:
  friend class DeviceBuffer;

  // A block just lent, and the steps left to do with it.
  struct Lease {
    MemoryBlock* block = nullptr;
    Outcome outcome = kOutOfMemory;
    bool must_scrub = false;
  };

  // An allocation under way; on the stack of its thread.
  struct Attempt {
    const DeviceMemoryPool& pool;
    const Allocation& allocation;
    const BlockRequest request;
    // The pool's `changes_` that it has seen, or made: after others it tries again.
    uint64_t seen_changes = 0;
    bool is_queued = false;

    bool may_wait() const { return allocation.wait_until != absl::InfinitePast(); }
    bool is_cancelled() const {
      return allocation.is_cancelled != nullptr && *allocation.is_cancelled;
    }
    bool IsDue() const;  // the event that it waits for
  };

  // As Statistics. Members about the heap are written with mutex_ held; all are read without it.
  struct Counters {
    std::atomic<uint64_t> reserved_bytes = 0, allocated_bytes = 0, requested_bytes = 0;
    std::atomic<uint64_t> idle_bytes = 0, retired_bytes = 0, largest_free_bytes = 0, peak_bytes = 0;
    std::atomic<uint64_t> trimmed_bytes_total = 0, scrubbed_bytes_total = 0, waiting = 0;
    std::atomic<uint64_t> merges_total = 0, trims_total = 0, waits_total = 0;
    std::atomic<int64_t> wait_ns_total = 0;
    std::atomic<uint64_t> allocations[kOutcomes] = {};
  };

  using Regions = std::vector<std::unique_ptr<MemoryRegion>>;

  BlockRequest RequestFor(const Allocation& allocation) const;

  // memory_pool.cc: lends free memory, without asking the device.
  //
  // The lease is without a block if nothing free serves the attempt, or it has to queue first.
  Lease TakeFree(Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Lease Lend(const MemoryHeap::Lent& lent, const Attempt& attempt, Outcome outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Where the user's bytes begin in a lent block.
  char* DataOf(const MemoryBlock& block) const {
    return options_.guard ? MemoryGuard::UserData(block) : block.data;
  }
  // For the guard: aborts unless the block is lent by this pool; whether its memory is still there.
  bool CheckLent(const MemoryBlock* block) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the lease a buffer, scrubbed if it must be.
  absl::StatusOr<DeviceBuffer> ToBuffer(const Lease& lease, const Allocation& allocation,
                                        Outcome* outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Overwrite(MemoryBlock* block, aclrtStream stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(MemoryBlock* block) ABSL_LOCKS_EXCLUDED(mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The slow path of an allocation that no free memory could serve.
  absl::StatusOr<Lease> AllocateSlowly(Attempt& attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Lease> TakeFreeOrGrow(Attempt& attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether no other attempt has a better claim to memory that any attempt could have.
  bool IsFirst(const Attempt& attempt) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return waiters_.empty() || waiters_.front() == &attempt;
  }
  // Whether it need not wait: it is cancelled, or it is first and something has changed.
  bool IsDue(const Attempt& attempt) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Waits, if that makes sense, until the attempt should be made again: OK. Otherwise `refusal`, or
  // kCancelled.
  absl::Status Wait(Attempt& attempt, const absl::Status& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JoinQueue(Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveQueue(Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether memory that is not free can become so while `attempt` waits.
  bool CanComeBack(const Attempt& attempt) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // Memory to and from the device. All ACL calls are made without the lock; their memory counts
  // against the limit from before it is taken until after it was given back.
  absl::StatusOr<Lease> Grow(Attempt& attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a region of `bytes` as taken; false: the limit or others forbid it.
  bool BeginGrowth(const Attempt& attempt, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise after giving idle regions back, if there are any and that can help.
  bool TrimAndBeginGrowth(Attempt& attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Lease> FinishGrowth(Attempt& attempt, size_t bytes, Outcome outcome)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes regions out of the heap, to be freed; they count as taken until that is booked.
  Regions TakeOut(const std::vector<MemoryRegion*>& regions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Free(const Regions& regions);
  void BookFreed(const Regions& regions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t FreeAndBook(const Regions& regions) ABSL_LOCKS_EXCLUDED(mutex_);

  const AclLibrary& acl_;
  const Options options_;
  std::function<bool()> give_back_;  // null: nothing comes back by itself
  MemoryGuard guard_;
  mutable absl::Mutex mutex_;
  MemoryHeap heap_ ABSL_GUARDED_BY(mutex_);
  // Counts against the limit: the heap's regions with their alignment, growths under way, and
  // regions that are being freed.
  uint64_t taken_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t device_calls_ ABSL_GUARDED_BY(mutex_) = 0;  // growths under way, and Free
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) =
      0;  // events after which a waiting attempt may succeed
  std::list<Attempt*> waiters_ ABSL_GUARDED_BY(mutex_);  // first come first
  Counters counters_;
};

}  // namespace opserve::server
