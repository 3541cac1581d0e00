// Watches the devices: their metrics, and what they are asked only now and then.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "opserve/v1/operator_service.pb.h"
#include "prometheus/metric_family.h"
#include "server/device/pinned_pool.h"
#include "server/scheduling/scheduler.h"

namespace opserve::server {

// Thread-safe. A thread of its own asks the devices for their memory once a second, since that call
// goes to the driver and may block; everybody else reads what it found.
class DeviceMonitor {
 public:
  // Both outlive the monitor.
  DeviceMonitor(const Scheduler& scheduler, const PinnedPool& pinned);
  ~DeviceMonitor();

  // The state of every device, without blocking.
  std::vector<v1::DeviceStatus> Status() const;
  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Memory {
    std::atomic<uint64_t> total_bytes = 0;
    std::atomic<uint64_t> used_bytes = 0;
  };

  void Sample();

  const Scheduler& scheduler_;
  const PinnedPool& pinned_;
  std::vector<Memory> memory_;  // by position of the device
  absl::Notification stop_;
  std::thread sampler_;  // last: uses the others
};

}  // namespace opserve::server
