#include "ops/host_cann/runtime/stream.h"

#include <unistd.h>

#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/compute_thread.h"
#include "ops/host_cann/runtime/context.h"
#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/exception_info.h"
#include "ops/host_cann/runtime/report_threads.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

Stream::Stream(std::shared_ptr<Context> context, int32_t id, Config config)
    : context_(std::move(context)), id_(id), config_(config) {}

Stream::~Stream() = default;

Device& Stream::device() const { return context_->device(); }

bool Stream::IsCancelled() const {
  return aborting_ > 0 || closed_ || device().lost_code() != ACL_SUCCESS;
}

bool Stream::IsInterrupted() const {
  return is_interrupted_.load(std::memory_order_relaxed) || device().lost_code() != ACL_SUCCESS;
}

aclError Stream::CheckOpen() const {
  if (closed_) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "the stream has been destroyed");
  }
  if (const aclError code = context_->stop_code()) {
    return Fail(code, kInternal, "the context has stopped after the failure of a task");
  }
  if (queue_.size() >= kMaxQueuedTasks) {
    return Fail(ACL_ERROR_RT_STREAM_TASK_FULL, kExhausted,
                Concat("the stream has ", kMaxQueuedTasks, " tasks queued, which is the limit"));
  }
  return ACL_SUCCESS;
}

void Stream::Push(std::unique_ptr<Task> task) {
  thread_local const uint32_t thread_id = static_cast<uint32_t>(gettid());
  task->sequence_ = ++queued_;
  task->thread_id_ = thread_id;
  SetThreadLastTaskId(static_cast<uint32_t>(queued_));
  queue_.push_back(std::move(task));
}

bool Stream::StartWorker() {
  if (worker_started_) return true;
  try {
    // Detached: it ends with the stream, or with the process if a task hangs.
    std::thread([self = shared_from_this()] { self->Work(); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  worker_started_ = true;
  return true;
}

aclError Stream::Enqueue(std::unique_ptr<Task> task) {
  {
    MutexLock lock(mutex_);
    RETURN_IF_FAILED(CheckOpen());
    if (capture_ != nullptr) return capture_->Record(*this, task);
    if (update_ != nullptr) return update_->Take(*this, task);
    task->OnAccepted(*this, /*is_captured=*/false);
    if (aborting_ == 0 && task->is_prompt() && queue_.empty() && !executing_) {
      Push(std::move(task));
      RunQueued(queued_, /*on_worker=*/false);
      return ACL_SUCCESS;
    }
    if (aborting_ == 0) {
      if (!StartWorker()) {
        return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, kExhausted,
                    "the system has no thread for the stream");
      }
      Push(std::move(task));
      if (!executing_) work_arrived_.NotifyOne();
      return ACL_SUCCESS;
    }
  }
  task->Drop();
  return ACL_SUCCESS;
}

aclError Stream::RunInOrder(std::unique_ptr<Task> task) {
  TaskResult result;
  {
    MutexLock lock(mutex_);
    RETURN_IF_FAILED(CheckOpen());
    task->OnAccepted(*this, /*is_captured=*/false);
    task->result_ = &result;
    const uint64_t epoch = abort_epoch_;
    if (aborting_ == 0) {
      Push(std::move(task));
      WaitUntilCompleted(queued_, std::nullopt);
    }
    if (task != nullptr || abort_epoch_ != epoch) result = TaskResult::Cancelled();
  }
  if (task != nullptr) task->Drop();
  if (result.code == ACL_SUCCESS) return ACL_SUCCESS;
  return Fail(result.code, kInternal, result.text);
}

bool Stream::MayExecuteNext(const Deadline& deadline) const {
  if (executing_ || queue_.empty() || !queue_.front()->runs_on_any_thread()) return false;
  if (!deadline) return true;
  constexpr std::chrono::seconds kEnough(1);
  return queue_.front()->work() <= kShortWork && *deadline - Clock::now() > kEnough;
}

bool Stream::WaitUntilCompleted(uint64_t sequence, Deadline deadline) {
  ++waiters_;
  bool in_time = true;
  while (completed_ < sequence && in_time) {
    if (MayExecuteNext(deadline)) {
      // With a deadline one at a time: it may be near after the next one.
      RunQueued(deadline ? queue_.front()->sequence_ : sequence, /*on_worker=*/false);
    } else {
      in_time = task_completed_.Wait(mutex_, deadline);
    }
  }
  --waiters_;
  return completed_ >= sequence;
}

aclError Stream::Wait(Deadline deadline) {
  MutexLock lock(mutex_);
  const uint64_t epoch = abort_epoch_;
  if (!WaitUntilCompleted(queued_, deadline)) {
    return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, kSyncTimeout,
                Concat("stream ", id_, " still has tasks at the timeout"));
  }
  if (abort_epoch_ != epoch) {
    return Fail(ACL_ERROR_RT_STREAM_ABORT, kInternal, Concat("stream ", id_, " was aborted"));
  }
  if (closed_) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument,
                Concat("stream ", id_, " has been destroyed"));
  }
  return ACL_SUCCESS;
}

aclError Stream::TakeError(uint64_t sequence) {
  RETURN_IF_FAILED(device().CheckNotLost());
  MutexLock lock(mutex_);
  if (error_.code == ACL_SUCCESS || error_sequence_ > sequence) {
    const aclError stopped = context_->stop_code();
    if (stopped == ACL_SUCCESS) return ACL_SUCCESS;
    return Fail(stopped, kInternal, "the context has stopped after the failure of a task");
  }
  const TaskResult error = std::exchange(error_, {});
  return Fail(error.code, kInternal, error.text);
}

bool Stream::IsIdle() {
  MutexLock lock(mutex_);
  return completed_ == queued_;
}

std::deque<std::unique_ptr<Task>> Stream::CancelAll() {
  std::deque<std::unique_ptr<Task>> dropped;
  dropped.swap(queue_);
  if (!executing_) completed_ = queued_;
  task_wakes_.NotifyAll();
  task_completed_.NotifyAll();
  return dropped;
}

bool Stream::Abort(Deadline deadline) {
  std::deque<std::unique_ptr<Task>> dropped;
  bool in_time = true;
  {
    MutexLock lock(mutex_);
    ++abort_epoch_;
    ++aborting_;
    if (capture_ != nullptr) capture_->Invalidate();
    is_interrupted_ = true;
    dropped = CancelAll();
    ++waiters_;
    while (executing_ && in_time) in_time = task_completed_.Wait(mutex_, deadline);
    --waiters_;
    --aborting_;
    error_ = {};
    in_time = !executing_;
  }
  for (const std::unique_ptr<Task>& task : dropped) task->Drop();
  return in_time;
}

void Stream::ReleaseHangs() {
  MutexLock lock(mutex_);
  releasing_ = true;
  is_interrupted_ = true;
  task_wakes_.NotifyAll();
}

void Stream::Close() {
  std::deque<std::unique_ptr<Task>> dropped;
  std::shared_ptr<Capture> capture;
  std::unique_ptr<TaskUpdate> update;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    capture.swap(capture_);
    update.swap(update_);
    is_interrupted_ = true;
    dropped = CancelAll();
    work_arrived_.NotifyAll();
  }
  if (capture != nullptr) capture->Invalidate();
  for (const std::unique_ptr<Task>& task : dropped) task->Drop();
  Unsubscribe();
}

void Stream::Wake() {
  MutexLock lock(mutex_);
  task_wakes_.NotifyAll();
}

bool Stream::Subscribe(std::shared_ptr<ReportSubscription> subscription) {
  MutexLock lock(mutex_);
  if (subscription_ != nullptr || closed_) return false;
  subscription_ = std::move(subscription);
  return true;
}

void Stream::Unsubscribe() {
  std::shared_ptr<ReportSubscription> ended;  // declared first: it ends outside the lock
  MutexLock lock(mutex_);
  ended.swap(subscription_);
}

std::shared_ptr<ReportSubscription> Stream::subscription() {
  MutexLock lock(mutex_);
  return subscription_;
}

void Stream::SetAllocator(std::shared_ptr<const Allocator> allocator) {
  MutexLock lock(mutex_);
  allocator_ = std::move(allocator);
}

std::shared_ptr<const Allocator> Stream::allocator() {
  MutexLock lock(mutex_);
  return allocator_;
}

aclError Stream::CheckNotRecording() const {
  if (capture_ != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, kCallOrder,
                Concat("stream ", id_, " is being captured"));
  }
  if (update_ != nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, kCallOrder,
                Concat("stream ", id_, " updates a group of tasks"));
  }
  return ACL_SUCCESS;
}

aclError Stream::EnterCapture(std::shared_ptr<Capture> capture) {
  MutexLock lock(mutex_);
  RETURN_IF_FAILED(CheckOpen());
  RETURN_IF_FAILED(CheckNotRecording());
  capture_ = std::move(capture);
  return ACL_SUCCESS;
}

void Stream::LeaveCapture(const Capture& capture) {
  MutexLock lock(mutex_);
  if (capture_.get() == &capture) capture_ = nullptr;
}

std::shared_ptr<Capture> Stream::capture() {
  MutexLock lock(mutex_);
  return capture_;
}

aclError Stream::BeginUpdate(std::unique_ptr<TaskUpdate> update) {
  MutexLock lock(mutex_);
  RETURN_IF_FAILED(CheckNotRecording());
  update_ = std::move(update);
  return ACL_SUCCESS;
}

std::unique_ptr<TaskUpdate> Stream::TakeUpdate() {
  MutexLock lock(mutex_);
  return std::move(update_);
}

aclError Stream::SetStopOnFailure(bool stop) {
  MutexLock lock(mutex_);
  if (failure_mode_set_) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kCallOrder,
                "the failure mode of a stream can be set only once");
  }
  failure_mode_set_ = true;
  stop_on_failure_ = stop;
  return ACL_SUCCESS;
}

bool Stream::stop_on_failure() {
  MutexLock lock(mutex_);
  return stop_on_failure_;
}

void Stream::Work() {
  BeginComputeThread("cann-stream");
  MutexLock lock(mutex_);
  while (!closed_) {
    if (queue_.empty() || executing_) {
      work_arrived_.Wait(mutex_);
    } else {
      RunQueued(UINT64_MAX, /*on_worker=*/true);
    }
  }
}

void Stream::RunQueued(uint64_t last_sequence, bool on_worker) {
  executing_ = true;
  while (!queue_.empty() && queue_.front()->sequence_ <= last_sequence &&
         (on_worker || queue_.front()->runs_on_any_thread())) {
    std::unique_ptr<Task> task = std::move(queue_.front());
    queue_.pop_front();
    const uint64_t epoch = abort_epoch_;
    const uint64_t sequence = task->sequence_;
    is_interrupted_ = aborting_ > 0 || releasing_ || closed_;
    mutex_.Unlock();

    TaskResult result = Execute(*task);
    const bool failed = result.code != ACL_SUCCESS && !result.cancelled;
    if (failed) {
      ReportException({device().id(), id_, sequence, task->thread_id_, result.code});
      device().NoteFault(result.code);
    }

    mutex_.Lock();
    if (task->result_ != nullptr) {
      *task->result_ = std::move(result);
    } else if (failed && epoch == abort_epoch_) {
      NoteFailure(*task, result);
    }
    mutex_.Unlock();
    task.reset();  // may release memory, and must have before anyone sees the task completed
    mutex_.Lock();

    completed_ = queue_.empty() ? queued_ : sequence;
    if (waiters_ > 0) task_completed_.NotifyAll();
  }
  executing_ = false;
  if (waiters_ > 0) task_completed_.NotifyAll();
  if (!on_worker && !queue_.empty() && StartWorker()) work_arrived_.NotifyOne();
}

TaskResult Stream::Execute(Task& task) {
  if (const aclError stopped = context_->stop_code()) {
    task.Drop();
    return {stopped, "the context has stopped after the failure of a task", /*cancelled=*/true};
  }
  const auto lost = [&]() -> TaskResult {
    return {device().lost_code(),
            Concat(task.name(), " failed: device ", device().id(), " is lost")};
  };
  const bool needs_device = task.needs_device();
  if (needs_device && device().lost_code() != ACL_SUCCESS) {
    task.Drop();
    return lost();
  }
  TaskResult result;
  try {
    result = task.Run(*this);
  } catch (const std::exception& e) {
    result = TaskResult::Failure(ACL_ERROR_RT_INTERNAL_ERROR, Concat(task.name(), ": ", e.what()));
  }
  if (needs_device && device().lost_code() != ACL_SUCCESS) return lost();
  return result;
}

void Stream::NoteFailure(const Task& task, const TaskResult& result) {
  // The code of the last failure is reported, to synchronises from the first failed task on.
  if (error_.code == ACL_SUCCESS) error_sequence_ = task.sequence_;
  error_ = result;
  error_.text = Concat("task ", task.sequence_, " of stream ", id_, ": ", result.text);
  if (stop_on_failure_) context_->Stop(result.code);
}

}  // namespace opserve::host_cann
