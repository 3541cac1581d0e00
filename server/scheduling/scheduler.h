// Chooses the device for each request.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/scheduling/device_service.h"

namespace opserve::server {

// Thread-safe.
class Scheduler {
 public:
  // `devices`: at least one.
  explicit Scheduler(std::vector<std::unique_ptr<DeviceService>> devices)
      : devices_(std::move(devices)) {}

  // Hands *request to the ready device with the least work, ties in turn; takes it if and only if
  // the result is OK. Never waits.
  //
  // kResourceExhausted (reason "queue_full", with a retry hint): that device's queue is full.
  // kUnavailable (reason "device_unavailable"): no device is ready.
  absl::Status Submit(std::unique_ptr<ExecutionRequest>* request);

  absl::Span<const std::unique_ptr<DeviceService>> devices() const { return devices_; }

 private:
  DeviceService* LeastLoaded();

  const std::vector<std::unique_ptr<DeviceService>> devices_;
  std::atomic<uint32_t> turn_ = 0;
};

}  // namespace opserve::server
