#include "server/device/stream_lane.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "server/device/acl/acl_status.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// The time for a stream to become idle after an abort or a failed task.
constexpr absl::Duration kSettleTimeout = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<StreamLane>> StreamLane::Create(Device& device, uint32_t index) {
  aclrtStream stream = nullptr;
  const int code = device.acl().aclrtCreateStream(&stream);
  if (code != ACL_SUCCESS) return AclCallStatus(device.acl(), "aclrtCreateStream", code);
  return std::unique_ptr<StreamLane>(new StreamLane(device, index, stream));
}

StreamLane::~StreamLane() {
  const AclLibrary& acl = device_.acl();
  const DeviceState state = device_.state();
  const bool may_hang = state == DeviceState::kQuarantined || state == DeviceState::kFailed;
  // A stream that still runs something would block an ordinary destruction.
  if (may_hang && acl.aclrtDestroyStreamForce != nullptr) {
    acl.aclrtDestroyStreamForce(stream_);
  } else {
    acl.aclrtDestroyStream(stream_);
  }
}

uint64_t StreamLane::BeginTask() {
  // CANN keeps all messages until they are read, those of failures that were expected too, such as
  // the end of a limited wait. They must not stand in an answer to this task's client.
  device_.acl().aclGetRecentErrMsg();
  absl::MutexLock lock(&mutex_);
  is_aborted_ = false;
  return ++task_;
}

int StreamLane::SynchronizeFor(absl::Duration timeout) const {
  const AclLibrary& acl = device_.acl();
  if (acl.aclrtSynchronizeStreamWithTimeout == nullptr) return acl.aclrtSynchronizeStream(stream_);
  const int64_t milliseconds =
      std::clamp<int64_t>(absl::ToInt64Milliseconds(timeout), 1, INT32_MAX);
  return acl.aclrtSynchronizeStreamWithTimeout(stream_, static_cast<int32_t>(milliseconds));
}

// Waits, and then decides in this order: the device is lost or was stopped; the work ended well;
// the deadline or the timeout has passed; a kernel failed. In the last three cases the stream is
// idle at the end, or another one.
absl::Status StreamLane::Synchronize(absl::Duration timeout, absl::Time deadline) {
  // A millisecond more: ACL takes whole ones, and the deadline must have passed afterwards.
  const absl::Duration left = deadline - absl::Now() + absl::Milliseconds(1);
  bool is_aborted = false;
  {
    absl::MutexLock lock(&mutex_);
    is_aborted = is_aborted_;
    // From here on AbortTask may abort the stream during the wait.
    is_waiting_ = true;
  }
  const int code = is_aborted && Abort(StreamAbort::kCancelled)
                       ? ACL_SUCCESS
                       : SynchronizeFor(std::min(timeout, left));
  // The runtime's text must be taken before another call changes it.
  const AclFault fault = ClassifyAclCode(code);
  absl::Status status = fault == AclFault::kNone
                            ? absl::OkStatus()
                            : AclCallStatus(device_.acl(), "aclrtSynchronizeStream", code);
  {
    absl::MutexLock lock(&mutex_);
    is_waiting_ = false;
    // An abort under way must not hit the next task's work.
    mutex_.Await(absl::Condition(this, &StreamLane::IsNotAborting));
    is_aborted = is_aborted_;
  }
  if (fault == AclFault::kDevice) {
    device_.QuarantineLost(status);
    return status;
  }
  // Its work may have been aborted, and the stream does not always say so. Nor does a call say
  // anything about the request that fails because this thread could not be bound to the device.
  if (device_.stops() != stops_before_ ||
      (fault == AclFault::kInternal && device_.state() == DeviceState::kQuarantined)) {
    return MakeError(Reason::kDeviceUnavailable, "the device was taken out of service meanwhile");
  }
  if (fault == AclFault::kNone) {
    device_.NoteSuccess();
  } else if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT && left < timeout) {
    // The call is past its deadline, but the kernel may still be within its own timeout.
    if (!Abort(StreamAbort::kCancelled)) ReplaceStream(status);
    is_aborted = true;
  } else if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) {
    status = absl::InternalError(
        absl::StrCat("the device did not finish within ", absl::FormatDuration(timeout)));
    if (!Abort(StreamAbort::kTimeout)) ReplaceStream(status);
    device_.NoteTaskFault(Fault::kTimeout, status.message());
  } else {
    const StreamAbort why = is_aborted ? StreamAbort::kCancelled : StreamAbort::kError;
    if (!BecomesIdle() && !Abort(why)) ReplaceStream(status);
    if (!is_aborted) {
      device_.NoteTaskFault(fault == AclFault::kLink ? Fault::kDevice : Fault::kKernel,
                            status.message());
    }
  }
  return is_aborted ? absl::CancelledError("the caller cancelled") : status;
}

// Without the query the answer is no, and a lane's thread waits instead.
bool StreamLane::IsIdle() const {
  const AclLibrary& acl = device_.acl();
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  return acl.aclrtStreamQuery != nullptr && acl.aclrtStreamQuery(stream_, &status) == ACL_SUCCESS &&
         status == ACL_STREAM_STATUS_COMPLETE;
}

absl::Status StreamLane::CheckDevice() const {
  const int code = SynchronizeFor(kSettleTimeout);
  if (ClassifyAclCode(code) != AclFault::kDevice) return absl::OkStatus();
  return AclCallStatus(device_.acl(), "aclrtSynchronizeStream", code);
}

void StreamLane::AbortTask(uint64_t task) {
  {
    absl::MutexLock lock(&mutex_);
    if (task != task_) return;
    is_aborted_ = true;
    // Before the wait nothing needs an abort: Synchronize looks at is_aborted_ first.
    if (!is_waiting_ || is_aborting_ || device_.acl().aclrtStreamAbort == nullptr) return;
    is_aborting_ = true;
  }
  // Its result does not matter: the lane's own thread sees to it that the stream becomes idle.
  device_.acl().aclrtStreamAbort(stream_);
  device_.NoteStreamAbort(StreamAbort::kCancelled);
  absl::MutexLock lock(&mutex_);
  is_aborting_ = false;
}

// An error may be a task's, which is reported once, or the call's own, which says nothing about the
// stream: only a call that succeeds proves that it is idle.
bool StreamLane::BecomesIdle() const {
  return SynchronizeFor(kSettleTimeout) == ACL_SUCCESS ||
         SynchronizeFor(kSettleTimeout) == ACL_SUCCESS;
}

bool StreamLane::Abort(StreamAbort why) const {
  const AclLibrary& acl = device_.acl();
  if (acl.aclrtStreamAbort == nullptr || acl.aclrtStreamAbort(stream_) != ACL_SUCCESS ||
      !BecomesIdle()) {
    return false;
  }
  device_.NoteStreamAbort(why);
  static LineLimiter lines(LimitedEvent::kStreamAborted);
  if (lines.Admit(LogSeverity::kWarning, absl::Now())) {
    lines.Write(LogSeverity::kWarning, "stream_aborted",
                {{"device", device_.id()}, {"lane", index_}});
  }
  return true;
}

void StreamLane::ReplaceStream(const absl::Status& reason) {
  device_.NoteStreamAbort(StreamAbort::kAbandoned);
  LogError("stream_lost",
           {{"device", device_.id()}, {"lane", index_}, {"reason", std::string(reason.message())}});
  aclrtStream stream = nullptr;
  const int code = device_.acl().aclrtCreateStream(&stream);
  if (code != ACL_SUCCESS) {
    device_.Quarantine(
        Fault::kStream,
        absl::StrCat("a stream hangs and there is no other: ",
                     AclCallStatus(device_.acl(), "aclrtCreateStream", code).message()));
    return;
  }
  // The old one keeps its work, and the memory of that, until the device is reset.
  stream_ = stream;
  device_.NoteLostStream(reason.message());
}

}  // namespace opserve::server
