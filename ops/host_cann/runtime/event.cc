#include "ops/host_cann/runtime/event.h"

#include <utility>

#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

void EventRecord::Finish(State state) {
  // The streams are woken outside the record's lock: Wake takes the stream's, under which a waiting
  // task looks at the record.
  std::vector<std::shared_ptr<Stream>> to_wake;
  {
    MutexLock lock(mutex_);
    // Under the lock, so that no waiter registers or falls asleep between the change and its
    // wake-up.
    state_.store(state, std::memory_order_release);
    to_wake.swap(to_wake_);
    finished_.NotifyAll();
  }
  for (const std::shared_ptr<Stream>& stream : to_wake) stream->Wake();
}

void EventRecord::Complete(std::shared_ptr<Stream> stream, uint64_t sequence) {
  {
    // The members that TakeError and completed_at read are in place before the state says so.
    MutexLock lock(mutex_);
    completed_at_ = Clock::now();
    stream_ = std::move(stream);
    sequence_ = sequence;
  }
  Finish(State::kComplete);
}

void EventRecord::WakeWhenFinished(std::shared_ptr<Stream> stream) {
  {
    MutexLock lock(mutex_);
    // Checked under the lock: a record that finishes now either sees the stream in the list or is
    // seen here.
    if (state() == State::kPending) {
      to_wake_.push_back(std::move(stream));
      return;
    }
  }
  // Finished already: the task looks at once instead of sleeping for a wake-up that has gone by.
  stream->Wake();
}

bool EventRecord::WaitUntilFinished(Deadline deadline) {
  MutexLock lock(mutex_);
  while (state() == State::kPending) {
    // Time and record may end together; the record wins.
    if (!finished_.Wait(mutex_, deadline) && state() == State::kPending) return false;
  }
  return true;
}

Clock::time_point EventRecord::completed_at() {
  MutexLock lock(mutex_);
  return completed_at_;
}

aclError EventRecord::TakeError() {
  std::shared_ptr<Stream> stream;
  uint64_t sequence = 0;
  {
    MutexLock lock(mutex_);
    // Kept as a stream and a number, not as a code: a failure is reported once, by whichever
    // synchronise comes first, so it must stay with the stream until then.
    stream = stream_;
    sequence = sequence_;
  }
  return stream == nullptr ? ACL_SUCCESS : stream->TakeError(sequence);
}

void Event::Reset() {
  if (flag_ != nullptr) flag_->Take();
  MutexLock lock(mutex_);
  // A pending record stays, so that a synchronise after the reset still waits for the stream.
  if (latest_ != nullptr && latest_->state() != EventRecord::State::kPending) latest_ = nullptr;
}

namespace {

class RecordTask final : public Task {
 public:
  RecordTask(std::shared_ptr<EventRecord> record, std::shared_ptr<Flag> flag)
      : record_(std::move(record)), flag_(std::move(flag)) {}

  TaskResult Run(Stream& stream) override {
    record_->Complete(stream.shared_from_this(), sequence());
    // After the record, so that nothing behind a wait for the flag finds the record pending.
    if (flag_ != nullptr) flag_->Set();
    return {};
  }
  // Without this, threads in aclrtSynchronizeEvent would sleep for ever after an abort.
  void Drop() override { record_->Abandon(); }
  const char* name() const override { return "event record"; }
  // Comes on a lost device too: programs that wait for it go on to the call that reports the loss.
  bool needs_device() const override { return false; }

 private:
  const std::shared_ptr<EventRecord> record_;
  const std::shared_ptr<Flag> flag_;
};

class ResetTask final : public Task {
 public:
  explicit ResetTask(std::shared_ptr<Event> event) : event_(std::move(event)) {}

  TaskResult Run(Stream&) override {
    event_->Reset();
    return {};
  }
  const char* name() const override { return "event reset"; }
  bool needs_device() const override { return false; }

 private:
  const std::shared_ptr<Event> event_;
};

// The common part of both kinds of wait.
class WaitTask : public Task {
 public:
  WaitTask(std::shared_ptr<std::atomic<int>> pending_waits, uint64_t limit_us)
      : pending_waits_(std::move(pending_waits)), limit_us_(limit_us) {
    // Counted from the queueing, not from the run: a wait that is queued has not ended either,
    // which is the question of aclrtQueryEventWaitStatus.
    ++*pending_waits_;
  }
  ~WaitTask() override { --*pending_waits_; }

  const char* name() const override { return "event wait"; }
  // It waits for another stream's task, which may need the very thread that would be blocked here.
  bool runs_on_any_thread() const override { return false; }

 protected:
  uint64_t limit_us() const { return limit_us_; }

 private:
  const std::shared_ptr<std::atomic<int>> pending_waits_;
  const uint64_t limit_us_;
};

class RecordWaitTask final : public WaitTask {
 public:
  RecordWaitTask(std::shared_ptr<EventRecord> record,
                 std::shared_ptr<std::atomic<int>> pending_waits, uint64_t limit_us)
      : WaitTask(std::move(pending_waits), limit_us), record_(std::move(record)) {}

  TaskResult Run(Stream& stream) override {
    record_->WakeWhenFinished(stream.shared_from_this());
    // An abandoned record is waited for until the stream is ended, as on the device.
    return WaitAtMost(stream, limit_us(), "an event", [this](bool releasing) {
      // A forced reset releases waits for records that will never come. A record that is still
      // pending is left to its own stream, which is released as well.
      const EventRecord::State state = record_->state();
      return state == EventRecord::State::kComplete ||
             (releasing && state == EventRecord::State::kAbandoned);
    });
  }

 private:
  const std::shared_ptr<EventRecord> record_;
};

// The flag stays set: each wait until the reset passes. A notify lets one wait pass.
class FlagWaitTask final : public WaitTask {
 public:
  FlagWaitTask(std::shared_ptr<Flag> flag, std::shared_ptr<std::atomic<int>> pending_waits,
               uint64_t limit_us)
      : WaitTask(std::move(pending_waits), limit_us), flag_(std::move(flag)) {}

  TaskResult Run(Stream& stream) override {
    // Registered before the first look, so that no set is missed between the look and the sleep.
    const Waiters::Scope waiter(flag_->waiters(), stream.shared_from_this());
    return WaitAtMost(stream, limit_us(), "an event",
                      [this](bool releasing) { return releasing || flag_->is_set(); });
  }

 private:
  const std::shared_ptr<Flag> flag_;
};

}  // namespace

std::unique_ptr<Task> MakeRecordTask(std::shared_ptr<EventRecord> record,
                                     std::shared_ptr<Flag> flag) {
  return std::make_unique<RecordTask>(std::move(record), std::move(flag));
}

std::unique_ptr<Task> MakeResetTask(std::shared_ptr<Event> event) {
  return std::make_unique<ResetTask>(std::move(event));
}

std::unique_ptr<Task> MakeWaitTask(std::shared_ptr<EventRecord> record,
                                   std::shared_ptr<std::atomic<int>> pending_waits,
                                   uint64_t limit_us) {
  return std::make_unique<RecordWaitTask>(std::move(record), std::move(pending_waits), limit_us);
}

std::unique_ptr<Task> MakeWaitTask(std::shared_ptr<Flag> flag,
                                   std::shared_ptr<std::atomic<int>> pending_waits,
                                   uint64_t limit_us) {
  return std::make_unique<FlagWaitTask>(std::move(flag), std::move(pending_waits), limit_us);
}

}  // namespace opserve::host_cann
