#include "server/schedule/lanes/supervision.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"
#include "server/observability/log.h"

namespace opserve::server {

Supervision::Supervision(SupervisedDevice& device, DeviceHealth& health, const Options& options)
    : device_(device),
      health_(health),
      options_(options),
      recovery_wait_(options.first_recovery_wait) {}

void Supervision::Begin() {
  Fault fault = Fault::kSetUp;
  absl::Status status = device_.Open();
  if (status.ok()) status = BringUp(&fault);
  if (status.ok()) {
    health_.Transition(DeviceState::kStarting, DeviceState::kReady);
  } else {
    health_.Quarantine(fault, status.message());
    PutOff(device_.Now());
  }
  housekeeping_ = device_.Now() + kHousekeepingPeriod;
}

absl::Time Supervision::NextLook() const {
  const bool is_broken = health_.state() == DeviceState::kQuarantined;
  return is_broken ? std::min(next_attempt_, housekeeping_) : housekeeping_;
}

void Supervision::Look() {
  if (health_.state() == DeviceState::kQuarantined) AttendToQuarantine();
  if (device_.Now() < housekeeping_) return;
  // A device in quarantine has no work to look after.
  if (health_.state() != DeviceState::kQuarantined && device_.HasLanes()) {
    device_.KeepHouse();
    CheckLanes();
  }
  device_.SampleLoad();
  housekeeping_ = device_.Now() + kHousekeepingPeriod;
}

void Supervision::CheckLanes() {
  if (health_.state() == DeviceState::kFailed) {
    // The calls that kept it from being reset may return after all.
    if (device_.AwaitLanesEnd(absl::ZeroDuration())) {
      health_.Transition(DeviceState::kFailed, DeviceState::kQuarantined,
                         "the calls on the device have returned; it is reset");
    }
    return;
  }
  // Minus infinity if some lane is free.
  const absl::Duration held = device_.Now() - device_.AllLanesHeldSince();
  if (held <= options_.execution_timeout + options_.hold_grace) return;
  health_.Quarantine(
      Fault::kTimeout,
      absl::StrCat("all ", options_.lanes, " lanes are held beyond the execution timeout of ",
                   absl::FormatDuration(options_.execution_timeout)));
}

absl::Status Supervision::BringUp(Fault* fault) {
  OPSERVE_RETURN_IF_ERROR(device_.ProveItself(fault));
  *fault = Fault::kSetUp;
  up_since_ = device_.Now();
  // A drained device has kept its lanes.
  return device_.HasLanes() ? absl::OkStatus() : device_.StartLanes();
}

// Called at each look until the device is back: first the lanes have to let go of it, then attempts
// follow each other with growing waits.
void Supervision::AttendToQuarantine() {
  if (device_.HasLanes()) {
    // Tasks leave before the device is stopped, so that they need not fail.
    device_.StopWork();
    if (!device_.AwaitLanesEnd(options_.execution_timeout + options_.park_timeout)) {
      // A thread that does not come back from a call on the device: resetting it now would pull the
      // memory away under that call.
      health_.Transition(DeviceState::kQuarantined, DeviceState::kFailed,
                         absl::StrCat("a call on the device does not return; if it never does, "
                                      "restart the daemon; before that: ",
                                      health_.state_reason()));
      return;
    }
    device_.DropLanes();
    const absl::Time now = device_.Now();
    // It was up for long, so this fault is no part of a series.
    if (now - up_since_ >= 2 * recovery_wait_) {
      recovery_wait_ = options_.first_recovery_wait;
      next_attempt_ = now;
    } else {
      PutOff(now);
    }
  }
  if (device_.Now() < next_attempt_) return;
  if (absl::Status status = Recover(); !status.ok()) {
    LogWarning("device_recovery_failed",
               {{"device", health_.id()},
                {"error", std::string(status.message())},
                {"next_attempt_seconds", absl::ToDoubleSeconds(recovery_wait_)}});
    PutOff(device_.Now());
  }
}

void Supervision::PutOff(absl::Time now) {
  // Each wait is twice the one before, so that a device that stays broken costs little.
  next_attempt_ = now + recovery_wait_;
  recovery_wait_ = std::min(2 * recovery_wait_, options_.longest_recovery_wait);
}

absl::Status Supervision::Recover() {
  Fault fault = Fault::kSetUp;
  absl::Status status = device_.Reset();
  if (status.ok()) status = BringUp(&fault);
  if (!status.ok()) {
    health_.NoteFailedRecovery(fault, status);
    return status;
  }
  // Before it serves, or metrics would show the memory of before the reset.
  device_.SampleMemory();
  health_.Transition(DeviceState::kQuarantined, DeviceState::kReady);
  return absl::OkStatus();
}

absl::Status Supervision::TryOperatorsAgain() {
  if (!device_.HasWrongOperators()) return absl::OkStatus();
  Fault fault = Fault::kSetUp;
  const absl::Status status = device_.ProveItself(&fault);
  // Requests may have all the memory there is, which is no fault of the device.
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  health_.Quarantine(fault, status.message());
  return status;
}

absl::Status Supervision::Resume() {
  Fault fault = Fault::kSetUp;
  switch (health_.state()) {
    case DeviceState::kReady:
      return TryOperatorsAgain();
    case DeviceState::kDraining:
      if (absl::Status status = BringUp(&fault); !status.ok()) {
        health_.Quarantine(fault, status.message());
        return status;
      }
      health_.Transition(DeviceState::kDraining, DeviceState::kReady);
      return absl::OkStatus();
    case DeviceState::kQuarantined:
      // An administrator's attempt does not wait for the time of the next one.
      next_attempt_ = absl::InfinitePast();
      if (device_.HasLanes()) AttendToQuarantine();
      // The attempt above may have brought it back.
      if (health_.state() == DeviceState::kReady) return absl::OkStatus();
      if (health_.state() == DeviceState::kFailed) break;  // its lanes are still there
      if (absl::Status status = Recover(); !status.ok()) {
        PutOff(device_.Now());
        return status;
      }
      return absl::OkStatus();
    case DeviceState::kStarting:
    case DeviceState::kFailed:
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat("device ", health_.id(), " is ",
                                                    DeviceStateName(health_.state()), ": ",
                                                    health_.state_reason()));
}

}  // namespace opserve::server
