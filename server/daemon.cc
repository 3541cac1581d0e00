#include "server/daemon.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "proto/status/status_macros.h"
#include "server/admin/admin_server.h"
#include "server/config/config_text.h"
#include "server/deposit/depositor.h"
#include "server/device/acl/acl_library.h"
#include "server/device/device_ids.h"
#include "server/device/memory/pinned_pool.h"
#include "server/device/npu_signs.h"
#include "server/identity/tenants.h"
#include "server/listeners/grpc_server.h"
#include "server/net/bound_addresses.h"
#include "server/net/descriptor_limit.h"
#include "server/net/tls_files.h"
#include "server/observability/log.h"
#include "server/observability/process_metrics.h"
#include "server/observability/request_metrics.h"
#include "server/observability/tenant_series.h"
#include "server/observability/tenant_slot.h"
#include "server/program/operator_table.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/resident_mover.h"
#include "server/schedule/lanes/scheduler.h"
#include "server/schedule/lanes/shadow_checks.h"
#include "server/shared_memory/named_regions.h"
#include "server/shared_memory/shared_regions.h"
#include "server/shm/shared_memory_server.h"
#include "server/telemetry/connection_metrics.h"
#include "server/telemetry/daemon_metrics.h"
#include "server/telemetry/device_monitor.h"
#include "server/telemetry/metrics_listener.h"
#include "server/telemetry/overload_metrics.h"
#include "server/telemetry/prepared_metrics.h"
#include "server/telemetry/resident_metrics.h"
#include "server/telemetry/tenant_metrics.h"

namespace opserve::server {

namespace {

// Beside connections of clients: those for metrics and administrators, files, the devices' own.
constexpr uint64_t kOtherDescriptors = 1024;

constexpr absl::Duration kDefaultLease = absl::Minutes(10);
// How long /healthz waits for the polling threads; probes wait for a second unless told otherwise.
constexpr absl::Duration kProbePatience = absl::Milliseconds(500);

#ifdef NDEBUG
constexpr bool kIsDebugBuild = false;
#else
constexpr bool kIsDebugBuild = true;
#endif

DeviceMemoryPool::Scrub ScrubMode(const std::string& name) {
  if (name == "always") return DeviceMemoryPool::Scrub::kAlways;
  if (name == "never") return DeviceMemoryPool::Scrub::kNever;
  return DeviceMemoryPool::Scrub::kCrossTenant;
}

// The daemon's name for administrators: its machine's.
std::string HostName() {
  utsname system = {};
  uname(&system);
  return system.nodename;
}

// Says once that NPUs may be meant, which are not used unless the configuration names CANN.
void WarnOfUnusedNpus(const AclLibrary& acl) {
  const std::vector<std::string> signs =
      NpuSigns("/", acl.layout().runtime, [](const char* name) { return std::getenv(name); });
  if (signs.empty()) return;
  LogWarning("npus_not_used", {{"found", signs},
                               {"runtime", acl.runtime_name()},
                               {"advice", "to compute on NPUs: --acl_library_dir=cann"}});
}

// To a TenantStatus or an OperatorStatus.
template <typename Message>
void CopyTotals(const RequestTotals& totals, Message* to) {
  to->set_requests(totals.requests);
  to->set_failed_requests(totals.failed);
  to->set_success_seconds(totals.success_seconds);
  to->set_request_bytes(totals.request_bytes);
  to->set_response_bytes(totals.response_bytes);
}

RequestLogOptions LogOptions(const Config& config) {
  return {.slow = config.log_slow_requests,
          .sample_one_in = config.log_sample_one_in,
          .lines_per_second = config.log_requests_per_second};
}

DeviceServiceOptions ServiceOptions(const Config& config, size_t devices) {
  return {.lanes = config.streams_per_device,
          .visitors = GrpcServer::NumPollers(),
          // The option is for the daemon, and each device has a queue of its own.
          .queue_capacity = std::max<size_t>(config.queue_capacity_total / devices, 1),
          .queue_capacity_per_tenant = config.queue_capacity_per_tenant,
          .queue_work_per_tenant = config.queue_work_per_tenant,
          .queue_max_age = config.queue_max_age,
          .execution_timeout = config.execution_timeout,
          .pool = {.max_bytes = config.workspace_max_bytes,
                   .floor_bytes = config.workspace_floor_bytes,
                   .decay = config.workspace_decay,
                   .scrub = ScrubMode(config.scrub),
                   .guard = kIsDebugBuild || config.guard_device_memory,
                   .allocation_log = config.allocation_log},
          .max_workspace_bytes = config.max_workspace_bytes,
          .max_workspace_ratio = config.max_workspace_ratio,
          .plan_cache_entries = config.executor_cache_entries,
          // A captured run keeps its memory from run to run: it is not lent, and not scrubbed.
          .captured_max_bytes = config.scrub == "always" ? 0 : config.captured_max_bytes_per_device,
          .captures_per_program = config.captures_per_program,
          .first_recovery_wait = config.recovery_wait,
          .longest_recovery_wait = config.longest_recovery_wait};
}

// The hardware's limit is the second line: a lane gives up before, and aborts its stream. Where
// that does not end a kernel, this does, and not the vendor's own limit, 18 minutes.
void LimitExecutions(const AclLibrary& acl, absl::Duration execution_timeout) {
  const absl::StatusOr<absl::Duration> limit = acl.SetExecutionLimit(2 * execution_timeout);
  if (limit.ok()) {
    LogInfo("execution_limit", {{"seconds", absl::ToDoubleSeconds(*limit)}});
  } else {
    LogWarning("no_execution_limit", {{"reason", std::string(limit.status().message())}});
  }
}

// Every connection takes one descriptor, those of shared memory another.
void MakeRoomForConnections(const Config& config) {
  const uint64_t wanted =
      uint64_t{config.max_connections} * (config.enable_shm ? 2 : 1) + kOtherDescriptors;
  const uint64_t limit = RaiseDescriptorLimit(wanted);
  if (limit >= wanted) return;
  LogWarning("few_descriptors",
             {{"limit", limit},
              {"wanted", wanted},
              {"advice", "raise the hard limit (LimitNOFILE=), or lower max_connections"}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    const Config& config, std::function<absl::StatusOr<Config>()> load_config, PacksToServe packs) {
  auto daemon = std::unique_ptr<Daemon>(new Daemon(config, std::move(load_config)));
  // Cheap steps come first: a wrong path or an address in use is reported before the devices are
  // opened, which takes longer.
  MakeRoomForConnections(config);
  if (config.deposit) OPSERVE_RETURN_IF_ERROR(CheckDepositFiles(*config.deposit));
  if (config.tls) {
    OPSERVE_ASSIGN_OR_RETURN(daemon->tls_, TlsFiles::Open(*config.tls));
  }
  OPSERVE_ASSIGN_OR_RETURN(BoundAddresses bound, BindAddresses(config));
  OPSERVE_RETURN_IF_ERROR(daemon->OpenDevices(std::move(packs)));
  OPSERVE_RETURN_IF_ERROR(daemon->Serve(std::move(bound)));
  return daemon;
}

Daemon::Daemon(const Config& config, std::function<absl::StatusOr<Config>()> load_config)
    : config_(config),
      load_config_(std::move(load_config)),
      start_time_(absl::Now()),
      tenants_(std::make_unique<Tenants>(config.tenants)),
      peers_(config.peers),
      request_log_(LogOptions(config)),
      values_(config.values) {}

bool Daemon::IsAlive(absl::Duration timeout) const { return grpc_->IsPolling(timeout); }

const std::vector<std::string>& Daemon::addresses() const { return grpc_->addresses(); }

Daemon::~Daemon() {
  // Collectors and administrators look at all other parts, so their threads end first.
  history_.Stop();
  metrics_listener_.reset();
  admin_.reset();
  drain_.Join();  // nobody is left to begin one, and it uses the parts that go next
  {
    // From here on UpdateHealth, which supervisors call, leaves grpc_ alone.
    absl::MutexLock lock(&health_mutex_);
    service_ = Service::kEnding;
  }
  // Regions go with their connections and their last calls, or after them, while the devices that
  // have them registered are there.
  shared_memory_.reset();
  grpc_.reset();  // waits for the last call, so nothing uses the devices any more
  named_regions_.reset();
  depositor_.reset();
  // A check begins after its request was answered, so the last call may have left one.
  if (shadow_checks_ != nullptr) shadow_checks_->Stop();
  mover_.reset();
  monitor_.reset();
  // Tensors go before the pools that lent their memory; the supervisors still know the registry.
  if (residents_ != nullptr) residents_->Expire(absl::InfiniteFuture());
  if (pinned_ != nullptr) pinned_->Close();
  scheduler_.reset();
}

absl::Status Daemon::OpenDevices(PacksToServe to_serve) {
  // Before this process has the devices, which may be short of memory for two.
  for (OperatorPack& pack : to_serve.packs) {
    if (to_serve.try_pack != nullptr) to_serve.try_pack(&pack);
  }
  OPSERVE_ASSIGN_OR_RETURN(acl_, AclLibrary::Load(config_.acl_library_dir));
  for (const std::string& problem : acl_->problems()) {
    LogWarning("acl_library_problem", {{"problem", problem}});
  }
  // A directory in the configuration is a decision; without one, nothing was decided.
  if (acl_->is_host_cann() && config_.values.acl_library_dir().empty()) WarnOfUnusedNpus(*acl_);
  LimitExecutions(*acl_, config_.execution_timeout);
  operators_ = std::make_unique<OperatorTable>(*acl_, std::move(to_serve.packs));
  for (const OperatorPack& pack : operators_->packs()) LogPack(pack);
  pinned_ = PinnedPool::Create(*acl_, config_.pinned_pool_bytes, config_.allow_host_fallback);
  residents_ = std::make_unique<ResidentTensors>(
      ResidentLimits{.max_bytes_per_tenant = config_.resident_max_bytes_per_tenant,
                     .max_tensors_per_tenant = config_.resident_max_tensors_per_tenant,
                     .default_lease = std::min(kDefaultLease, config_.resident_max_lease),
                     .max_lease = config_.resident_max_lease,
                     .grace = config_.resident_grace},
      config_.deposit ? config_.deposit->client_address : "");
  prepared_ = std::make_unique<PreparedPrograms>(
      PreparedLimits{.max_programs_per_tenant = config_.prepared_max_programs_per_tenant,
                     .max_bytes_per_tenant = config_.prepared_max_bytes_per_tenant,
                     .default_lease = std::min(kDefaultLease, config_.resident_max_lease),
                     .max_lease = config_.resident_max_lease,
                     .are_deposited = config_.deposit.has_value()});

  const SharedRegion::Retire retire = [this](int32_t device,
                                             std::shared_ptr<const HostRegistration> registration) {
    scheduler_->Find(device)->DestroyOnDevice(std::move(registration));
  };
  if (config_.enable_shm)
    shared_regions_ = std::make_unique<SharedRegions>(retire, shared_memory_quota_);
  if (config_.allow_named_shm)
    named_regions_ = std::make_unique<NamedRegions>(retire, shared_memory_quota_);

  OPSERVE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, DeviceIds(*acl_, config_.devices));
  // Supervisors' threads start here and call the hooks, while mover_ and grpc_ are not made yet: no
  // drain can begin before there is service, and UpdateHealth waits for kOffered.
  scheduler_ = std::make_unique<Scheduler>(
      *acl_, ids, *operators_, pinned_, ServiceOptions(config_, ids.size()),
      Scheduler::Hooks{.device_was_reset =
                           [this](int32_t device, uint64_t generation) {
                             residents_->DeviceWasReset(device, generation);
                           },
                       .device_drains = [this] { mover_->Wake(); },  // once there is service
                       .state_changed = [this] { UpdateHealth(); }});
  OPSERVE_RETURN_IF_ERROR(CheckTenants(config_.tenants));
  OPSERVE_RETURN_IF_ERROR(scheduler_->SetTenants(tenants_->Settings()));
  mover_ = std::make_unique<ResidentMover>(*scheduler_, *residents_,
                                           [this](uint32_t tenant) { return TenantName(tenant); });
  monitor_ =
      std::make_unique<DeviceMonitor>(*scheduler_, *operators_, *pinned_, *residents_, *prepared_);

  std::vector<std::string> names;
  for (const LoadedOperator& op : operators_->operators()) {
    names.emplace_back(op.descriptor->name);
    if (!scheduler_->IsOffered(op)) {
      LogWarning("operator_unavailable",
                 {{"operator", names.back()}, {"reason", op.unavailable_reason()}});
    }
  }
  shadow_checks_ = std::make_unique<ShadowChecks>(*scheduler_, names, config_.shadow_check_ratio);
  metrics_ = std::make_unique<RequestMetrics>(std::move(names), std::move(ids));
  return absl::OkStatus();
}

std::string Daemon::TenantName(uint32_t tenant) const {
  const std::vector<std::string> names = tenants_->Names();
  return tenant < names.size() ? names[tenant] : std::string();
}

absl::Status Daemon::CheckTenants(const TenantsConfig& tenants) const {
  uint64_t device_bytes = 0;
  uint64_t pinned_bytes = 0;
  // Sums of huge reservations are refused as too large instead of wrapping.
  const auto add = [](uint64_t bytes, uint64_t* sum) {
    *sum = bytes > UINT64_MAX - *sum ? UINT64_MAX : *sum + bytes;
  };
  for (const TenantConfig& tenant : tenants.tenants) {
    add(tenant.device_memory.reserved_bytes, &device_bytes);
    add(tenant.pinned_memory.reserved_bytes, &pinned_bytes);
    for (const std::string& name : tenant.operators) {
      if (operators_->Find(name) == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("tenant ", tenant.name, ": operator: there is no \"", name, "\""));
      }
    }
  }
  return scheduler_->CheckReservations(device_bytes, pinned_bytes);
}

absl::StatusOr<std::vector<std::string>> Daemon::Reload(const absl::StatusOr<Config>& config) {
  absl::MutexLock lock(&reload_mutex_);
  absl::StatusOr<std::vector<std::string>> changes = TryReload(config);
  if (changes.ok()) {
    reloads_.fetch_add(1, std::memory_order_relaxed);
    LogInfo("config_reloaded", {{"changes", *changes}});
    return changes;
  }
  // Counted apart from ordinary mistakes: a restart with this file would serve all clients.
  const bool is_dangerous = absl::IsDataLoss(changes.status()) && !values_.tenant().empty();
  (is_dangerous ? dangerous_reloads_ : failed_reloads_).fetch_add(1, std::memory_order_relaxed);
  LogError("config_not_reloaded", {{"error", std::string(changes.status().message())},
                                   {"would_lose_tenants", is_dangerous}});
  return changes;
}

absl::StatusOr<std::vector<std::string>> Daemon::TryReload(const absl::StatusOr<Config>& config) {
  OPSERVE_RETURN_IF_ERROR(config.status());
  // First, since a file that lost its contents differs in other values as well.
  OPSERVE_RETURN_IF_ERROR(CheckKeepsTenants(values_, config->values));
  const std::string fixed = FieldsThatNeedRestart(config_.values, config->values);
  if (!fixed.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("only a restart can change ", fixed));
  }
  // First all checks, then the TLS files, which may turn out to be broken, but then change nothing.
  // The steps after them cannot fail any more: only reloads change tenants, and they take turns.
  OPSERVE_RETURN_IF_ERROR(CheckTenants(config->tenants));
  OPSERVE_RETURN_IF_ERROR(tenants_->CheckCanSet(config->tenants));
  if (tls_ != nullptr) OPSERVE_RETURN_IF_ERROR(tls_->Reload());
  OPSERVE_RETURN_IF_ERROR(tenants_->Set(config->tenants));
  OPSERVE_RETURN_IF_ERROR(scheduler_->SetTenants(tenants_->Settings()));
  request_log_.SetOptions(LogOptions(*config));
  OPSERVE_RETURN_IF_ERROR(SetLogLevel(config->log_level));
  std::vector<std::string> changes = Changes(values_, config->values);
  values_ = config->values;
  return changes;
}

void Daemon::UpdateHealth() {
  absl::MutexLock lock(&health_mutex_);
  // Before kOffered there is no server to tell, and from kEnding on it says NOT_SERVING.
  if (service_ == Service::kOffered) grpc_->SetServing(scheduler_->HasReadyDevice());
}

absl::Status Daemon::Liveness() const {
  if (IsAlive(kProbePatience)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("a polling thread has not answered within ",
                                             absl::FormatDuration(kProbePatience)));
}

absl::Status Daemon::Readiness() {
  absl::MutexLock lock(&health_mutex_);
  if (grpc_->is_serving()) return absl::OkStatus();
  // The most general reason comes first: a daemon that starts has no ready device either.
  if (service_ == Service::kStarting) return absl::UnavailableError("the daemon is starting");
  if (service_ == Service::kEnding) return absl::UnavailableError("the daemon is draining");
  return absl::UnavailableError(absl::StrCat(
      "no device is ready: ",
      absl::StrJoin(scheduler_->devices(), ", ", [](std::string* out, const auto& service) {
        absl::StrAppend(
            out, "device ", service->device().id(), " is ",
            service->is_drained() ? "drained" : DeviceStateName(service->device().state()));
      })));
}

absl::Status Daemon::Serve(BoundAddresses bound) {
  if (config_.deposit) {
    depositor_ = std::make_unique<Depositor>(
        *config_.deposit,
        Depositor::Parts{
            .scheduler = *scheduler_,
            .residents = *residents_,
            .prepared = *prepared_,
            .metrics = deposits_,
            .tenant_name = [this](uint32_t tenant) { return TenantName(tenant); },
            // Called during the drain, when grpc_ is there.
            .on_welcome = [this] { grpc_->SetMovedTo(&config_.deposit->client_address); }});
  }
  OPSERVE_ASSIGN_OR_RETURN(grpc_,
                           GrpcServer::Start(config_, std::move(bound.clients),
                                             {.requests = {.operators = operators_.get(),
                                                           .scheduler = scheduler_.get(),
                                                           .residents = residents_.get(),
                                                           .prepared = prepared_.get(),
                                                           .shared_regions = shared_regions_.get(),
                                                           .metrics = metrics_.get(),
                                                           .request_log = &request_log_,
                                                           .shadow_checks = shadow_checks_.get()},
                                              .named_regions = named_regions_.get(),
                                              .tenants = tenants_.get(),
                                              .peers = &peers_,
                                              .deposits = &deposits_,
                                              .tls = tls_.get(),
                                              .status = [this] { return Status(); }}));
  if (config_.enable_shm) {
    OPSERVE_ASSIGN_OR_RETURN(
        shared_memory_,
        SharedMemoryServer::Start(
            config_, std::move(bound.shared_memory),
            {.tenants = *tenants_, .regions = *shared_regions_, .metrics = *metrics_}));
  }
  if (bound.admin) {
    OPSERVE_ASSIGN_OR_RETURN(
        admin_,
        AdminServer::Start(
            config_, *std::move(bound.admin), *scheduler_,
            {.status = [this] { return AdminStatus(); },
             .reload = [this] { return AdminReload(); },
             .list_tensors = [this](const std::string& tenant) { return AdminTensors(tenant); },
             .drain = [this](absl::Time deadline) { return AdminDrain(deadline); }}));
  }
  // Its thread collects from all that was started before.
  if (bound.metrics) {
    OPSERVE_ASSIGN_OR_RETURN(
        metrics_listener_,
        MetricsListener::Start(*std::move(bound.metrics), config_.metrics_hosts,
                               {.collect = [this] { return CollectMetrics(); },
                                .history = [this] { return history_.ToJson(absl::Now()); },
                                .health = [this] { return Liveness(); },
                                .readiness = [this] { return Readiness(); },
                                .runbook_url = config_.values.runbook_url()}));
    metrics_source_.store(metrics_listener_.get(), std::memory_order_release);
  }
  {
    absl::MutexLock lock(&health_mutex_);
    // From here on changes of state reach health; the call of UpdateHealth catches up with those
    // that came before.
    service_ = Service::kOffered;
  }
  UpdateHealth();
  // Last, since its thread reads the counters of all listeners.
  if (metrics_listener_ != nullptr) history_.Start([this] { return CollectMetrics(); });
  LogInfo("ready",
          {{"listen", grpc_->addresses()},
           {"metrics_port", metrics_listener_ != nullptr ? metrics_listener_->address().port : 0},
           {"devices", scheduler_->devices().size()},
           {"runtime", acl_->runtime_name()},
           {"soc", acl_->soc_name()},
           {"runtime_version", acl_->version()},
           {"acl_library_dir", acl_->layout().library_dir},
           {"version", OPSERVE_VERSION},
           {"config", config_.file}});
  return absl::OkStatus();
}

std::string Daemon::Summary() const {
  const size_t devices = scheduler_->devices().size();
  std::string text =
      absl::StrCat("opserved ", OPSERVE_VERSION, ", ", devices,
                   devices == 1 ? " device" : " devices", " of ", acl_->runtime_name(), "\n");
  const auto add = [&text](absl::string_view part, absl::string_view where) {
    absl::StrAppend(&text, "  ", part, std::string(16 - part.size(), ' '), where, "\n");
  };
  for (const std::string& address : grpc_->addresses()) add("clients", address);
  if (admin_ != nullptr) add("administrators", admin_->address());
  if (metrics_listener_ != nullptr) {
    add("status page", absl::StrCat("http://", metrics_listener_->address().ToString(), "/"));
  }
  add("configuration", config_.file.empty() ? "no file; see opserved --help" : config_.file);
  return text;
}

absl::StatusOr<v1::ReloadResponse> Daemon::AdminReload() {
  OPSERVE_ASSIGN_OR_RETURN(
      const std::vector<std::string> changes,
      // Without a file this is a failed reload like others: logged and counted.
      Reload(load_config_ ? load_config_() : absl::UnimplementedError("there is no file to read")));
  v1::ReloadResponse response;
  response.set_file(config_.file);
  response.mutable_changes()->Assign(changes.begin(), changes.end());
  return response;
}

absl::StatusOr<v1::ListTensorsResponse> Daemon::AdminTensors(const std::string& name) const {
  const std::vector<std::string> names = tenants_->Names();
  std::optional<uint32_t> id;
  if (!name.empty()) {
    // Names of tenants that a reload removed are found as well: their tensors may still be there.
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return absl::NotFoundError(absl::StrCat("there is no tenant \"", name, "\""));
    }
    id = static_cast<uint32_t>(found - names.begin());
  }
  const absl::Time now = absl::Now();
  const ResidentTensors::Largest largest = residents_->ListLargest(id, kMaxListedTensors, now);
  v1::ListTensorsResponse response;
  for (const ResidentTensors::Listed& tensor : largest.tensors) {
    v1::ListTensorsResponse::Tensor* to = response.add_tensors();
    to->set_tenant(tensor.tenant < names.size() ? names[tensor.tenant] : "");
    ToProto(tensor, to->mutable_tensor());
    // Enough to tell the tensors apart; the whole handle is the tenant's.
    to->mutable_tensor()->mutable_handle()->resize(kShownHandleBytes);
  }
  response.set_total_tensors(largest.all.tensors);
  response.set_total_bytes(largest.all.bytes);
  *response.mutable_time() = ToTimestamp(now);
  return response;
}

int64_t Daemon::Drain() { return *drain_.Await(absl::InfiniteFuture()); }

int64_t Daemon::EndService() {
  // Health comes first, since balancers need the delay to notice. The depositor connects meanwhile,
  // but tensors go only when no new call can use or change them, and it finishes when no call is
  // left that could make new ones.
  is_stopping_.store(true, std::memory_order_relaxed);
  {
    absl::MutexLock lock(&health_mutex_);
    service_ = Service::kEnding;
    grpc_->BeginLeaving();
  }
  LogInfo("draining", {{"delay_seconds", absl::ToDoubleSeconds(config_.drain_delay)}});
  if (depositor_ != nullptr) depositor_->Begin();
  absl::SleepFor(config_.drain_delay);
  grpc_->RefuseNewCalls();
  if (depositor_ != nullptr) depositor_->Start(absl::Now() + config_.drain_timeout);
  const int64_t cut_off = grpc_->AwaitCalls(config_.drain_timeout);
  if (depositor_ != nullptr) depositor_->Finish();
  LogInfo("drained", {{"cut_off", cut_off}});
  return cut_off;
}

absl::StatusOr<v1::DrainDaemonResponse> Daemon::AdminDrain(absl::Time deadline) {
  const std::optional<int64_t> cut_off = drain_.Await(deadline);
  if (!cut_off) return absl::DeadlineExceededError("the daemon still drains");
  v1::DrainDaemonResponse response;
  response.set_cut_off_calls(static_cast<uint64_t>(*cut_off));
  if (depositor_ != nullptr) *response.mutable_deposit() = depositor_->Status();
  response.set_lost_tensors(depositor_ != nullptr ? response.deposit().lost_tensors()
                                                  : residents_->Total().tensors);
  return response;
}

v1::GetServerStatusResponse Daemon::Status() const {
  v1::GetServerStatusResponse status;
  status.set_version(OPSERVE_VERSION);
  status.set_runtime(acl_->runtime_name());
  *status.mutable_start_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(start_time_));
  for (v1::DeviceStatus& device : monitor_->Status()) *status.add_devices() = std::move(device);
  status.set_stopping(is_stopping_.load(std::memory_order_relaxed));
  // Before the drain there is nothing to deposit, and no status of it.
  if (status.stopping() && depositor_ != nullptr) *status.mutable_deposit() = depositor_->Status();
  for (const OperatorPack& pack : operators_->packs()) {
    v1::OperatorPackStatus* to = status.add_operator_packs();
    to->set_name(pack.name);
    to->set_operators(static_cast<uint32_t>(pack.operators.size()));
    if (pack.is_refused()) to->set_refusal(std::string(PackRefusalName(pack.refusal)));
  }
  return status;
}

v1::AdminStatus Daemon::AdminStatus() const {
  using google::protobuf::util::TimeUtil;
  v1::AdminStatus status;
  *status.mutable_time() = TimeUtil::NanosecondsToTimestamp(absl::GetCurrentTimeNanos());
  status.set_version(OPSERVE_VERSION);
  status.set_runtime(acl_->runtime_name());
  *status.mutable_start_time() = TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(start_time_));
  for (v1::DeviceStatus& device : monitor_->Status()) *status.add_devices() = std::move(device);
  // Those that a reload removed are left out.
  const std::vector<Tenant*> tenants = tenants_->Current();
  std::vector<uint32_t> ids;
  for (const Tenant* tenant : tenants) {
    ids.push_back(tenant->id());
    v1::TenantStatus* to = status.add_tenants();
    to->set_name(tenant->name());
    to->set_weight(tenant->config()->weight);
    to->set_pending_requests(tenant->pending());
    CopyTotals(tenant->totals(), to);
    const ResidentTensors::Usage residents = residents_->UsageOfTenant(tenant->id());
    to->set_resident_tensors(residents.tensors);
    to->set_resident_bytes(residents.bytes);
    const PreparedPrograms::Usage prepared = prepared_->UsageOfTenant(tenant->id());
    to->set_prepared_programs(prepared.handles);
    to->set_prepared_bytes(prepared.bytes);
  }
  for (const auto& [name, totals] : metrics_->Totals()) {
    v1::OperatorStatus* to = status.add_operators();
    to->set_name(name);
    CopyTotals(totals, to);
  }
  // TenantStates answers in the order of `ids`, which is that of the tenants added above.
  for (const auto& service : scheduler_->devices()) {
    const std::vector<DeviceQueue::TenantState> states = service->queue().TenantStates(ids);
    for (size_t i = 0; i < states.size(); ++i) {
      v1::TenantOnDevice* to = status.mutable_tenants(static_cast<int>(i))->add_devices();
      to->set_device(service->device().id());
      to->set_queued_requests(states[i].queued);
      to->set_device_bytes(states[i].device_bytes);
      to->set_lane_seconds(absl::ToDoubleSeconds(service->TenantTime(TenantSlot(ids[i]))));
      to->set_lag_seconds(absl::ToDoubleSeconds(states[i].lag));
    }
  }
  status.set_connections(grpc_->acceptor().connections());
  status.set_rejected_connections(grpc_->acceptor().rejected());
  const PinnedPool::Statistics pinned = pinned_->statistics();
  status.set_pinned_reserved_bytes(pinned.reserved_bytes);
  status.set_pinned_allocated_bytes(pinned.allocated_bytes);
  status.set_log_level(LogLevel());
  status.set_daemon(HostName());
  status.set_stopping(is_stopping_.load(std::memory_order_relaxed));
  return status;
}

std::vector<prometheus::MetricFamily> Daemon::CollectMetrics() const {
  // One choice of tenants for all families, so that a tenant is either named or part of "_other" in
  // each of them.
  const TenantSeries tenants(tenants_->Names(), config_.metrics_max_tenants);
  const bool has_shared_memory = config_.enable_shm || config_.allow_named_shm;
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](std::vector<prometheus::MetricFamily> more) {
    std::move(more.begin(), more.end(), std::back_inserter(families));
  };
  add(metrics_->Collect(tenants));
  add(monitor_->Collect());
  add(CollectTenantMetrics(tenants, *scheduler_, grpc_->idempotency(),
                           has_shared_memory ? &shared_memory_quota_ : nullptr));
  add(CollectOverloadMetrics({.scheduler = *scheduler_,
                              .pinned = *pinned_,
                              .tenants = tenants_->Current(),
                              .connections = grpc_->acceptor().connections(),
                              .max_connections = config_.max_connections}));
  families.push_back(shadow_checks_->Collect());
  add(grpc_->transfers().Collect());
  add(deposits_.Collect());
  grpc_->sessions().Collect(&families);
  add(CollectResidentMetrics(*residents_, *scheduler_, *mover_));
  add(CollectPreparedMetrics(*prepared_));
  add(CollectBoundMetrics(grpc_->known_requests()));
  add(CollectProcessMetrics());
  std::vector<ListenerConnections> listeners = {{"unix", grpc_->acceptor().unix_counters()},
                                                {"tcp", grpc_->acceptor().tcp_counters()}};
  if (admin_ != nullptr) listeners.push_back({"admin", admin_->acceptor().unix_counters()});
  // Null during the start, and where metrics are not served.
  if (const auto* listener = metrics_source_.load(std::memory_order_acquire)) {
    listeners.push_back({"metrics", listener->connections()});
  }
  add(CollectConnectionMetrics({.listeners = listeners,
                                .ledger = grpc_->ledger(),
                                .health = grpc_->health(),
                                .stalled_calls = grpc_->stalled_calls(),
                                .stalled_connections = grpc_->acceptor().stalled()}));
  add(CollectDaemonMetrics(
      {.acl = *acl_,
       .history = history_,
       .reloads = reloads_.load(),
       .failed_reloads = failed_reloads_.load(),
       .dangerous_reloads = dangerous_reloads_.load(),
       .certificate_expiry = tls_ == nullptr ? std::nullopt : std::optional(tls_->expiry())}));
  return families;
}

}  // namespace opserve::server
