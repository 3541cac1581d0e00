#include "ops/host_cann/runtime/event.h"

#include <utility>

#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

void EventRecord::Finish(State state) {
  std::vector<std::shared_ptr<Stream>> to_wake;
  {
    MutexLock lock(mutex_);
    state_.store(state, std::memory_order_release);
    to_wake.swap(to_wake_);
    finished_.NotifyAll();
  }
  for (const std::shared_ptr<Stream>& stream : to_wake) stream->Wake();
}

void EventRecord::Complete(std::shared_ptr<Stream> stream, uint64_t sequence) {
  {
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
    if (state() == State::kPending) {
      to_wake_.push_back(std::move(stream));
      return;
    }
  }
  stream->Wake();
}

bool EventRecord::WaitUntilFinished(Deadline deadline) {
  MutexLock lock(mutex_);
  while (state() == State::kPending) {
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
    stream = stream_;
    sequence = sequence_;
  }
  return stream == nullptr ? ACL_SUCCESS : stream->TakeError(sequence);
}

void Event::Reset() {
  if (flag_ != nullptr) flag_->Take();
  MutexLock lock(mutex_);
  if (latest_ != nullptr && latest_->state() != EventRecord::State::kPending) latest_ = nullptr;
}

namespace {

class RecordTask final : public Task {
 public:
  RecordTask(std::shared_ptr<EventRecord> record, std::shared_ptr<Flag> flag)
      : record_(std::move(record)), flag_(std::move(flag)) {}

  TaskResult Run(Stream& stream) override {
    record_->Complete(stream.shared_from_this(), sequence());
    if (flag_ != nullptr) flag_->Set();
    return {};
  }
  void Drop() override { record_->Abandon(); }
  const char* name() const override { return "event record"; }
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
    ++*pending_waits_;
  }
  ~WaitTask() override { --*pending_waits_; }

  const char* name() const override { return "event wait"; }
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
      const EventRecord::State state = record_->state();
      return state == EventRecord::State::kComplete ||
             (releasing && state == EventRecord::State::kAbandoned);
    });
  }

 private:
  const std::shared_ptr<EventRecord> record_;
};

class FlagWaitTask final : public WaitTask {
 public:
  FlagWaitTask(std::shared_ptr<Flag> flag, std::shared_ptr<std::atomic<int>> pending_waits,
               uint64_t limit_us)
      : WaitTask(std::move(pending_waits), limit_us), flag_(std::move(flag)) {}

  TaskResult Run(Stream& stream) override {
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
