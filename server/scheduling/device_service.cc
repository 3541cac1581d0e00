#include "server/scheduling/device_service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "ops/catalog/error.h"
#include "ops/catalog/status_macros.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Bounds of a retry hint: shorter would only bring the caller back too early, longer would leave
// the device idle after a burst.
constexpr absl::Duration kShortestRetry = absl::Milliseconds(10);
constexpr absl::Duration kLongestRetry = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceService>> DeviceService::Start(
    const AclLibrary& acl, int32_t id, std::shared_ptr<PinnedPool> pinned,
    const DeviceServiceOptions& options) {
  OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, Device::Open(acl, id));
  auto service = std::unique_ptr<DeviceService>(
      new DeviceService(std::move(device), std::move(pinned), options));
  for (uint32_t i = 0; i < options.lanes; ++i) {
    OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<StreamLane> lane,
                             StreamLane::Create(service->device(), i));
    service->lanes_.push_back(std::move(lane));
  }
  for (const std::unique_ptr<StreamLane>& lane : service->lanes_) {
    service->threads_.emplace_back([service = service.get(), &lane] { service->ServeLane(*lane); });
  }
  service->device().SetReady();
  return service;
}

DeviceService::DeviceService(std::unique_ptr<Device> device, std::shared_ptr<PinnedPool> pinned,
                             const DeviceServiceOptions& options)
    : options_(options),
      device_(std::move(device)),
      pinned_(std::move(pinned)),
      queue_(options.queue_capacity) {}

DeviceService::~DeviceService() {
  queue_.Close();
  for (std::thread& thread : threads_) thread.join();
  device_->BindThisThread().IgnoreError();
  lanes_.clear();
}

absl::Status DeviceService::Submit(std::unique_ptr<ExecutionRequest>* request) {
  absl::Status status = queue_.Push(request);
  if (auto detail = catalog::GetErrorDetail(status)) {
    detail->set_retry_pushback_ms(absl::ToInt64Milliseconds(RetryHint()));
    catalog::SetErrorDetail(*detail, &status);
  }
  return status;
}

absl::Duration DeviceService::RetryHint() const {
  const absl::Duration mean = absl::Nanoseconds(mean_execution_ns_.load(std::memory_order_relaxed));
  return std::clamp(mean * static_cast<int64_t>(queued()) / static_cast<int64_t>(lanes()),
                    kShortestRetry, kLongestRetry);
}

void DeviceService::ServeLane(StreamLane& lane) {
  if (absl::Status status = device_->BindThisThread(); !status.ok()) {
    device_->SetFailed(status.message());
  }
  while (std::unique_ptr<ExecutionRequest> request = queue_.Pop()) {
    executing_.fetch_add(1, std::memory_order_relaxed);
    request->clock.Book(Stage::kQueue);
    const absl::Time start = absl::Now();
    absl::StatusOr<ProgramResult> result =
        device_->state() == Device::State::kFailed
            ? catalog::ErrorWithReason(absl::StatusCode::kUnavailable, "device_unavailable",
                                       "the device failed while the request was queued")
            : RunProgram(request->program, request->message.payloads(), *request->call,
                         options_.execution_timeout, lane, *pinned_, request->clock);
    const int64_t took = absl::ToInt64Nanoseconds(absl::Now() - start);
    const int64_t mean = mean_execution_ns_.load(std::memory_order_relaxed);
    mean_execution_ns_.store(mean + (took - mean) / 8, std::memory_order_relaxed);
    // Counted before the answer leaves, so that a caller who has it sees it counted.
    executing_.fetch_sub(1, std::memory_order_relaxed);
    completed_.fetch_add(1, std::memory_order_relaxed);
    request->done(*request, std::move(result));
  }
}

}  // namespace opserve::server
