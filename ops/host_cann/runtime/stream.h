// A stream: tasks in the order they were queued, executed one after another.
//
// Each stream has a thread of its own, started when first needed, so that tasks progress whatever
// the callers do. Hand-overs to that thread and back cost more than a small task: one that is
// prompt runs at once on the thread that queues it, if the stream is idle, and a caller that waits
// for the stream without a deadline executes tasks itself when no one else does.
//
// Thread-safe. Held by shared_ptr: executing threads keep it alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/core_limits.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/task.h"

namespace opserve::host_cann {

class Capture;
class Context;
class Device;
class ReportSubscription;
class TaskUpdate;
struct Allocator;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  struct Config {
    bool is_default = false;
    uint32_t priority = 0;
    uint32_t flags = 0;
  };

  Stream(std::shared_ptr<Context> context, int32_t id, Config config);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::shared_ptr<Context>& context() const { return context_; }
  Device& device() const;
  int32_t id() const { return id_; }
  const Config& config() const { return config_; }

  // Queues a task and returns. Its failure is kept for a synchronising call. While the stream is
  // captured, or updates a group of tasks, the capture or the update takes the task instead.
  //   107017 closed    507002 too many tasks queued    the context's code, once it has stopped
  //   the codes of Capture::Record and TaskUpdate::Take
  aclError Enqueue(std::unique_ptr<Task> task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a task, waits for it and returns its own result.
  aclError RunInOrder(std::unique_ptr<Task> task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for the tasks queued so far, well or badly ended.
  //   507046 deadline passed    107023 aborted meanwhile    107017 closed meanwhile
  aclError Wait(Deadline deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the last failure and clears all, if a task that failed was queued no later than
  // `sequence`. A lost device's and a stopped context's code come every time.
  aclError TakeError(uint64_t sequence = UINT64_MAX) ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  // Drops queued tasks, cancels the running one and waits until it has ended. Afterwards the stream
  // is idle and without error. False: `deadline` passed first; the task still ends when it can.
  bool Abort(Deadline deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels whatever waits for something that will never happen, and kernels, now and from now on,
  // so that the queued tasks come to an end.
  void ReleaseHangs() ABSL_LOCKS_EXCLUDED(mutex_);

  // For the running task, on any of its threads: whether it is to end at the next occasion, as the
  // stream is aborted, released or closed, or its device is lost. Takes no lock.
  bool IsInterrupted() const;

  // Ends the stream: drops queued tasks, cancels the running one without waiting, refuses new ones.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets a task in WaitInTask look again.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // For the running task: waits until `ready(releasing)` is true, called under the stream's lock;
  // `releasing` says that ReleaseHangs was called.
  enum class Waited { kReady, kTimeout, kCancelled };
  template <typename Ready>
  Waited WaitInTask(Deadline deadline, Ready ready) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    for (;;) {
      if (IsCancelled()) return Waited::kCancelled;
      if (ready(releasing_)) return Waited::kReady;
      if (!task_wakes_.Wait(mutex_, deadline) && !IsCancelled() && !ready(releasing_)) {
        return Waited::kTimeout;
      }
    }
  }

  // The thread for callbacks. Subscribe: false if there is one.
  bool Subscribe(std::shared_ptr<ReportSubscription> subscription) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unsubscribe() ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<ReportSubscription> subscription() ABSL_LOCKS_EXCLUDED(mutex_);

  // The program's allocator for this stream; null: none.
  void SetAllocator(std::shared_ptr<const Allocator> allocator) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const Allocator> allocator() ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the stream part of a capture. 107027: it is part of one. 107033: it updates a group.
  aclError EnterCapture(std::shared_ptr<Capture> capture) ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves `capture`, if it is this stream's.
  void LeaveCapture(const Capture& capture) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: the stream is not captured.
  std::shared_ptr<Capture> capture() ABSL_LOCKS_EXCLUDED(mutex_);

  // From here to TakeUpdate, `update` takes the tasks. 107027: the stream is captured. 107033: it
  // has an update.
  aclError BeginUpdate(std::unique_ptr<TaskUpdate> update) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: there is none.
  std::unique_ptr<TaskUpdate> TakeUpdate() ABSL_LOCKS_EXCLUDED(mutex_);

  // Once per stream; 107000 the second time.
  aclError SetStopOnFailure(bool stop) ABSL_LOCKS_EXCLUDED(mutex_);
  bool stop_on_failure() ABSL_LOCKS_EXCLUDED(mutex_);

  // Any number the user attached.
  std::atomic<uint32_t> custom_tag{0};
  // Kept and reported: the kernels record no overflow.
  std::atomic<uint32_t> overflow_switch{0};
  CoreLimits core_limits;

 private:
  static constexpr size_t kMaxQueuedTasks = 65536;

  bool IsCancelled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  aclError CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // 107027 or 107033: tasks go to a capture, or to a group that is updated.
  aclError CheckNotRecording() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Push(std::unique_ptr<Task> task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool StartWorker() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a thread that waits until then may execute the next task. One that ends in time, even
  // if it is begun at once, spares the waiting thread the time that the worker needs to wake up.
  bool MayExecuteNext(const Deadline& deadline) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Executes queued tasks up to `last_sequence`; releases the lock while a task runs.
  void RunQueued(uint64_t last_sequence, bool on_worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TaskResult Execute(Task& task) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteFailure(const Task& task, const TaskResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WaitUntilCompleted(uint64_t sequence, Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::deque<std::unique_ptr<Task>> CancelAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Context> context_;
  const int32_t id_;
  const Config config_;

  Mutex mutex_;
  CondVar work_arrived_;    // for the worker
  CondVar task_completed_;  // for callers that wait for the stream
  CondVar task_wakes_;      // for the running task
  std::deque<std::unique_ptr<Task>> queue_ ABSL_GUARDED_BY(mutex_);
  uint64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;     // sequence of the last task queued
  uint64_t completed_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last one that has ended or was dropped
  bool executing_ ABSL_GUARDED_BY(mutex_) = false;  // some thread is in RunQueued
  bool worker_started_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool releasing_ ABSL_GUARDED_BY(mutex_) = false;
  int aborting_ ABSL_GUARDED_BY(mutex_) = 0;          // calls of Abort
  uint64_t abort_epoch_ ABSL_GUARDED_BY(mutex_) = 0;  // changes with every Abort
  // The running task is to end. Set with mutex_ held, and cleared when the next task begins: an
  // Abort past its deadline still holds for the task that it found.
  std::atomic<bool> is_interrupted_ = false;
  int waiters_ ABSL_GUARDED_BY(mutex_) = 0;              // on task_completed_
  TaskResult error_ ABSL_GUARDED_BY(mutex_);             // last of the unreported failures
  uint64_t error_sequence_ ABSL_GUARDED_BY(mutex_) = 0;  // of the first of them
  std::shared_ptr<ReportSubscription> subscription_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Allocator> allocator_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Capture> capture_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<TaskUpdate> update_ ABSL_GUARDED_BY(mutex_);
  bool failure_mode_set_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_on_failure_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opserve::host_cann
