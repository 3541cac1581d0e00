// The daemon's status of its devices, and the housekeeping that belongs to no device.
#pragma once

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "opserve/v1/operator_service.pb.h"
#include "prometheus/metric_family.h"
#include "server/device/memory/pinned_pool.h"
#include "server/program/operator_table.h"
#include "server/run/prepared_programs.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// Thread-safe. Makes no call on a device and waits for none: it reads values that the devices' own
// threads publish, and the counts of resident tensors under the lock that requests hold for
// moments.
class DeviceMonitor {
 public:
  // All outlive the monitor. Starts the thread that ends leases.
  DeviceMonitor(const Scheduler& scheduler, const OperatorTable& operators,
                const PinnedPool& pinned, ResidentTensors& residents, PreparedPrograms& prepared);
  ~DeviceMonitor();

  std::vector<v1::DeviceStatus> Status() const;
  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  const Scheduler& scheduler_;
  const OperatorTable& operators_;
  const PinnedPool& pinned_;
  ResidentTensors& residents_;
  PreparedPrograms& prepared_;
  absl::Notification stop_;
  std::thread lease_keeper_;  // last: uses the others
};

}  // namespace opserve::server
