// One device in service: its queue, and a thread per lane that takes requests from it.
//
// The threads are what waits for the device, so no gRPC thread ever does. Copies, both stages and
// result copies of different requests overlap, one request per lane.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/device.h"
#include "server/device/pinned_pool.h"
#include "server/scheduling/device_queue.h"

namespace opserve::server {

struct DeviceServiceOptions {
  uint32_t lanes = 4;
  size_t queue_capacity = 4096;
  // Longest a program may run on the device; then its stream is aborted.
  absl::Duration execution_timeout = absl::Seconds(30);
};

// Thread-safe.
class DeviceService {
 public:
  // Opens device `id` with its lanes and starts serving. kInternal and the like: ACL's errors.
  static absl::StatusOr<std::unique_ptr<DeviceService>> Start(const AclLibrary& acl, int32_t id,
                                                              std::shared_ptr<PinnedPool> pinned,
                                                              const DeviceServiceOptions& options);

  // Serves what is queued, then ends the threads and closes the device.
  ~DeviceService();
  DeviceService(const DeviceService&) = delete;
  DeviceService& operator=(const DeviceService&) = delete;

  // Takes *request if and only if the result is OK; its answer comes through `done`. Never waits.
  // kResourceExhausted (reason "queue_full", with a retry hint): full.
  absl::Status Submit(std::unique_ptr<ExecutionRequest>* request);

  Device& device() const { return *device_; }
  uint32_t lanes() const { return static_cast<uint32_t>(lanes_.size()); }
  size_t queued() const { return queue_.depth(); }
  absl::Time oldest_arrival() const { return queue_.oldest_arrival(); }
  uint32_t executing() const { return executing_.load(std::memory_order_relaxed); }
  uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }

 private:
  DeviceService(std::unique_ptr<Device> device, std::shared_ptr<PinnedPool> pinned,
                const DeviceServiceOptions& options);
  void ServeLane(StreamLane& lane);
  // When a request that is refused now would probably be taken.
  absl::Duration RetryHint() const;

  const DeviceServiceOptions options_;
  const std::unique_ptr<Device> device_;
  const std::shared_ptr<PinnedPool> pinned_;
  DeviceQueue queue_;
  std::vector<std::unique_ptr<StreamLane>> lanes_;
  std::vector<std::thread> threads_;  // one per lane
  std::atomic<uint32_t> executing_ = 0;
  std::atomic<uint64_t> completed_ = 0;
  std::atomic<int64_t> mean_execution_ns_ = 0;  // exponential average over recent requests
};

}  // namespace opserve::server
