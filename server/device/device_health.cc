#include "server/device/device_health.h"

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "server/device/acl/acl_status.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Tasks that fail one after the other, and streams that cannot be stopped, until the device is
// reset. One may be the kernel's fault, or the input's.
constexpr uint32_t kMaxFaultsInARow = 3;
constexpr uint32_t kMaxLostStreams = 3;
constexpr uint32_t kRecoveriesUntilAdvice = 3;

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

std::string DeviceHealth::state_reason() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat(state_reason_, recovery_reason_);
}

void DeviceHealth::SetState(DeviceState state, absl::string_view reason) {
  const bool is_bad = state == DeviceState::kQuarantined || state == DeviceState::kFailed;
  (is_bad ? LogError : LogInfo)("device_state", {{"device", id_},
                                                 {"from", std::string(DeviceStateName(state_))},
                                                 {"to", std::string(DeviceStateName(state))},
                                                 {"reason", std::string(reason)}});
  state_reason_ = std::string(reason);
  // Recoveries that failed belong to the state that ends now.
  recovery_reason_.clear();
  failed_recoveries_ = 0;
  state_.store(state, std::memory_order_release);
}

bool DeviceHealth::Transition(DeviceState from, DeviceState to, absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != from) return false;
    SetState(to, reason);
  }
  // Without the lock: the listener looks at the state.
  if (state_listener_) state_listener_();
  return true;
}

bool DeviceHealth::TakeOut(Fault fault, absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    // One fault takes it out; those that follow are its consequences.
    if (is_out()) return false;
    quarantines_.Add(fault);
    SetState(DeviceState::kQuarantined, reason);
  }
  if (state_listener_) state_listener_();
  return true;
}

void DeviceHealth::Quarantine(Fault fault, absl::string_view reason) {
  if (TakeOut(fault, reason)) errors_.Add(fault);
}

void DeviceHealth::QuarantineLost(const absl::Status& error) {
  const auto detail = ErrorDetailOf(error);
  const bool is_damaged = detail && IsMemoryDamage(detail->acl_error());
  Quarantine(is_damaged ? Fault::kMemory : Fault::kDevice, error.message());
}

void DeviceHealth::NoteFailedRecovery(Fault fault, const absl::Status& error) {
  errors_.Add(fault);
  absl::MutexLock lock(&mutex_);
  // The device is out already: attempts to bring it back change the reason that is shown, and no
  // state.
  ++failed_recoveries_;
  recovery_reason_ =
      absl::StrCat("; ", failed_recoveries_, failed_recoveries_ == 1 ? " attempt" : " attempts",
                   " to bring it back failed, the last: ", error.message(),
                   failed_recoveries_ < kRecoveriesUntilAdvice
                       ? ""
                       : "; restart the daemon, which clears the driver's state of the fault");
}

void DeviceHealth::NoteSuccess() {
  // Mostly only read, so that lanes do not pass the cache line around.
  if (faults_in_a_row_.load(std::memory_order_relaxed) != 0) faults_in_a_row_ = 0;
}

void DeviceHealth::NoteTaskFault(Fault fault, absl::string_view reason) {
  if (!is_out()) errors_.Add(fault);
  // Several tasks in a row are no accident of one kernel or input.
  if (faults_in_a_row_.fetch_add(1) + 1 >= kMaxFaultsInARow) {
    TakeOut(fault,
            absl::StrCat(kMaxFaultsInARow, " faults one after the other, the last: ", reason));
  }
}

void DeviceHealth::NoteLostStream(absl::string_view reason) {
  if (!is_out()) errors_.Add(Fault::kStream);
  if (lost_streams_.fetch_add(1) + 1 >= kMaxLostStreams) {
    TakeOut(Fault::kStream,
            absl::StrCat(kMaxLostStreams, " streams could not be stopped, the last: ", reason));
  }
}

void DeviceHealth::ForgetFaults() {
  lost_streams_ = 0;
  faults_in_a_row_ = 0;
}

}  // namespace opserve::server
