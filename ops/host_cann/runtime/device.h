// A device: memory capacity, cores, limits, health, and the contexts that live on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/context.h"
#include "ops/host_cann/runtime/core_pool.h"
#include "ops/host_cann/runtime/generation.h"
#include "ops/host_cann/runtime/mutex.h"

namespace opserve::host_cann {

// Counts the used part of a limited resource. Thread-safe, lock-free.
class Quota {
 public:
  explicit Quota(uint64_t limit) : limit_(limit) {}

  bool Take(uint64_t amount) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (amount > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + amount, std::memory_order_relaxed));
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < used + amount && !peak_.compare_exchange_weak(peak, used + amount)) {
    }
    return true;
  }
  void Return(uint64_t amount) { used_.fetch_sub(amount, std::memory_order_relaxed); }

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t available() const { return limit_ - used(); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
};

// Lives as long as the process. Thread-safe.
class Device {
 public:
  Device(int32_t id, int32_t physical_id, uint64_t memory_bytes, int num_cores,
         const Generation& generation)
      : id_(id),
        physical_id_(physical_id),
        memory_(memory_bytes),
        streams_(generation.max_streams),
        events_(generation.max_events),
        notifies_(generation.max_notifies),
        cores_(num_cores) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int32_t id() const { return id_; }
  int32_t physical_id() const { return physical_id_; }
  Quota& memory() { return memory_; }
  Quota& events() { return events_; }
  Quota& notifies() { return notifies_; }
  Quota& streams() { return streams_; }
  CorePool& cores() { return cores_; }

  // ---- contexts ----

  // One more use; `context` becomes the default context. 507033: the device does not open. Its
  // loss code: lost while in use.
  aclError Set(std::shared_ptr<Context>* context) ABSL_LOCKS_EXCLUDED(lifecycle_mutex_, mutex_);
  // One use less; the last one waits for all streams and releases everything.
  aclError Reset() ABSL_LOCKS_EXCLUDED(lifecycle_mutex_, mutex_);
  // Ends hanging tasks, waits for the rest and releases everything.
  aclError ResetForce() ABSL_LOCKS_EXCLUDED(lifecycle_mutex_, mutex_);

  // Creates an explicit context. Null: no stream left for it.
  std::shared_ptr<Context> CreateContext() ABSL_LOCKS_EXCLUDED(lifecycle_mutex_, mutex_);
  // Waits for its streams and closes it.
  void DestroyContext(const std::shared_ptr<Context>& context) ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_default_context() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Stream>> AllStreams() ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes one of the device's streams and returns its id. None: they are used up.
  std::optional<int32_t> TakeStream();
  void ReturnStream() { streams_.Return(1); }

  // ---- settings that end with a release ----

  // Whether tasks of this device may use memory of the device with that id.
  bool Reaches(int32_t device_id) const {
    return device_id == id_ || (peers_.load(std::memory_order_relaxed) >> device_id & 1) != 0;
  }
  void SetPeer(int32_t device_id, bool enabled) {
    const uint64_t bit = uint64_t{1} << device_id;
    enabled ? peers_.fetch_or(bit) : peers_.fetch_and(~bit);
  }

  CoreLimits core_limits;

  // ---- health ----

  // The code that every use of the device fails with; 0: it is well.
  aclError lost_code() const { return lost_code_.load(std::memory_order_acquire); }
  aclError CheckNotLost() const;
  // CheckNotLost, and 107022 while an abort of the device is under way.
  aclError CheckUsable() const;
  // Loses the device until the `resets`-th forced reset.
  void Lose(aclError code, int resets) ABSL_LOCKS_EXCLUDED(mutex_);

  // Aborts all streams. False: `deadline` passed before all running tasks had ended.
  bool AbortTasks(Deadline deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Latest code that a task failed with; 0: none since the last reset or repair.
  aclError last_fault() const { return last_fault_.load(std::memory_order_relaxed); }
  void NoteFault(aclError code) { last_fault_.store(code, std::memory_order_relaxed); }

  // ---- activity ----
  std::atomic<int64_t> launches{0};
  std::atomic<int64_t> allocations{0};  // live ones
  std::atomic<int> running_kernels{0};

 private:
  std::shared_ptr<Context> AddContext(bool is_default) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes all contexts and drops events, memory and registrations.
  void ReleaseEverything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lifecycle_mutex_)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const int32_t id_;
  const int32_t physical_id_;
  Quota memory_;
  Quota streams_;  // default streams included
  Quota events_;
  Quota notifies_;
  CorePool cores_;

  std::atomic<aclError> lost_code_{ACL_SUCCESS};
  std::atomic<aclError> last_fault_{ACL_SUCCESS};
  std::atomic<int> aborts_under_way_{0};
  std::atomic<uint64_t> peers_{0};  // by device id, of which there are at most 64
  std::atomic<int32_t> next_stream_id_{0};

  // Held over whole sets and resets, which wait for tasks: a set waits for a reset.
  Mutex lifecycle_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(lifecycle_mutex_) = 0;
  bool force_allowed_ ABSL_GUARDED_BY(lifecycle_mutex_) = false;  // set since its last release

  Mutex mutex_;
  std::shared_ptr<Context> default_context_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Context>> contexts_ ABSL_GUARDED_BY(mutex_);
  int resets_to_recover_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace opserve::host_cann
