#include "ops/host_cann/runtime/event.h"

#include <algorithm>
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

void EventFlag::Set() {
  std::vector<std::shared_ptr<Stream>> to_wake;
  {
    MutexLock lock(mutex_);
    is_set_.store(true, std::memory_order_release);
    to_wake.swap(to_wake_);
  }
  for (const std::shared_ptr<Stream>& stream : to_wake) stream->Wake();
}

void EventFlag::WakeWhenSet(std::shared_ptr<Stream> stream) {
  {
    MutexLock lock(mutex_);
    if (!is_set()) {
      if (std::find(to_wake_.begin(), to_wake_.end(), stream) == to_wake_.end()) {
        to_wake_.push_back(std::move(stream));
      }
      return;
    }
  }
  stream->Wake();
}

void Event::Reset() {
  if (flag_ != nullptr) flag_->Clear();
  MutexLock lock(mutex_);
  if (latest_ != nullptr && latest_->state() != EventRecord::State::kPending) latest_ = nullptr;
}

namespace {

class RecordTask final : public Task {
 public:
  RecordTask(std::shared_ptr<EventRecord> record, std::shared_ptr<EventFlag> flag)
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
  const std::shared_ptr<EventFlag> flag_;
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

void WakeWhenOver(EventRecord& record, std::shared_ptr<Stream> stream) {
  record.WakeWhenFinished(std::move(stream));
}
void WakeWhenOver(EventFlag& flag, std::shared_ptr<Stream> stream) {
  flag.WakeWhenSet(std::move(stream));
}

// Whether the wait ends. One that can never end stands until the stream is ended, as on the device.
bool IsOver(const EventRecord& record, bool releasing) {
  const EventRecord::State state = record.state();
  return state == EventRecord::State::kComplete ||
         (releasing && state == EventRecord::State::kAbandoned);
}
bool IsOver(const EventFlag& flag, bool releasing) { return releasing || flag.is_set(); }

// Waits for an EventRecord or an EventFlag.
template <typename Awaited>
class WaitTask final : public Task {
 public:
  WaitTask(std::shared_ptr<Awaited> awaited, std::shared_ptr<std::atomic<int>> pending_waits,
           uint64_t limit_us)
      : awaited_(std::move(awaited)),
        pending_waits_(std::move(pending_waits)),
        limit_us_(limit_us) {
    ++*pending_waits_;
  }
  ~WaitTask() override { --*pending_waits_; }

  TaskResult Run(Stream& stream) override {
    WakeWhenOver(*awaited_, stream.shared_from_this());
    Deadline deadline;
    if (limit_us_ > 0) deadline = Clock::now() + std::chrono::microseconds(limit_us_);
    const auto waited = stream.WaitInTask(
        deadline, [this](bool releasing) { return IsOver(*awaited_, releasing); });
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
  const std::shared_ptr<Awaited> awaited_;
  const std::shared_ptr<std::atomic<int>> pending_waits_;
  const uint64_t limit_us_;
};

}  // namespace

std::unique_ptr<Task> MakeRecordTask(std::shared_ptr<EventRecord> record,
                                     std::shared_ptr<EventFlag> flag) {
  return std::make_unique<RecordTask>(std::move(record), std::move(flag));
}

std::unique_ptr<Task> MakeResetTask(std::shared_ptr<Event> event) {
  return std::make_unique<ResetTask>(std::move(event));
}

std::unique_ptr<Task> MakeWaitTask(std::shared_ptr<EventRecord> record,
                                   std::shared_ptr<std::atomic<int>> pending_waits,
                                   uint64_t limit_us) {
  return std::make_unique<WaitTask<EventRecord>>(std::move(record), std::move(pending_waits),
                                                 limit_us);
}

std::unique_ptr<Task> MakeWaitTask(std::shared_ptr<EventFlag> flag,
                                   std::shared_ptr<std::atomic<int>> pending_waits,
                                   uint64_t limit_us) {
  return std::make_unique<WaitTask<EventFlag>>(std::move(flag), std::move(pending_waits), limit_us);
}

}  // namespace opserve::host_cann
