// A device: the hardware resources that the daemon owns, and their state.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/device/acl_library.h"
#include "server/device/faults.h"
#include "server/device/memory_pool.h"

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

// Thread-safe.
class Device {
 public:
  struct MemoryInfo {
    uint64_t total_bytes = 0;
    uint64_t used_bytes = 0;
  };

  // The driver's names for the device; "" where it does not tell them.
  struct Identity {
    std::string physical_id;  // "3": of the machine, whatever part of it the process may see
    std::string pci_bus_id;   // "0000:C1:00.0"
  };

  // Asks for nothing but the memory's size and names, so a broken device can be created, too; it is
  // kStarting until it is opened. A pool limit of 0 means half of the device's memory.
  Device(const AclLibrary& acl, int32_t id, DeviceMemoryPool::Options pool = {});

  // Frees the pool and releases the device. Every lane and buffer must be gone.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Opens the device and binds the calling thread to it.
  absl::Status Open();

  // Resets the device by force and opens it anew; binds the calling thread. Its memory, streams
  // and executors are void: the pool forgets its memory, `generation` goes up. No other thread may
  // be using the device, and its lanes must be gone.
  absl::Status Reset();

  // Ends the work of a device in quarantine, and has the driver repair its memory where it reports
  // that it can. Call it before waiting for the lanes: it makes calls return that wait for the
  // device. Logs the driver's findings about the fault. The calling thread must be bound.
  void StopWork();
  // Number of StopWork calls. Do not trust the results of a stream if the number changed meanwhile.
  uint64_t stops() const { return stops_.load(std::memory_order_acquire); }

  // Keeps `object`, which work that could not be stopped may still use, until the device has been
  // reset: it is destroyed there, after the reset.
  void KeepUntilReset(std::shared_ptr<const void> object) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes this device current on the calling thread: needed once per thread before any other
  // method that says so, again after the thread has used another device, and again after Reset.
  absl::Status BindThisThread() const;

  int32_t id() const { return id_; }
  const AclLibrary& acl() const { return acl_; }
  DeviceMemoryPool& memory() { return *memory_; }
  const DeviceMemoryPool& memory() const { return *memory_; }
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

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

  // Since the start. Faults of a device that is in quarantine already are not counted again.
  const FaultCounts& errors() const { return errors_; }
  const FaultCounts& quarantines() const { return quarantines_; }  // by the fault they were for
  const StreamAbortCounts& stream_aborts() const { return stream_aborts_; }

  // Asks the driver, which may block. The calling thread must be bound.
  void SampleMemory();
  const Identity& identity() const { return identity_; }
  // As of the last sample; zeros before the first.
  MemoryInfo memory_info() const { return {memory_total_bytes_, memory_used_bytes_}; }

 private:
  void AskIdentity();
  void SetState(DeviceState state, absl::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether it was in service, or might have come to be.
  bool TakeOut(Fault fault, absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void DropKept() ABSL_LOCKS_EXCLUDED(mutex_);

  const AclLibrary& acl_;
  const int32_t id_;
  Identity identity_;                            // not changed after construction
  std::atomic<aclrtContext> context_ = nullptr;  // the default one; goes with the reset
  std::unique_ptr<DeviceMemoryPool> memory_;
  std::function<void()> state_listener_;
  mutable absl::Mutex mutex_;
  std::string state_reason_ ABSL_GUARDED_BY(mutex_);
  std::string recovery_reason_ ABSL_GUARDED_BY(mutex_);     // the result of attempts, if any
  uint32_t failed_recoveries_ ABSL_GUARDED_BY(mutex_) = 0;  // since it was taken out
  std::vector<std::shared_ptr<const void>> kept_ ABSL_GUARDED_BY(mutex_);  // until the reset
  std::atomic<DeviceState> state_ = DeviceState::kStarting;  // written with mutex_ held
  std::atomic<uint64_t> generation_ = 0;
  std::atomic<uint64_t> stops_ = 0;
  std::atomic<uint64_t> memory_total_bytes_ = 0, memory_used_bytes_ = 0;
  FaultCounts errors_, quarantines_;
  StreamAbortCounts stream_aborts_;
  std::atomic<uint32_t> faults_in_a_row_ = 0;
  std::atomic<uint32_t> lost_streams_ = 0;  // since the last reset
};

}  // namespace opserve::server
