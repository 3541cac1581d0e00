#include "server/device/device.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/catalog/status_macros.h"
#include "server/device/acl_status.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// How long a stream that was aborted, or whose task failed, may take to become idle.
constexpr absl::Duration kSettleTimeout = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const AclLibrary& acl, int32_t id) {
  auto device = std::unique_ptr<Device>(new Device(acl, id));
  OPSERVE_RETURN_IF_ERROR(AclCallStatus(acl, "aclrtSetDevice", acl.aclrtSetDevice(id)));
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl, "aclrtGetCurrentContext", acl.aclrtGetCurrentContext(&device->context_)));
  return device;
}

Device::~Device() {
  if (context_ == nullptr) return;
  BindThisThread().IgnoreError();
  memory_.Trim();
  // Only the forced reset gives a failed device a chance to come back for the next process.
  if (state() == State::kFailed && acl_.aclrtResetDeviceForce != nullptr) {
    acl_.aclrtResetDeviceForce(id_);
  } else {
    acl_.aclrtResetDevice(id_);
  }
}

absl::Status Device::BindThisThread() const {
  return AclCallStatus(acl_, "aclrtSetCurrentContext", acl_.aclrtSetCurrentContext(context_));
}

void Device::SetReady() {
  State expected = State::kStarting;
  state_.compare_exchange_strong(expected, State::kReady);
}

void Device::SetFailed(absl::string_view reason) {
  if (state_.exchange(State::kFailed) != State::kFailed) {
    LogError("device_failed", {{"device", id_}, {"reason", std::string(reason)}});
  }
}

absl::StatusOr<Device::MemoryInfo> Device::memory_info() const {
  OPSERVE_RETURN_IF_ERROR(BindThisThread());
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  OPSERVE_RETURN_IF_ERROR(AclCallStatus(
      acl_, "aclrtGetMemInfo", acl_.aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes)));
  return MemoryInfo{total_bytes, total_bytes - std::min(free_bytes, total_bytes)};
}

absl::StatusOr<std::unique_ptr<StreamLane>> StreamLane::Create(Device& device, uint32_t index) {
  aclrtStream stream = nullptr;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(device.acl(), "aclrtCreateStream", device.acl().aclrtCreateStream(&stream)));
  return std::unique_ptr<StreamLane>(new StreamLane(device, index, stream));
}

StreamLane::~StreamLane() {
  const AclLibrary& acl = device_.acl();
  // A stream that still runs something would block an ordinary destruction.
  if (device_.state() == Device::State::kFailed && acl.aclrtDestroyStreamForce != nullptr) {
    acl.aclrtDestroyStreamForce(stream_);
  } else {
    acl.aclrtDestroyStream(stream_);
  }
}

int StreamLane::SynchronizeFor(absl::Duration timeout) const {
  const AclLibrary& acl = device_.acl();
  if (acl.aclrtSynchronizeStreamWithTimeout == nullptr) return acl.aclrtSynchronizeStream(stream_);
  const int64_t milliseconds =
      std::clamp<int64_t>(absl::ToInt64Milliseconds(timeout), 1, INT32_MAX);
  return acl.aclrtSynchronizeStreamWithTimeout(stream_, static_cast<int32_t>(milliseconds));
}

absl::Status StreamLane::Synchronize(absl::Duration timeout) {
  const int code = SynchronizeFor(timeout);
  if (code == ACL_SUCCESS) return absl::OkStatus();
  absl::Status status = AclCallStatus(device_.acl(), "aclrtSynchronizeStream", code);
  if (ClassifyAclCode(code) == AclFault::kDevice) {
    device_.SetFailed(status.message());
    return status;
  }
  if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) {
    status = absl::InternalError(
        absl::StrCat("the device did not finish within ", absl::FormatDuration(timeout)));
  } else if (BecomesIdle()) {
    return status;
  }
  if (!Abort()) device_.SetFailed(absl::StrCat(status.message(), "; its stream cannot be aborted"));
  return status;
}

// An error may be a task's, which is reported once, or the call's own, which says nothing about the
// stream: only a call that succeeds proves that it is idle.
bool StreamLane::BecomesIdle() const {
  return SynchronizeFor(kSettleTimeout) == ACL_SUCCESS ||
         SynchronizeFor(kSettleTimeout) == ACL_SUCCESS;
}

bool StreamLane::Abort() const {
  const AclLibrary& acl = device_.acl();
  if (acl.aclrtStreamAbort == nullptr || acl.aclrtStreamAbort(stream_) != ACL_SUCCESS ||
      !BecomesIdle()) {
    return false;
  }
  LogWarning("stream_aborted", {{"device", device_.id()}, {"lane", index_}});
  return true;
}

}  // namespace opserve::server
