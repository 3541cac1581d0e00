// Events: marks in streams that others can wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/stream.h"
#include "ops/host_cann/runtime/waiters.h"

namespace opserve::host_cann {

class Capture;

// One recording of an event. Thread-safe; shared by the event, the task that completes it, and all
// threads and streams that wait for it.
class EventRecord {
 public:
  enum class State { kPending, kComplete, kAbandoned };  // abandoned: its task was dropped

  State state() const { return state_.load(std::memory_order_acquire); }

  // By the task on `stream`: everything up to `sequence` has ended.
  void Complete(std::shared_ptr<Stream> stream, uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_) { Finish(State::kAbandoned); }

  // Wakes the stream's running task when the record is finished; at once if it is.
  void WakeWhenFinished(std::shared_ptr<Stream> stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until the record is finished. False: `deadline` passed first.
  bool WaitUntilFinished(Deadline deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Once complete.
  Clock::time_point completed_at() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns and clears the failure of a task before the record. 0 if there is none left.
  aclError TakeError() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Finish(State state) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<State> state_{State::kPending};
  Mutex mutex_;
  CondVar finished_;
  Clock::time_point completed_at_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Stream>> to_wake_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe.
class Event {
 public:
  // The function that creates it. Events differ by it before they are recorded.
  enum class Form {
    kPlain,  // aclrtCreateEvent: not ready, cannot be waited for
    kFlag,   // aclrtCreateEventWithFlag: not ready, a wait stands until the record
    kEx,     // aclrtCreateEventExWithFlag: complete
  };

  Event(Device& device, uint32_t id, uint32_t flags, Form form)
      : device_(device),
        id_(id),
        flags_(flags),
        form_(form),
        flag_(form == Form::kFlag ? std::make_shared<Flag>() : nullptr) {}

  Device& device() const { return device_; }
  uint32_t id() const { return id_; }
  bool has_flag(uint32_t flag) const { return (flags_ & flag) != 0; }
  Form form() const { return form_; }
  // Set by records, cleared by resets. Null unless the form is kFlag.
  const std::shared_ptr<Flag>& flag() const { return flag_; }

  // Null: not recorded.
  std::shared_ptr<EventRecord> latest() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return latest_;
  }
  void set_latest(std::shared_ptr<EventRecord> record) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    latest_ = std::move(record);
    captured_ = {};
  }

  // The latest record, if it is part of a capture.
  struct CapturedRecord {
    std::weak_ptr<Capture> capture;
    std::map<int32_t, uint64_t> progress;  // up to the record, as capture.h has it
  };
  CapturedRecord captured() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return captured_;
  }
  void set_captured(CapturedRecord record) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    captured_ = std::move(record);
  }

  // Back to the state before the first record. A record that is still queued stays.
  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);

  // Stream waits on this event that have not ended; shared with their tasks.
  const std::shared_ptr<std::atomic<int>>& pending_waits() const { return pending_waits_; }

 private:
  Device& device_;
  const uint32_t id_;
  const uint32_t flags_;
  const Form form_;
  const std::shared_ptr<Flag> flag_;
  const std::shared_ptr<std::atomic<int>> pending_waits_ = std::make_shared<std::atomic<int>>(0);
  Mutex mutex_;
  std::shared_ptr<EventRecord> latest_ ABSL_GUARDED_BY(mutex_);
  CapturedRecord captured_ ABSL_GUARDED_BY(mutex_);
};

// Completes `record`, and sets `flag` unless it is null, when its turn comes.
std::unique_ptr<Task> MakeRecordTask(std::shared_ptr<EventRecord> record,
                                     std::shared_ptr<Flag> flag);

// Resets the event when its turn comes.
std::unique_ptr<Task> MakeResetTask(std::shared_ptr<Event> event);

// Waits for `record`, or for `flag`, at most `limit_us` microseconds from its start (0: for ever).
std::unique_ptr<Task> MakeWaitTask(std::shared_ptr<EventRecord> record,
                                   std::shared_ptr<std::atomic<int>> pending_waits,
                                   uint64_t limit_us);
std::unique_ptr<Task> MakeWaitTask(std::shared_ptr<Flag> flag,
                                   std::shared_ptr<std::atomic<int>> pending_waits,
                                   uint64_t limit_us);

}  // namespace opserve::host_cann
