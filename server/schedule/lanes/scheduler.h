// Chooses the device for each task: where its data is, else the one that placement.h says.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/device_service.h"
#include "server/schedule/policy/cost_model.h"
#include "server/schedule/policy/pinned_zones.h"

namespace opserve::server {

// Adds to the refusal by the best device for a request that the others are no way out.
absl::Status NoDeviceOffers(const absl::Status& refusal);

// Thread-safe.
class Scheduler {
 public:
  struct Hooks {
    std::function<void(int32_t device, uint64_t generation)> device_was_reset;
    // As DeviceService::Hooks::drains.
    std::function<void()> device_drains = nullptr;
    // Called after any device changed its state; must not block.
    std::function<void()> state_changed;
  };

  // Starts a service for every one of `ids` (at least one) and waits for their first attempts.
  Scheduler(const AclLibrary& acl, absl::Span<const int32_t> ids, const OperatorTable& operators,
            std::shared_ptr<PinnedPool> pinned, const DeviceServiceOptions& options, Hooks hooks);
  // Serves the queued tasks, then closes the devices.
  ~Scheduler();

  // Hands *task to the device it names, else to the ready one that is best for its tenant
  // (placement.h), ties in turn; takes it if and only if the result is OK. Never waits.
  //
  // kUnavailable (reason "device_unavailable" or "draining"): no device can take it now.
  // kUnavailable (reason "operator_unavailable") or kUnimplemented: those that could do not offer
  // its operators.
  // Else DeviceService::Submit's.
  absl::Status Submit(std::unique_ptr<LaneTask>* task);

  // kFailedPrecondition: some device cannot lend so many bytes, or there is less page-locked
  // memory.
  absl::Status CheckReservations(uint64_t device_bytes, uint64_t pinned_bytes) const;
  // Gives tenants their weights and zones on every device, and of the page-locked memory. Weights
  // decide where no zone is configured (default_zones.h). As DeviceQueue::SetTenants.
  absl::Status SetTenants(absl::Span<const TenantSettings> tenants);

  // The costs of executions, learned on all devices together.
  CostModel& costs() { return costs_; }

  // Page-locked memory of results, on all devices together.
  const PinnedZones& pinned_zones() const { return *pinned_zones_; }

  // Null: no such device.
  DeviceService* Find(int32_t device) const;
  // The device for `bytes` bytes of new resident tensors, as PlaceForTensors says. Null: none is
  // ready. With a program, which makes the tensors, only devices that offer its operators are
  // ready.
  DeviceService* BestForTensors(const ResidentTensors& residents, uint32_t tenant, uint64_t bytes,
                                const Program* program = nullptr) const;
  // The device for `bytes` bytes of resident tensors that a tenant has elsewhere: as above, with
  // room for them. kUnavailable: none is ready.  kResourceExhausted: none of those has room.
  absl::StatusOr<DeviceService*> RoomForTensors(const ResidentTensors& residents, uint32_t tenant,
                                                uint64_t bytes) const;
  // A ready device that offers the program's operators, on which nothing waits and a lane is free;
  // null: there is none.
  DeviceService* IdleDevice(int32_t except_device, const Program& program) const;
  bool HasReadyDevice() const;
  // Whether a ready device offers the operator; while none is ready, whether one may.
  bool IsOffered(const LoadedOperator& op) const;

  absl::Span<const std::unique_ptr<DeviceService>> devices() const { return devices_; }

 private:
  // Null: no other device is ready. One that does not offer the task's operators only if none does.
  DeviceService* BestFor(const LaneTask& task, int32_t except_device = -1) const;
  bool MoveFrom(int32_t device, std::unique_ptr<LaneTask>* task) const;

  const std::shared_ptr<PinnedZones> pinned_zones_;
  CostModel costs_;
  std::vector<std::unique_ptr<DeviceService>> devices_;  // fixed once the first has been started
  absl::Notification are_made_;
  mutable std::atomic<uint32_t> turn_ = 0;
};

}  // namespace opserve::server
