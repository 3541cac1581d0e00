#include "server/schedule/lanes/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "server/schedule/policy/default_zones.h"
#include "server/schedule/policy/placement.h"

namespace opserve::server {
namespace {

bool IsReady(const DeviceService& service) {
  return service.device().state() == DeviceState::kReady;
}

bool IsReadyFor(const DeviceService& service, const Program* program) {
  return IsReady(service) &&
         (program == nullptr || program->MissingOn(service.device().id()) == nullptr);
}

uint64_t Room(DeviceService& service, uint32_t tenant) {
  const DeviceMemoryPool& pool = service.device().memory();
  const uint64_t allocated = pool.statistics().allocated_bytes;
  const uint64_t free = pool.options().max_bytes - std::min(pool.options().max_bytes, allocated);
  // That of captured runs comes back when it is wanted.
  const auto captured = static_cast<uint64_t>(std::max<int64_t>(service.captured().bytes(), 0));
  // The smaller of two accounts: memory that is lent, and memory that is booked.
  return std::min(free, service.queue().RoomFor(tenant)) + captured;
}

}  // namespace

absl::Status NoDeviceOffers(const absl::Status& refusal) {
  return WithMessage(absl::StrCat(refusal.message(),
                                  "; no other ready device offers every operator of the request"),
                     refusal);
}

Scheduler::Scheduler(const AclLibrary& acl, absl::Span<const int32_t> ids,
                     const OperatorTable& operators, std::shared_ptr<PinnedPool> pinned,
                     const DeviceServiceOptions& options, Hooks hooks)
    : pinned_zones_(PinnedZones::Create(pinned->limit_bytes(), pinned->allows_host_fallback())),
      costs_({.operators = static_cast<uint32_t>(operators.operators().size()),
              .dtypes = v1::DataType_ARRAYSIZE}) {
  // The first devices may change their states before the last one is there.
  const auto state_changed = [this, changed = std::move(hooks.state_changed)] {
    if (are_made_.HasBeenNotified()) changed();
  };
  for (int32_t id : ids) {
    devices_.push_back(std::make_unique<DeviceService>(
        acl, id, operators, pinned, pinned_zones_, options,
        DeviceService::Hooks{
            // Called with tasks, which come only when all devices are made.
            .move = [this, id](std::unique_ptr<LaneTask>* task) { return MoveFrom(id, task); },
            .was_reset = hooks.device_was_reset,
            .drains = hooks.device_drains,
            .state_changed = state_changed}));
  }
  are_made_.Notify();
  // The devices come up at the same time.
  for (const auto& device : devices_) device->AwaitFirstAttempt();
}

Scheduler::~Scheduler() = default;

absl::Status Scheduler::Submit(std::unique_ptr<LaneTask>* task) {
  const std::optional<int32_t> device = (*task)->device();
  DeviceService* service = device ? Find(*device) : BestFor(**task);
  if (service == nullptr) {
    return MakeError(Reason::kDeviceUnavailable, "no device is ready");
  }
  const absl::Status status = service->Submit(task);
  // A device that is not ready says more by its state than by the operators that it lacks.
  if (status.ok() || !IsReady(*service)) return status;
  const absl::Status offered = (*task)->CheckOfferedBy(service->device().id());
  if (offered.ok()) return status;
  if (!device) return NoDeviceOffers(offered);
  return WithMessage(
      absl::StrCat(offered.message(), "; the request's resident tensors are on this device"),
      offered);
}

absl::Status Scheduler::CheckReservations(uint64_t device_bytes, uint64_t pinned_bytes) const {
  for (const auto& service : devices_) {
    const uint64_t most = service->device().memory().options().max_bytes;
    if (device_bytes > most) {
      return absl::FailedPreconditionError(
          absl::StrCat("tenants reserve ", device_bytes, " bytes of device memory; device ",
                       service->device().id(), " can lend ", most, " (workspace_max_bytes)"));
    }
  }
  if (pinned_bytes > pinned_zones_->capacity()) {
    return absl::FailedPreconditionError(
        absl::StrCat("tenants reserve ", pinned_bytes, " bytes of page-locked memory; there are ",
                     pinned_zones_->capacity(), " (pinned_pool_bytes)"));
  }
  return absl::OkStatus();
}

absl::Status Scheduler::SetTenants(absl::Span<const TenantSettings> tenants) {
  // First: the devices let all tenants try again.
  absl::Status status =
      pinned_zones_->SetTenants(WithPinnedZones(tenants, pinned_zones_->capacity()));
  if (!status.ok()) return status;
  std::vector<TenantSettings> settings(tenants.begin(), tenants.end());
  for (const auto& service : devices_) {
    SetResidentBytes(service->device().memory().options().max_bytes, &settings);
    status = service->queue().SetTenants(settings);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool Scheduler::MoveFrom(int32_t device, std::unique_ptr<LaneTask>* task) const {
  if ((*task)->device()) return false;  // its data is there
  DeviceService* service = BestFor(**task, /*except_device=*/device);
  return service != nullptr && service->Submit(task).ok();
}

DeviceService* Scheduler::Find(int32_t device) const {
  for (const auto& service : devices_) {
    if (service->device().id() == device) return service.get();
  }
  return nullptr;
}

DeviceService* Scheduler::BestForTensors(const ResidentTensors& residents, uint32_t tenant,
                                         uint64_t bytes, const Program* program) const {
  // Beside the tenant's other tensors if possible, since a program's tensors are all on one device.
  const std::optional<int32_t> others_device = residents.DeviceOf(tenant);
  std::optional<size_t> others;
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i]->device().id() == others_device) others = i;
  }
  const auto room_of = [&](size_t i) -> std::optional<uint64_t> {
    if (!IsReadyFor(*devices_[i], program)) return std::nullopt;
    return Room(*devices_[i], tenant);
  };
  const std::optional<size_t> best = PlaceForTensors(devices_.size(), others, bytes, room_of);
  return best ? devices_[*best].get() : nullptr;
}

absl::StatusOr<DeviceService*> Scheduler::RoomForTensors(const ResidentTensors& residents,
                                                         uint32_t tenant, uint64_t bytes) const {
  DeviceService* best = BestForTensors(residents, tenant, bytes);
  if (best == nullptr) return MakeError(Reason::kDeviceUnavailable, "no other device is ready");
  if (Room(*best, tenant) >= bytes) return best;
  return MakeError(Reason::kDeviceMemory,
                   absl::StrCat("no other device has room for ", bytes, " bytes of the tenant"));
}

DeviceService* Scheduler::IdleDevice(int32_t except_device, const Program& program) const {
  for (const auto& service : devices_) {
    if (service->device().id() != except_device && IsReadyFor(*service, &program) &&
        service->queued() == 0 && service->executing() < service->lanes()) {
      return service.get();
    }
  }
  return nullptr;
}

bool Scheduler::HasReadyDevice() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const auto& service) { return IsReady(*service); });
}

bool Scheduler::IsOffered(const LoadedOperator& op) const {
  // Without a ready device nobody knows of results, so the libraries' functions count.
  if (!HasReadyDevice()) return op.is_available();
  return op.is_loaded() &&
         std::any_of(devices_.begin(), devices_.end(), [&op](const auto& service) {
           return IsReady(*service) && op.offer->IsOfferedBy(service->device().id());
         });
}

DeviceService* Scheduler::BestFor(const LaneTask& task, int32_t except_device) const {
  // Equal devices are taken in turn.
  const size_t first = turn_.fetch_add(1, std::memory_order_relaxed);
  // Loads are read without locks and may be a task out of date. The queue of the chosen device
  // decides.
  const auto load_of = [&](size_t i) -> std::optional<DeviceLoad> {
    const DeviceService& service = *devices_[i];
    const int32_t id = service.device().id();
    if (!IsReady(service) || id == except_device) return std::nullopt;
    return DeviceLoad{.offers = task.MissingOn(id) == nullptr,
                      .lanes = service.lanes(),
                      .queued = service.queued(),
                      .executing = service.executing(),
                      .own = service.queue().WorkOf(task.demand().tenant)};
  };
  const std::optional<size_t> best = BestPlace(devices_.size(), first, load_of);
  return best ? devices_[*best].get() : nullptr;
}

}  // namespace opserve::server
