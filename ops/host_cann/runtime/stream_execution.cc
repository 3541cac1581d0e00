// How a stream's tasks are executed.
#include <exception>
#include <utility>

#include "ops/host_cann/runtime/context.h"
#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/exception_info.h"
#include "ops/host_cann/runtime/stream.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

void Stream::Work() {
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
