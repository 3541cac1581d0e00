#include "server/daemon.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "ops/catalog/status_macros.h"
#include "server/device/acl_status.h"
#include "server/observability/log.h"

namespace opserve::server {

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Config& config) {
  auto daemon = std::unique_ptr<Daemon>(new Daemon(config));
  OPSERVE_RETURN_IF_ERROR(daemon->OpenDevices());
  OPSERVE_RETURN_IF_ERROR(daemon->StartListeners());
  return daemon;
}

Daemon::Daemon(const Config& config) : config_(config), start_time_(absl::Now()) {}

Daemon::~Daemon() {
  metrics_listener_.reset();
  grpc_.reset();  // waits for the last call, so nothing uses the devices any more
  monitor_.reset();
  if (pinned_ != nullptr) pinned_->Close();
  scheduler_.reset();
}

absl::Status Daemon::OpenDevices() {
  OPSERVE_ASSIGN_OR_RETURN(acl_, AclLibrary::Load(config_.acl_library_dir));
  operators_ = std::make_unique<OperatorTable>(*acl_);
  pinned_ = PinnedPool::Create(*acl_, config_.pinned_pool_bytes);

  std::vector<int32_t> ids = config_.devices;
  uint32_t count = 0;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(*acl_, "aclrtGetDeviceCount", acl_->aclrtGetDeviceCount(&count)));
  if (ids.empty()) {
    for (uint32_t id = 0; id < count; ++id) ids.push_back(static_cast<int32_t>(id));
  }
  if (ids.empty()) return absl::FailedPreconditionError("the ACL libraries find no device");
  const DeviceServiceOptions options = {
      .lanes = config_.streams_per_device,
      .queue_capacity = std::max<size_t>(config_.queue_capacity_total / ids.size(), 1),
      .execution_timeout = config_.execution_timeout};
  std::vector<std::unique_ptr<DeviceService>> devices;
  for (int32_t id : ids) {
    if (id >= static_cast<int32_t>(count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device=", id, ": there are devices 0 to ", count - 1));
    }
    OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<DeviceService> device,
                             DeviceService::Start(*acl_, id, pinned_, options));
    devices.push_back(std::move(device));
  }
  scheduler_ = std::make_unique<Scheduler>(std::move(devices));
  monitor_ = std::make_unique<DeviceMonitor>(*scheduler_, *pinned_);

  std::vector<std::string> names;
  for (const LoadedOperator& op : operators_->operators()) {
    names.emplace_back(op.descriptor->name);
    if (!op.is_available()) LogWarning("operator_unavailable", {{"operator", names.back()}});
  }
  metrics_ = std::make_unique<RequestMetrics>(std::move(names), std::move(ids));
  return absl::OkStatus();
}

absl::Status Daemon::StartListeners() {
  if (config_.metrics_listen) {
    OPSERVE_ASSIGN_OR_RETURN(metrics_listener_,
                             MetricsListener::Start(config_.metrics_listen->ToString(),
                                                    [this] { return CollectMetrics(); }));
  }
  OPSERVE_ASSIGN_OR_RETURN(grpc_,
                           GrpcServer::Start(config_, {.operators = operators_.get(),
                                                       .scheduler = scheduler_.get(),
                                                       .metrics = metrics_.get(),
                                                       .status = [this] { return Status(); }}));
  grpc_->SetServing(true);
  LogInfo("ready", {{"listen", grpc_->addresses()},
                    {"metrics_port", metrics_listener_ != nullptr ? metrics_listener_->port() : 0},
                    {"devices", scheduler_->devices().size()},
                    {"soc", acl_->soc_name()},
                    {"acl_library_dir", config_.acl_library_dir}});
  return absl::OkStatus();
}

int64_t Daemon::Drain() {
  grpc_->SetServing(false);
  LogInfo("draining", {{"delay_seconds", absl::ToDoubleSeconds(config_.drain_delay)}});
  absl::SleepFor(config_.drain_delay);
  grpc_->RefuseNewCalls();
  const int64_t cut_off = grpc_->AwaitCalls(config_.drain_timeout);
  LogInfo("drained", {{"cut_off", cut_off}});
  return cut_off;
}

v1::GetServerStatusResponse Daemon::Status() const {
  v1::GetServerStatusResponse status;
  status.set_version(OPSERVE_VERSION);
  status.set_runtime(
      absl::StrCat(acl_->soc_name(), acl_->version().empty() ? "" : " ", acl_->version()));
  *status.mutable_start_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(start_time_));
  for (v1::DeviceStatus& device : monitor_->Status()) *status.add_devices() = std::move(device);
  return status;
}

std::vector<prometheus::MetricFamily> Daemon::CollectMetrics() const {
  std::vector<prometheus::MetricFamily> families = metrics_->Collect();
  for (prometheus::MetricFamily& family : monitor_->Collect()) {
    families.push_back(std::move(family));
  }
  families.push_back(
      MetricFamilyBuilder("opserve_build_info", "What is running.", prometheus::MetricType::Gauge)
          .Add({{"version", OPSERVE_VERSION},
                {"backend", acl_->soc_name()},
                {"runtime_version", acl_->version()}},
               1)
          .Build());
  return families;
}

}  // namespace opserve::server
