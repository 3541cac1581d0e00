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

namespace {

class RecordTask final : public Task {
 public:
  explicit RecordTask(std::shared_ptr<EventRecord> record) : record_(std::move(record)) {}

  TaskResult Run(Stream& stream) override {
    record_->Complete(stream.shared_from_this(), sequence());
    return {};
  }
  void Drop() override { record_->Abandon(); }
  const char* name() const override { return "event record"; }
  bool needs_device() const override { return false; }

 private:
  const std::shared_ptr<EventRecord> record_;
};

class WaitTask final : public Task {
 public:
  WaitTask(std::shared_ptr<EventRecord> record, std::shared_ptr<std::atomic<int>> pending_waits,
           uint64_t limit_us)
      : record_(std::move(record)), pending_waits_(std::move(pending_waits)), limit_us_(limit_us) {
    ++*pending_waits_;
  }
  ~WaitTask() override { --*pending_waits_; }

  TaskResult Run(Stream& stream) override {
    record_->WakeWhenFinished(stream.shared_from_this());
    Deadline deadline;
    if (limit_us_ > 0) deadline = Clock::now() + std::chrono::microseconds(limit_us_);
    // An abandoned record is waited for until someone ends the stream, as on the device.
    const auto waited = stream.WaitInTask(deadline, [this](bool releasing) {
      const EventRecord::State state = record_->state();
      return state == EventRecord::State::kComplete ||
             (releasing && state == EventRecord::State::kAbandoned);
    });
    switch (waited) {
      case Stream::Waited::kReady:
        return {};
      case Stream::Waited::kCancelled:
        return TaskResult::Cancelled();
      case Stream::Waited::kTimeout:
        break;
    }
    return TaskResult::Failure(
        ACL_ERROR_RT_TASK_TIMEOUT,
        Concat("waiting for an event took longer than ", limit_us_, " microseconds"));
  }
  const char* name() const override { return "event wait"; }
  bool runs_on_any_thread() const override { return false; }

 private:
  const std::shared_ptr<EventRecord> record_;
  const std::shared_ptr<std::atomic<int>> pending_waits_;
  const uint64_t limit_us_;
};

}  // namespace

std::unique_ptr<Task> MakeRecordTask(std::shared_ptr<EventRecord> record) {
  return std::make_unique<RecordTask>(std::move(record));
}

std::unique_ptr<Task> MakeWaitTask(std::shared_ptr<EventRecord> record,
                                   std::shared_ptr<std::atomic<int>> pending_waits,
                                   uint64_t limit_us) {
  return std::make_unique<WaitTask>(std::move(record), std::move(pending_waits), limit_us);
}

}  // namespace opserve::host_cann
