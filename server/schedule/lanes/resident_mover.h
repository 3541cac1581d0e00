// Moves the resident tensors of devices that drain to other devices of the daemon.
//
// Tenant by tenant: it claims all tensors of a tenant on the device, so that no request finds them
// on two devices, copies them through page-locked memory, by tasks on lanes of both devices, and
// gives the tensors the copies as their contents. Requests wait for their turn meanwhile and run
// where the tensors are then. Tensors for which there is no other place stay, and requests that use
// them are refused until there is one, or the device is resumed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/device_service.h"
#include "server/schedule/lanes/resident_steps.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// Thread-safe.
class ResidentMover {
 public:
  // How attempts to move the tensors of one tenant away from one device ended. An attempt that was
  // in vain for want of a place counts once in a drain, however often it is repeated.
  enum Result {
    kMoved,
    kNoRoom,    // no other ready device has room for them
    kNoDevice,  // no other device is ready
    kFailed     // a copy failed, or a device was lost; they are where they were
  };
  static constexpr size_t kResults = 4;
  // "moved", "no_room", "no_device", "failed".
  static const char* ResultName(size_t result);

  // Starts the thread. `tenant_name` is for the log and thread-safe. All outlive the mover.
  ResidentMover(Scheduler& scheduler, ResidentTensors& residents,
                std::function<std::string(uint32_t tenant)> tenant_name);
  // Gives the present move up. No request waits for the mover any more.
  ~ResidentMover();
  ResidentMover(const ResidentMover&) = delete;
  ResidentMover& operator=(const ResidentMover&) = delete;

  // A device drains. Never waits.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // The following take no lock.
  uint64_t results(size_t result) const { return results_[result].load(std::memory_order_relaxed); }
  uint64_t moved_bytes() const { return moved_bytes_.load(std::memory_order_relaxed); }
  // Of the tensors that are being moved now.
  uint64_t moving_bytes() const { return moving_bytes_.load(std::memory_order_relaxed); }

 private:
  using Tensors = std::vector<ResidentTensors::Moving>;

  // A tenant whose tensors could not be moved.
  struct Setback {
    uint32_t failures = 0;  // of moves that had begun
    absl::Time next_attempt;
    std::optional<Result> reported;
  };
  // A device, in one drain.
  struct Source {
    DeviceService* service;
    uint64_t drain = 0;
    std::map<uint32_t, Setback> setbacks = {};  // by tenant
  };

  void Run();
  // Whether to go on, after a wait for Wake, until `until` at most.
  bool AwaitLook(absl::Time until) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves what can be moved now. Returns when to look again.
  absl::Time MoveFrom(Source& source);
  void MoveOrNote(Source& source, uint32_t tenant);
  // kNotFound: the tenant has none there, though some may come.  kUnavailable (reason
  // "device_unavailable"), kResourceExhausted: there is no place.  Else why a copy failed.
  absl::Status MoveTenant(DeviceService& source, uint32_t tenant, bool* has_begun);
  // Claims all tensors of the tenant on the device. kCancelled: the mover stops.
  absl::Status ClaimAll(int32_t device, uint32_t tenant, Tensors* tensors, HeldClaims* claims);
  absl::Status Book(uint32_t tenant, DeviceService& target, Tensors* tensors) const;
  absl::Status Copy(uint32_t tenant, const DeviceService& target, uint64_t generation,
                    const ResidentTensors::Moving& moving);
  void Note(const Source& source, uint32_t tenant, Result result, const absl::Status& why);

  Scheduler& scheduler_;
  ResidentTensors& residents_;
  const std::function<std::string(uint32_t)> tenant_name_;
  const uint64_t chunk_bytes_;
  std::array<std::atomic<uint64_t>, kResults> results_ = {};
  std::atomic<uint64_t> moved_bytes_ = 0, moving_bytes_ = 0;

  ResidentSteps steps_;
  absl::Mutex mutex_;
  bool is_woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;  // as steps_, for those that wait for Wake

  std::thread thread_;  // last: uses the others
};

}  // namespace opserve::server
