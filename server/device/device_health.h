// The state of a device, and the faults that lead to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/device/faults.h"

namespace opserve::server {

// Where a device is in its life. Only kReady serves.
//
//   starting -> ready <-> draining      an administrator takes it out and puts it back
//   any of them -> quarantined          a fault; it is reset and must prove itself again
//   quarantined -> ready
//   quarantined -> failed               a thread is stuck in a call on it: it cannot be reset
//   failed -> quarantined               the call has returned after all
enum class DeviceState { kStarting, kReady, kDraining, kQuarantined, kFailed };
inline constexpr int kDeviceStates = 5;

// "starting", "ready", ...
absl::string_view DeviceStateName(DeviceState state);

// Makes no call on the device. Thread-safe.
class DeviceHealth {
 public:
  // kStarting. `id`: the device's, for the log.
  explicit DeviceHealth(int32_t id) : id_(id) {}
  DeviceHealth(const DeviceHealth&) = delete;
  DeviceHealth& operator=(const DeviceHealth&) = delete;

  int32_t id() const { return id_; }

  DeviceState state() const { return state_.load(std::memory_order_acquire); }
  // Why it is in its state: "" if it is starting or ready.
  std::string state_reason() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves to `to` if the state is `from`; whether it was.
  bool Transition(DeviceState from, DeviceState to, absl::string_view reason = "")
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the device out of service for a fault, and counts the fault, unless the device is out
  // already. Called by the thread that sees the fault; the listener does the rest.
  void Quarantine(Fault fault, absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a device that is lost, as the error of a call on it says.
  void QuarantineLost(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Called after every change of the state, on the thread that caused it, which holds no lock of
  // the device's; must not block. Set it before the device is shared.
  void OnStateChange(std::function<void()> listener) { state_listener_ = std::move(listener); }

  // A task ended well, or its kernel crashed or hung (kKernel, kTimeout). After several faults
  // without a success in between the device itself is taken to be faulty.
  void NoteSuccess();
  void NoteTaskFault(Fault fault, absl::string_view reason);
  // A stream had to be given up; likewise.
  void NoteLostStream(absl::string_view reason);
  void NoteStreamAbort(StreamAbort kind) { stream_aborts_.Add(kind); }
  // An attempt to bring a device in quarantine back failed; the state's reason says so.
  void NoteFailedRecovery(Fault fault, const absl::Status& error) ABSL_LOCKS_EXCLUDED(mutex_);

  // Streams given up since the last reset.
  uint32_t lost_streams() const { return lost_streams_; }

  // Since the start. Faults of a device that is out already are its first fault's consequences and
  // not counted, but for attempts to bring it back that fail.
  const FaultCounts& errors() const { return errors_; }
  const FaultCounts& quarantines() const { return quarantines_; }  // by the fault they were for
  const StreamAbortCounts& stream_aborts() const { return stream_aborts_; }

  // The device was reset: faults from before count no more.
  void ForgetFaults();

 private:
  void SetState(DeviceState state, absl::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool is_out() const {
    const DeviceState now = state();
    return now == DeviceState::kQuarantined || now == DeviceState::kFailed;
  }
  // Whether it was in service, or might have come to be.
  bool TakeOut(Fault fault, absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);

  const int32_t id_;
  std::function<void()> state_listener_;
  mutable absl::Mutex mutex_;
  std::string state_reason_ ABSL_GUARDED_BY(mutex_);
  std::string recovery_reason_ ABSL_GUARDED_BY(mutex_);      // the result of attempts, if any
  uint32_t failed_recoveries_ ABSL_GUARDED_BY(mutex_) = 0;   // since it was taken out
  std::atomic<DeviceState> state_ = DeviceState::kStarting;  // written with mutex_ held
  FaultCounts errors_, quarantines_;
  StreamAbortCounts stream_aborts_;
  std::atomic<uint32_t> faults_in_a_row_ = 0;
  std::atomic<uint32_t> lost_streams_ = 0;
};

}  // namespace opserve::server
