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

// Guarded state only: a task in WaitInTask holds the lock and looks at it each time it wakes.
bool Stream::IsCancelled() const {
  return aborting_ > 0 || closed_ || device().lost_code() != ACL_SUCCESS;
}

// The copy of the same state for kernels, which ask between their parts and must not contend for
// the lock. Relaxed: a stop that is seen one part later does no harm.
bool Stream::IsInterrupted() const {
  return is_interrupted_.load(std::memory_order_relaxed) || device().lost_code() != ACL_SUCCESS;
}

aclError Stream::CheckOpen() const {
  if (closed_) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "the stream has been destroyed");
  }
  // ACL_STOP_ON_FAILURE stops all streams of the context, so the code lives there.
  if (const aclError code = context_->stop_code()) {
    return Fail(code, kInternal, "the context has stopped after the failure of a task");
  }
  // The limit is that of the queue, not of the device: a program that never waits gets an answer
  // instead of all memory.
  if (queue_.size() >= kMaxQueuedTasks) {
    return Fail(ACL_ERROR_RT_STREAM_TASK_FULL, kExhausted,
                Concat("the stream has ", kMaxQueuedTasks, " tasks queued, which is the limit"));
  }
  return ACL_SUCCESS;
}

void Stream::Push(std::unique_ptr<Task> task) {
  // A system call that does not change its answer within a thread.
  thread_local const uint32_t thread_id = static_cast<uint32_t>(gettid());
  task->sequence_ = ++queued_;
  task->thread_id_ = thread_id;
  SetThreadLastTaskId(static_cast<uint32_t>(queued_));
  queue_.push_back(std::move(task));
}

bool Stream::StartWorker() {
  // Called under the lock, at the first task that another thread must run. A stream of prompt
  // tasks, or of calls that all wait, never has a thread.
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
    // Before OnAccepted: the capture or the update calls it itself, with is_captured, and refuses
    // some tasks.
    if (capture_ != nullptr) return capture_->Record(*this, task);
    if (update_ != nullptr) return update_->Take(*this, task);
    task->OnAccepted(*this, /*is_captured=*/false);
    // An empty queue of an idle stream keeps the order: no earlier task is waiting or running.
    if (aborting_ == 0 && task->is_prompt() && queue_.empty() && !executing_) {
      Push(std::move(task));
      RunQueued(queued_, /*on_worker=*/false);
      return ACL_SUCCESS;
    }
    if (aborting_ == 0) {
      // Before Push: after a failure here the task has not become part of the stream.
      if (!StartWorker()) {
        return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, kExhausted,
                    "the system has no thread for the stream");
      }
      Push(std::move(task));
      // An executing thread goes on with the queue itself, or wakes the worker when it leaves.
      if (!executing_) work_arrived_.NotifyOne();
      return ACL_SUCCESS;
    }
  }
  // The stream is being aborted: tasks queued meanwhile have no effect, and that is no error. The
  // drop is outside the lock, as it may wake other streams.
  task->Drop();
  return ACL_SUCCESS;
}

aclError Stream::RunInOrder(std::unique_ptr<Task> task) {
  TaskResult result;
  {
    MutexLock lock(mutex_);
    RETURN_IF_FAILED(CheckOpen());
    task->OnAccepted(*this, /*is_captured=*/false);
    // Safe although `result` is on the stack: without a deadline the wait below ends only after the
    // task has written it or was dropped.
    task->result_ = &result;
    const uint64_t epoch = abort_epoch_;
    if (aborting_ == 0) {
      Push(std::move(task));
      WaitUntilCompleted(queued_, std::nullopt);
    }
    // An abort that came first kept the task out of the queue; one that came later dropped it or
    // cut it short. Both leave `result` without meaning.
    if (task != nullptr || abort_epoch_ != epoch) result = TaskResult::Cancelled();
  }
  if (task != nullptr) task->Drop();
  if (result.code == ACL_SUCCESS) return ACL_SUCCESS;
  return Fail(result.code, kInternal, result.text);
}

bool Stream::MayExecuteNext(const Deadline& deadline) const {
  if (executing_ || queue_.empty() || !queue_.front()->runs_on_any_thread()) return false;
  // Without a deadline the caller would wait for the task anyway, however long it takes.
  if (!deadline) return true;
  // Enough for ten times as long as work of kShortWork takes. A deadline nearer than this needs a
  // thread that can leave in time, and a task on this thread cannot be left.
  constexpr std::chrono::seconds kEnough(1);
  return queue_.front()->work() <= kShortWork && *deadline - Clock::now() > kEnough;
}

// The waiting thread is a second worker: it executes tasks while no other thread does, and sleeps
// otherwise.
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
  // The epoch tells an abort during the wait from tasks that ended: CancelAll counts dropped tasks
  // as completed.
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
  // First: a lost device's code must not be hidden by an older failure of a task, and is not
  // cleared.
  RETURN_IF_FAILED(device().CheckNotLost());
  MutexLock lock(mutex_);
  // An event's synchronise ends here if the only failures are of tasks behind the event.
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
  // The dropped tasks end with their caller, after the lock: they may hold memory or be the last
  // owner of other objects.
  std::deque<std::unique_ptr<Task>> dropped;
  dropped.swap(queue_);
  // With a task running, the thread that executes it completes all of them when it ends.
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
    // Tells waiters that their tasks were dropped: CancelAll counts those as completed.
    ++abort_epoch_;
    ++aborting_;
    // The stream's lock is taken before the capture's here; Capture::End therefore leaves its own
    // before it asks streams to leave.
    if (capture_ != nullptr) capture_->Invalidate();
    is_interrupted_ = true;
    dropped = CancelAll();
    // Counted as a waiter: RunQueued notifies only if there are some.
    ++waiters_;
    while (executing_ && in_time) in_time = task_completed_.Wait(mutex_, deadline);
    --waiters_;
    --aborting_;
    // A failure before the abort is not reported after it: the caller gave up these tasks.
    error_ = {};
    in_time = !executing_;
  }
  for (const std::unique_ptr<Task>& task : dropped) task->Drop();
  return in_time;
}

void Stream::ReleaseHangs() {
  MutexLock lock(mutex_);
  releasing_ = true;
  // Set for the running task and remembered for those behind it: RunQueued copies it to each.
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
    // The capture and the update end outside the lock. Both hold tasks, and tasks hold streams.
    capture.swap(capture_);
    update.swap(update_);
    is_interrupted_ = true;
    dropped = CancelAll();
    // The worker leaves its loop, and with it its reference to the stream.
    work_arrived_.NotifyAll();
  }
  if (capture != nullptr) capture->Invalidate();
  for (const std::unique_ptr<Task>& task : dropped) task->Drop();
  // Callbacks that the subscribed thread has not begun are dropped.
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
  // Held between tasks; RunQueued gives it up while one runs.
  MutexLock lock(mutex_);
  while (!closed_) {
    // A thread that waits for the stream may be executing: the worker sleeps until that one hands
    // back.
    if (queue_.empty() || executing_) {
      work_arrived_.Wait(mutex_);
    } else {
      RunQueued(UINT64_MAX, /*on_worker=*/true);
    }
  }
}

void Stream::RunQueued(uint64_t last_sequence, bool on_worker) {
  // From here on no other thread starts a task, which is the only reason why tasks are in order.
  executing_ = true;
  // The front decides anew each time: behind a task for any thread may be one that waits for other
  // threads, which is left to the worker.
  while (!queue_.empty() && queue_.front()->sequence_ <= last_sequence &&
         (on_worker || queue_.front()->runs_on_any_thread())) {
    std::unique_ptr<Task> task = std::move(queue_.front());
    queue_.pop_front();
    // Of the queue that the task was in. An abort while the lock is free drops its failure, below.
    const uint64_t epoch = abort_epoch_;
    const uint64_t sequence = task->sequence_;
    // Cleared as well as set: an interruption that was meant for the task before is over.
    is_interrupted_ = aborting_ > 0 || releasing_ || closed_;
    mutex_.Unlock();

    TaskResult result = Execute(*task);
    const bool failed = result.code != ACL_SUCCESS && !result.cancelled;
    if (failed) {
      // Reported without the lock: callbacks may ask for the stream's state.
      ReportException({device().id(), id_, sequence, task->thread_id_, result.code});
      device().NoteFault(result.code);
    }

    if (failed || task->result_ != nullptr) {
      MutexLock lock(mutex_);
      if (task->result_ != nullptr) {
        // The caller of RunInOrder reports the failure itself; the stream does not report it again.
        *task->result_ = std::move(result);
      } else if (epoch == abort_epoch_) {
        // A failure of a task that an abort found running belongs to the work that was given up.
        NoteFailure(*task, result);
      }
    }
    task.reset();  // may release memory, and must have before anyone sees the task completed
    mutex_.Lock();

    // An empty queue means that all tasks have ended or were dropped meanwhile, so dropped ones
    // count too.
    completed_ = queue_.empty() ? queued_ : sequence;
    if (waiters_ > 0) task_completed_.NotifyAll();
  }
  executing_ = false;
  // Again, for Abort: it waits for executing_, not for completed_.
  if (waiters_ > 0) task_completed_.NotifyAll();
  // The tasks that this thread may not execute are the worker's. If the system has no thread for
  // it, the next waiting thread finds the queue as it is.
  if (!on_worker && !queue_.empty() && StartWorker()) work_arrived_.NotifyOne();
}

TaskResult Stream::Execute(Task& task) {
  // The context stopped after the task was queued. Its code is not a failure of this task, which
  // would be reported twice.
  if (const aclError stopped = context_->stop_code()) {
    task.Drop();
    return {stopped, "the context has stopped after the failure of a task", /*cancelled=*/true};
  }
  const auto lost = [&]() -> TaskResult {
    return {device().lost_code(),
            Concat(task.name(), " failed: device ", device().id(), " is lost")};
  };
  // Events and callbacks still come: programs that wait for them see the loss instead of hanging.
  const bool needs_device = task.needs_device();
  if (needs_device && device().lost_code() != ACL_SUCCESS) {
    task.Drop();
    return lost();
  }
  TaskResult result;
  try {
    result = task.Run(*this);
  } catch (const std::exception& e) {
    // Operators allocate, and a callback of the program may throw. Neither may end the process from
    // a detached thread.
    result = TaskResult::Failure(ACL_ERROR_RT_INTERNAL_ERROR, Concat(task.name(), ": ", e.what()));
  }
  // A result that was computed while the device got lost is not believed: on a device it would not
  // have arrived.
  if (needs_device && device().lost_code() != ACL_SUCCESS) return lost();
  return result;
}

void Stream::NoteFailure(const Task& task, const TaskResult& result) {
  // The code of the last failure is reported, to synchronises from the first failed task on.
  if (error_.code == ACL_SUCCESS) error_sequence_ = task.sequence_;
  error_ = result;
  error_.text = Concat("task ", task.sequence_, " of stream ", id_, ": ", result.text);
  // The other streams of the context see it at their next task.
  if (stop_on_failure_) context_->Stop(result.code);
}

}  // namespace opserve::host_cann
