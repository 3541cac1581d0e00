#include "server/device/device.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl_status.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Tasks that fail one after the other, and streams that cannot be stopped, until the device is
// reset. One may be the kernel's fault, or the input's.
constexpr uint32_t kMaxFaultsInARow = 3;
constexpr uint32_t kMaxLostStreams = 3;
constexpr uint32_t kRecoveriesUntilAdvice = 3;
// Its tasks' ends are waited for again after it, with the execution timeout.
constexpr uint32_t kAbortTimeoutMs = 5000;

}  // namespace

absl::string_view DeviceStateName(DeviceState state) {
  switch (state) {
    case DeviceState::kStarting:
      return "starting";
    case DeviceState::kReady:
      return "ready";
    case DeviceState::kDraining:
      return "draining";
    case DeviceState::kQuarantined:
      return "quarantined";
    case DeviceState::kFailed:
      return "failed";
  }
  return "";
}

Device::Device(const AclLibrary& acl, int32_t id, DeviceMemoryPool::Options pool)
    : acl_(acl), id_(id) {
  if (Open().ok()) {
    SampleMemory();
    AskIdentity();
  }
  if (pool.max_bytes == 0) {
    // A device that does not tell its size refuses excessive allocations by itself.
    pool.max_bytes = memory_total_bytes_ > 0 ? memory_total_bytes_ / 2 : UINT64_MAX;
  }
  memory_ = std::make_unique<DeviceMemoryPool>(acl_, pool);
}

Device::~Device() {
  const bool is_open = context_ != nullptr;
  if (is_open) BindThisThread().IgnoreError();
  memory_.reset();
  if (!is_open) return;
  // Only the forced reset gives a broken device a chance to come back for the next process, and
  // does not wait for the work of streams that could not be stopped.
  const bool is_broken =
      state() == DeviceState::kQuarantined || state() == DeviceState::kFailed || lost_streams_ > 0;
  if (is_broken && acl_.aclrtResetDeviceForce != nullptr) {
    acl_.aclrtResetDeviceForce(id_);
  } else {
    acl_.aclrtResetDevice(id_);
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
  DropKept();
}

absl::Status Device::Open() {
  if (context_ != nullptr) return BindThisThread();
  OPSERVE_RETURN_IF_ERROR(AclCallStatus(acl_, "aclrtSetDevice", acl_.aclrtSetDevice(id_)));
  aclrtContext context = nullptr;
  if (const int code = acl_.aclrtGetCurrentContext(&context); code != ACL_SUCCESS) {
    absl::Status status = AclCallStatus(acl_, "aclrtGetCurrentContext", code);
    acl_.aclrtResetDevice(id_);
    return status;
  }
  context_ = context;
  return absl::OkStatus();
}

absl::Status Device::Reset() {
  memory_->ForgetAll();
  context_ = nullptr;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  lost_streams_ = 0;
  faults_in_a_row_ = 0;
  const bool by_force = acl_.aclrtResetDeviceForce != nullptr;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl_, by_force ? "aclrtResetDeviceForce" : "aclrtResetDevice",
                    by_force ? acl_.aclrtResetDeviceForce(id_) : acl_.aclrtResetDevice(id_)));
  DropKept();
  return Open();
}

void Device::StopWork() {
  aclrtDeviceStatus health = ACL_RT_DEVICE_STATUS_NORMAL;
  const bool knows_health = acl_.aclrtQueryDeviceStatus != nullptr &&
                            acl_.aclrtQueryDeviceStatus(id_, &health) == ACL_SUCCESS;
  // To be asked for before anything is aborted, and given back to the repair.
  aclrtErrorInfo error = {};
  const bool knows_error =
      acl_.aclrtGetErrorVerbose != nullptr && acl_.aclrtGetErrorVerbose(id_, &error) == ACL_SUCCESS;
  LogInfo("device_fault",
          {{"device", id_},
           {"driver_says_normal", knows_health ? health == ACL_RT_DEVICE_STATUS_NORMAL : true},
           {"error_type", knows_error ? static_cast<int>(error.errorType) : -1}});
  stops_.fetch_add(1, std::memory_order_acq_rel);
  if (acl_.aclrtDeviceTaskAbort == nullptr) return;
  if (const int code = acl_.aclrtDeviceTaskAbort(id_, kAbortTimeoutMs); code != ACL_SUCCESS) {
    LogWarning("device_abort_failed", {{"device", id_}, {"code", code}});
    return;
  }
  if (knows_error && error.tryRepair != 0 && acl_.aclrtRepairError != nullptr) {
    LogInfo("device_repair", {{"device", id_}, {"code", acl_.aclrtRepairError(id_, &error)}});
  }
}

void Device::KeepUntilReset(std::shared_ptr<const void> object) {
  absl::MutexLock lock(&mutex_);
  kept_.push_back(std::move(object));
}

void Device::DropKept() {
  std::vector<std::shared_ptr<const void>> kept;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  kept.swap(kept_);
}

absl::Status Device::BindThisThread() const {
  return AclCallStatus(acl_, "aclrtSetCurrentContext", acl_.aclrtSetCurrentContext(context_));
}

std::string Device::state_reason() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat(state_reason_, recovery_reason_);
}

void Device::SetState(DeviceState state, absl::string_view reason) {
  const bool is_bad = state == DeviceState::kQuarantined || state == DeviceState::kFailed;
  (is_bad ? LogError : LogInfo)("device_state", {{"device", id_},
                                                 {"from", std::string(DeviceStateName(state_))},
                                                 {"to", std::string(DeviceStateName(state))},
                                                 {"reason", std::string(reason)}});
  state_reason_ = std::string(reason);
  recovery_reason_.clear();
  failed_recoveries_ = 0;
  state_.store(state, std::memory_order_release);
}

bool Device::Transition(DeviceState from, DeviceState to, absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != from) return false;
    SetState(to, reason);
  }
  if (state_listener_) state_listener_();
  return true;
}

bool Device::TakeOut(Fault fault, absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ == DeviceState::kQuarantined || state_ == DeviceState::kFailed) return false;
    quarantines_.Add(fault);
    SetState(DeviceState::kQuarantined, reason);
  }
  if (state_listener_) state_listener_();
  return true;
}

void Device::Quarantine(Fault fault, absl::string_view reason) {
  if (TakeOut(fault, reason)) errors_.Add(fault);
}

void Device::QuarantineLost(const absl::Status& error) {
  const auto detail = ErrorDetailOf(error);
  const bool is_damaged = detail && IsMemoryDamage(detail->acl_error());
  Quarantine(is_damaged ? Fault::kMemory : Fault::kDevice, error.message());
}

void Device::NoteFailedRecovery(Fault fault, const absl::Status& error) {
  errors_.Add(fault);
  absl::MutexLock lock(&mutex_);
  ++failed_recoveries_;
  recovery_reason_ =
      absl::StrCat("; ", failed_recoveries_, failed_recoveries_ == 1 ? " attempt" : " attempts",
                   " to bring it back failed, the last: ", error.message(),
                   failed_recoveries_ < kRecoveriesUntilAdvice
                       ? ""
                       : "; restart the daemon, which clears the driver's state of the fault");
}

void Device::NoteSuccess() {
  if (faults_in_a_row_.load(std::memory_order_relaxed) != 0) faults_in_a_row_ = 0;
}

void Device::NoteTaskFault(Fault fault, absl::string_view reason) {
  errors_.Add(fault);
  if (faults_in_a_row_.fetch_add(1) + 1 >= kMaxFaultsInARow) {
    TakeOut(fault,
            absl::StrCat(kMaxFaultsInARow, " faults one after the other, the last: ", reason));
  }
}

void Device::NoteLostStream(absl::string_view reason) {
  errors_.Add(Fault::kStream);
  if (lost_streams_.fetch_add(1) + 1 >= kMaxLostStreams) {
    TakeOut(Fault::kStream,
            absl::StrCat(kMaxLostStreams, " streams could not be stopped, the last: ", reason));
  }
}

void Device::AskIdentity() {
  int32_t physical_id = 0;
  if (acl_.aclrtGetPhyDevIdByUserDevId != nullptr &&
      acl_.aclrtGetPhyDevIdByUserDevId(id_, &physical_id) == ACL_SUCCESS) {
    identity_.physical_id = absl::StrCat(physical_id);
  }
  std::array<char, 32> pci = {};
  if (acl_.aclrtDeviceGetPCIBusId != nullptr &&
      acl_.aclrtDeviceGetPCIBusId(id_, pci.data(), pci.size() - 1) == ACL_SUCCESS) {
    identity_.pci_bus_id = absl::AsciiStrToUpper(pci.data());  // as other tools write it
  }
}

void Device::SampleMemory() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (acl_.aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes) != ACL_SUCCESS) return;
  memory_total_bytes_ = total_bytes;
  memory_used_bytes_ = total_bytes - std::min(free_bytes, total_bytes);
}

}  // namespace opserve::server
