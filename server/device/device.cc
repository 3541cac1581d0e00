#include "server/device/device.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Its tasks' ends are waited for again after it, with the execution timeout.
constexpr uint32_t kAbortTimeoutMs = 5000;

// Device::binding_ of the context that is current on the thread; 0: none, or unknown.
thread_local uint64_t binding_of_thread = 0;

}  // namespace

Device::Device(const AclLibrary& acl, int32_t id, DeviceMemoryPool::Options pool)
    : DeviceHealth(id), acl_(acl) {
  // A failure is left to the supervisor, which opens the device again.
  if (Open().ok()) {
    SampleMemory();
    AskIdentity();
  }
  if (pool.max_bytes == 0) {
    // A device that does not tell its size refuses excessive allocations by itself.
    pool.max_bytes = memory_total_bytes_ > 0 ? memory_total_bytes_ / 2 : UINT64_MAX;
  }
  if (!pool.allocation_log.empty()) absl::StrAppend(&pool.allocation_log, ".", id);
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
      state() == DeviceState::kQuarantined || state() == DeviceState::kFailed || lost_streams() > 0;
  if (is_broken && acl_.aclrtResetDeviceForce != nullptr) {
    acl_.aclrtResetDeviceForce(id());
  } else {
    acl_.aclrtResetDevice(id());
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
  DropKept();
}

absl::Status Device::Open() {
  if (context_ != nullptr) return BindThisThread();
  binding_of_thread = 0;  // the next call changes it
  OPSERVE_RETURN_IF_ERROR(AclCallStatus(acl_, "aclrtSetDevice", acl_.aclrtSetDevice(id())));
  aclrtContext context = nullptr;
  if (const int code = acl_.aclrtGetCurrentContext(&context); code != ACL_SUCCESS) {
    absl::Status status = AclCallStatus(acl_, "aclrtGetCurrentContext", code);
    // Without its context the device is not open.
    acl_.aclrtResetDevice(id());
    return status;
  }
  static std::atomic<uint64_t> last_binding = 0;
  context_ = context;
  binding_of_thread = ++last_binding;
  binding_.store(binding_of_thread, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status Device::Reset() {
  // Before the reset: buffers that come back from now on belong to nothing.
  memory_->ForgetAll();
  binding_ = 0;
  context_ = nullptr;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  ForgetFaults();
  const bool by_force = acl_.aclrtResetDeviceForce != nullptr;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl_, by_force ? "aclrtResetDeviceForce" : "aclrtResetDevice",
                    by_force ? acl_.aclrtResetDeviceForce(id()) : acl_.aclrtResetDevice(id())));
  DropKept();
  return Open();
}

void Device::StopWork() {
  aclrtDeviceStatus health = ACL_RT_DEVICE_STATUS_NORMAL;
  const bool knows_health = acl_.aclrtQueryDeviceStatus != nullptr &&
                            acl_.aclrtQueryDeviceStatus(id(), &health) == ACL_SUCCESS;
  // To be asked for before anything is aborted, and given back to the repair.
  aclrtErrorInfo error = {};
  const bool knows_error = acl_.aclrtGetErrorVerbose != nullptr &&
                           acl_.aclrtGetErrorVerbose(id(), &error) == ACL_SUCCESS;
  LogInfo("device_fault",
          {{"device", id()},
           {"driver_says_normal", knows_health ? health == ACL_RT_DEVICE_STATUS_NORMAL : true},
           {"error_type", knows_error ? static_cast<int>(error.errorType) : -1}});
  // Before the abort: results that come during it are not to be trusted.
  stops_.fetch_add(1, std::memory_order_acq_rel);
  if (acl_.aclrtDeviceTaskAbort == nullptr) return;
  if (const int code = acl_.aclrtDeviceTaskAbort(id(), kAbortTimeoutMs); code != ACL_SUCCESS) {
    LogWarning("device_abort_failed", {{"device", id()}, {"code", code}});
    return;
  }
  if (knows_error && error.tryRepair != 0 && acl_.aclrtRepairError != nullptr) {
    LogInfo("device_repair", {{"device", id()}, {"code", acl_.aclrtRepairError(id(), &error)}});
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
  const uint64_t binding = binding_.load(std::memory_order_acquire);
  // A thread that comes back from nowhere else need not ask the runtime.
  if (binding != 0 && binding == binding_of_thread) return absl::OkStatus();
  const absl::Status status =
      AclCallStatus(acl_, "aclrtSetCurrentContext", acl_.aclrtSetCurrentContext(context_));
  binding_of_thread = status.ok() ? binding : 0;
  return status;
}

void Device::AskIdentity() {
  // Neither call is in every version of CANN. A part that cannot be asked for stays empty.
  int32_t physical_id = 0;
  if (acl_.aclrtGetPhyDevIdByUserDevId != nullptr &&
      acl_.aclrtGetPhyDevIdByUserDevId(id(), &physical_id) == ACL_SUCCESS) {
    identity_.physical_id = absl::StrCat(physical_id);
  }
  std::array<char, 32> pci = {};
  if (acl_.aclrtDeviceGetPCIBusId != nullptr &&
      acl_.aclrtDeviceGetPCIBusId(id(), pci.data(), pci.size() - 1) == ACL_SUCCESS) {
    identity_.pci_bus_id = absl::AsciiStrToUpper(pci.data());  // as other tools write it
  }
}

void Device::SampleMemory() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  // The last sample stays.
  if (acl_.aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes) != ACL_SUCCESS) return;
  memory_total_bytes_ = total_bytes;
  memory_used_bytes_ = total_bytes - std::min(free_bytes, total_bytes);
}

}  // namespace opserve::server
