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

namespace {

constexpr absl::Duration kDefaultLease = absl::Minutes(10);

DeviceMemoryPool::Scrub ScrubMode(const std::string& name) {
  if (name == "always") return DeviceMemoryPool::Scrub::kAlways;
  if (name == "never") return DeviceMemoryPool::Scrub::kNever;
  return DeviceMemoryPool::Scrub::kCrossTenant;
}

DeviceServiceOptions ServiceOptions(const Config& config, size_t devices) {
  return {.lanes = config.streams_per_device,
          .queue_capacity = std::max<size_t>(config.queue_capacity_total / devices, 1),
          .execution_timeout = config.execution_timeout,
          .pool = {.max_bytes = config.workspace_max_bytes,
                   .floor_bytes = config.workspace_floor_bytes,
                   .decay = config.workspace_decay,
                   .scrub = ScrubMode(config.scrub)},
          .max_workspace_bytes = config.max_workspace_bytes,
          .max_workspace_ratio = config.max_workspace_ratio,
          .plan_cache_entries = config.executor_cache_entries,
          .first_recovery_wait = config.recovery_wait,
          .longest_recovery_wait = config.longest_recovery_wait};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Config& config) {
  auto daemon = std::unique_ptr<Daemon>(new Daemon(config));
  OPSERVE_RETURN_IF_ERROR(daemon->OpenDevices());
  OPSERVE_RETURN_IF_ERROR(daemon->StartListeners());
  return daemon;
}

Daemon::Daemon(const Config& config) : config_(config), start_time_(absl::Now()) {}

Daemon::~Daemon() {
  metrics_listener_.reset();
  admin_.reset();
  {
    absl::MutexLock lock(&health_mutex_);
    is_in_service_ = false;
  }
  grpc_.reset();  // waits for the last call, so nothing uses the devices any more
  monitor_.reset();
  // Tensors go before the pools that lent their memory; the supervisors still know the registry.
  if (residents_ != nullptr) residents_->Expire(absl::InfiniteFuture());
  if (pinned_ != nullptr) pinned_->Close();
  scheduler_.reset();
}

absl::Status Daemon::OpenDevices() {
  OPSERVE_ASSIGN_OR_RETURN(acl_, AclLibrary::Load(config_.acl_library_dir));
  operators_ = std::make_unique<OperatorTable>(*acl_);
  pinned_ = PinnedPool::Create(*acl_, config_.pinned_pool_bytes, config_.allow_host_fallback);
  residents_ = std::make_unique<ResidentTensors>(
      ResidentLimits{.max_bytes_per_tenant = config_.resident_max_bytes_per_tenant,
                     .max_tensors_per_tenant = config_.resident_max_tensors_per_tenant,
                     .default_lease = std::min(kDefaultLease, config_.resident_max_lease),
                     .max_lease = config_.resident_max_lease,
                     .grace = config_.resident_grace});

  OPSERVE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, DeviceIds());
  scheduler_ = std::make_unique<Scheduler>(
      *acl_, ids, *operators_, pinned_, ServiceOptions(config_, ids.size()),
      Scheduler::Hooks{.device_was_reset =
                           [this](int32_t device, uint64_t generation) {
                             residents_->DeviceWasReset(device, generation);
                           },
                       .state_changed = [this] { UpdateHealth(); }});
  monitor_ = std::make_unique<DeviceMonitor>(*scheduler_, *operators_, *pinned_, *residents_);

  std::vector<std::string> names;
  for (const LoadedOperator& op : operators_->operators()) {
    names.emplace_back(op.descriptor->name);
    if (!op.is_available()) LogWarning("operator_unavailable", {{"operator", names.back()}});
  }
  metrics_ = std::make_unique<RequestMetrics>(std::move(names), std::move(ids));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Daemon::DeviceIds() const {
  std::vector<int32_t> ids = config_.devices;
  uint32_t count = 0;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(*acl_, "aclrtGetDeviceCount", acl_->aclrtGetDeviceCount(&count)));
  if (ids.empty()) {
    for (uint32_t id = 0; id < count; ++id) ids.push_back(static_cast<int32_t>(id));
  }
  if (ids.empty()) return absl::FailedPreconditionError("the ACL libraries find no device");
  for (int32_t id : ids) {
    if (id >= static_cast<int32_t>(count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device=", id, ": there are devices 0 to ", count - 1));
    }
  }
  return ids;
}

void Daemon::UpdateHealth() {
  absl::MutexLock lock(&health_mutex_);
  if (is_in_service_) grpc_->SetServing(scheduler_->HasReadyDevice());
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
                                                       .residents = residents_.get(),
                                                       .metrics = metrics_.get(),
                                                       .status = [this] { return Status(); }}));
  if (config_.admin_listen) {
    OPSERVE_ASSIGN_OR_RETURN(admin_, AdminServer::Start(config_, *scheduler_));
  }
  {
    absl::MutexLock lock(&health_mutex_);
    is_in_service_ = true;
  }
  UpdateHealth();
  LogInfo("ready", {{"listen", grpc_->addresses()},
                    {"metrics_port", metrics_listener_ != nullptr ? metrics_listener_->port() : 0},
                    {"devices", scheduler_->devices().size()},
                    {"soc", acl_->soc_name()},
                    {"acl_library_dir", config_.acl_library_dir}});
  return absl::OkStatus();
}

int64_t Daemon::Drain() {
  {
    absl::MutexLock lock(&health_mutex_);
    is_in_service_ = false;
    grpc_->SetServing(false);
  }
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
