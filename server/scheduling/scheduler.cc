#include "server/scheduling/scheduler.h"

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
