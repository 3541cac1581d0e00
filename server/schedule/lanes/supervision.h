// The decisions of a device's supervisor: when it takes the device out of service, resets it, tries
// to bring it back, and keeps house. No clock and no thread: DeviceService has the thread, and
// tests/simulation runs the same decisions by the clock of its own.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/device/device_health.h"

namespace opserve::server {

// The supervisor's hands: the device with its lanes and queue. Called by the supervisor's thread
// alone, and may block where it says so.
class SupervisedDevice {
 public:
  virtual ~SupervisedDevice() = default;

  virtual absl::Time Now() const = 0;
  // Opens the device for the first time.
  virtual absl::Status Open() = 0;
  // Resets it and opens it anew, once it has no lanes.
  virtual absl::Status Reset() = 0;
  // Checks golden values; may block for as long. After an error *fault is its kind.
  virtual absl::Status ProveItself(Fault* fault) = 0;
  // Whether some operator came out wrong.
  virtual bool HasWrongOperators() const = 0;
  // Opens the queue and starts the lanes.
  virtual absl::Status StartLanes() = 0;
  virtual bool HasLanes() const = 0;
  // When the last lane began the step on the device that it is still at; InfiniteFuture: some lane
  // is at none. There are lanes, as for the following.
  virtual absl::Time AllLanesHeldSince() const = 0;
  // Pauses the queue; its tasks move to other devices or end. Then ends the work on the device.
  virtual void StopWork() = 0;
  // Whether all lanes have let go of the device, waiting at most for `timeout`.
  virtual bool AwaitLanesEnd(absl::Duration timeout) = 0;
  // Once they have.
  virtual void DropLanes() = 0;
  // While there are lanes, every kHousekeepingPeriod: trims, refuses tasks that waited in vain.
  virtual void KeepHouse() = 0;
  // For metrics: its memory, before it serves again; its load, every kHousekeepingPeriod.
  virtual void SampleMemory() = 0;
  virtual void SampleLoad() = 0;
};

// Not thread-safe.
class Supervision {
 public:
  struct Options {
    uint32_t lanes = 1;
    // Those of DeviceServiceOptions.
    absl::Duration execution_timeout;
    absl::Duration hold_grace;
    absl::Duration park_timeout;
    absl::Duration first_recovery_wait;
    absl::Duration longest_recovery_wait;
  };

  // Period of KeepHouse and of the look at held lanes.
  static constexpr absl::Duration kHousekeepingPeriod = absl::Seconds(1);

  // `device` and `health`, the same device's, outlive it.
  Supervision(SupervisedDevice& device, DeviceHealth& health, const Options& options);

  // The first attempt to bring the device up.
  void Begin();

  // Does whatever is due. To be called after every change of the device's state or of its lanes,
  // and at the latest at NextLook.
  void Look();
  absl::Time NextLook() const;

  // As DeviceService::Resume, now.
  absl::Status Resume();

 private:
  absl::Status BringUp(Fault* fault);
  void AttendToQuarantine();
  absl::Status Recover();
  // Takes the device out of service if all its lanes have been held for too long; starts its return
  // when the lanes are free again.
  void CheckLanes();
  absl::Status TryOperatorsAgain();
  void PutOff(absl::Time now);

  SupervisedDevice& device_;
  DeviceHealth& health_;
  const Options options_;
  absl::Duration recovery_wait_;
  absl::Time next_attempt_ = absl::InfinitePast();
  absl::Time up_since_ = absl::InfinitePast();
  absl::Time housekeeping_ = absl::InfinitePast();
};

}  // namespace opserve::server
