// A stream of a device with exclusive use: one request at a time goes through a lane.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/device/device.h"

namespace opserve::server {

// Used by one thread, which must be bound to the device; AbortTask alone is for others.
class StreamLane {
 public:
  static absl::StatusOr<std::unique_ptr<StreamLane>> Create(Device& device, uint32_t index);
  ~StreamLane();
  StreamLane(const StreamLane&) = delete;
  StreamLane& operator=(const StreamLane&) = delete;

  Device& device() const { return device_; }
  uint32_t index() const { return index_; }  // within the device
  aclrtStream stream() const { return stream_; }

  // Names the lane's next task, for AbortTask. Never 0, never the same twice. Drops the runtime's
  // unread messages of the calling thread, which runs the task.
  uint64_t BeginTask() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until everything queued has run and returns its error, if any. If `timeout` or `deadline`
  // passes first, or the task is aborted, the stream is aborted; where that cannot be done the lane
  // gets another stream, and the old one keeps its memory until the device is reset. So afterwards
  // the lane's stream is idle, or the device is not ready any more.
  //
  // kCancelled: AbortTask, or `deadline` passed, which is no fault of the device. kInternal: the
  // timeout passed. kUnavailable: the device's work was stopped meanwhile; the task may have run or
  // not. Else AclCallStatus.
  absl::Status Synchronize(absl::Duration timeout, absl::Time deadline = absl::InfiniteFuture())
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether everything queued has run, well or badly, so that Synchronize would not wait. Does not
  // wait itself.
  bool IsIdle() const;

  // kUnavailable if the device is lost. The stream must be idle.
  absl::Status CheckDevice() const;

  // From any thread bound to the device: ends the task's Synchronize, at once if it has begun. No
  // effect on a task that is not the lane's current one.
  void AbortTask(uint64_t task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  StreamLane(Device& device, uint32_t index, aclrtStream stream)
      : device_(device), index_(index), stops_before_(device.stops()), stream_(stream) {}
  int SynchronizeFor(absl::Duration timeout) const;
  bool BecomesIdle() const;
  // Ends the stream's running work and drops its queue; returns whether it is idle after it.
  bool Abort(StreamAbort why) const;
  // Takes another stream instead of one that cannot be made idle; reports a device where that does
  // not work, or that has lost too many streams.
  void ReplaceStream(const absl::Status& reason);
  bool IsNotAborting() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_aborting_; }

  Device& device_;
  const uint32_t index_;
  const uint64_t stops_before_;  // the lane was made
  aclrtStream stream_;  // written by the lane's thread while no AbortTask is in its ACL call
  absl::Mutex mutex_;
  uint64_t task_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_aborted_ ABSL_GUARDED_BY(mutex_) = false;   // the task, by AbortTask
  bool is_waiting_ ABSL_GUARDED_BY(mutex_) = false;   // in Synchronize, for the device
  bool is_aborting_ ABSL_GUARDED_BY(mutex_) = false;  // AbortTask is in its ACL call
};

}  // namespace opserve::server
