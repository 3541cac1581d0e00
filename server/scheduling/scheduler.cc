#include "server/scheduling/scheduler.h"

#include <algorithm>
#include <limits>

#include "ops/catalog/error.h"

namespace opserve::server {
namespace {

bool IsReady(const DeviceService& service) {
  return service.device().state() == Device::State::kReady;
}

}  // namespace

absl::Status Scheduler::Submit(std::unique_ptr<ExecutionRequest>* request) {
  DeviceService* service = LeastLoaded();
  if (service == nullptr) {
    return catalog::ErrorWithReason(absl::StatusCode::kUnavailable, "device_unavailable",
                                    "no device is ready");
  }
  return service->Submit(request);
}

bool Scheduler::has_ready_device() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const auto& service) { return IsReady(*service); });
}

DeviceService* Scheduler::LeastLoaded() {
  DeviceService* best = nullptr;
  size_t best_load = std::numeric_limits<size_t>::max();
  const size_t start = turn_.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < devices_.size(); ++i) {
    DeviceService& service = *devices_[(start + i) % devices_.size()];
    const size_t load = service.queued() + service.executing();
    if (IsReady(service) && load < best_load) {
      best = &service;
      best_load = load;
    }
  }
  return best;
}

}  // namespace opserve::server
