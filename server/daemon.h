// The daemon: devices, scheduler, gRPC and metrics, put together and taken apart in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "server/config/config.h"
#include "server/deposit/deposit_metrics.h"
#include "server/grpc/drain_once.h"
#include "server/identity/peers.h"
#include "server/observability/request_log.h"
#include "server/program/operator_pack.h"
#include "server/shared_memory/shared_memory_quota.h"
#include "server/telemetry/status_page/status_history.h"

namespace opserve::v1 {
class AdminStatus;
class DrainDaemonResponse;
class GetServerStatusResponse;
class ListTensorsResponse;
class ReloadResponse;
}  // namespace opserve::v1

namespace opserve::server {

// Tests of the whole daemon include this header: the parts' own are for those that reach into one.
class AclLibrary;
class AdminServer;
class Depositor;
class DeviceMonitor;
class GrpcServer;
class MetricsListener;
class NamedRegions;
class OperatorTable;
class PinnedPool;
class PreparedPrograms;
class RequestMetrics;
class ResidentMover;
class ResidentTensors;
class Scheduler;
class ShadowChecks;
class SharedMemoryServer;
class SharedRegions;
class Tenants;
class TlsFiles;
struct BoundAddresses;

// The packs to serve, and how one is tried before it is loaded: it is refused if that fails.
struct PacksToServe {
  std::vector<OperatorPack> packs = {};
  std::function<void(OperatorPack*)> try_pack = nullptr;  // null: they are not tried
};

class Daemon {
 public:
  // Loads the libraries, opens the devices and serves. The error says how to mend its cause.
  // `load_config` reads the configuration again when an administrator asks for it; none: that is
  // not possible.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(
      const Config& config, std::function<absl::StatusOr<Config>()> load_config = nullptr,
      PacksToServe packs = {});

  // Cancels the calls in flight and waits until the devices have let go of them.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Ends service without losing requests: health says NOT_SERVING at once, calls are taken for
  // --drain_delay more, then refused, and those in progress have --drain_timeout to end. As long,
  // resident tensors are deposited at the daemon that the configuration names. Blocks that long at
  // most; returns how many calls did not end. Thread-safe: there is one drain, which all wait for.
  int64_t Drain();

  // Takes over the settings in `config` that need no restart: tenants, log level, TLS files.
  // Returns the changes, as Changes does. Thread-safe. On an error everything is as it was.
  // kFailedPrecondition, kInvalidArgument: the message has the reason. kDataLoss: tenants would be
  // lost, see CheckKeepsTenants, or the file is empty.
  absl::StatusOr<std::vector<std::string>> Reload(const absl::StatusOr<Config>& config)
      ABSL_LOCKS_EXCLUDED(reload_mutex_);

  // Whether calls are still taken up, found out within `timeout`. Thread-safe.
  bool IsAlive(absl::Duration timeout) const;

  // Addresses, devices and configuration as text for people, a line each.
  std::string Summary() const;

  // Addresses served, with the ports the system chose.
  const std::vector<std::string>& addresses() const;

  // The metrics of a scrape; thread-safe.
  std::vector<prometheus::MetricFamily> CollectMetrics() const;

  const TlsFiles* tls() const { return tls_.get(); }  // null: there are none
  Scheduler& scheduler() { return *scheduler_; }
  ResidentTensors& residents() { return *residents_; }
  PreparedPrograms& prepared() { return *prepared_; }
  PinnedPool& pinned() { return *pinned_; }

 private:
  Daemon(const Config& config, std::function<absl::StatusOr<Config>()> load_config);
  // Empty: there never was such a tenant.
  std::string TenantName(uint32_t tenant) const;
  absl::Status CheckTenants(const TenantsConfig& tenants) const;
  absl::StatusOr<std::vector<std::string>> TryReload(const absl::StatusOr<Config>& config)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reload_mutex_);
  // A part of Drain: what it does, once.
  int64_t EndService() ABSL_LOCKS_EXCLUDED(health_mutex_);
  v1::AdminStatus AdminStatus() const;
  absl::StatusOr<v1::DrainDaemonResponse> AdminDrain(absl::Time deadline);
  absl::StatusOr<v1::ReloadResponse> AdminReload();
  // kNotFound: there never was such a tenant.
  absl::StatusOr<v1::ListTensorsResponse> AdminTensors(const std::string& name) const;
  absl::Status OpenDevices(PacksToServe packs);
  absl::Status Serve(BoundAddresses bound);
  v1::GetServerStatusResponse Status() const;

  // Health follows the devices' states, from the start of service to the drain.
  void UpdateHealth() ABSL_LOCKS_EXCLUDED(health_mutex_);
  // The answers to probes, with the reason in one line as message: whether calls are answered at
  // all, and whether health says that they are served.
  absl::Status Liveness() const;
  absl::Status Readiness() ABSL_LOCKS_EXCLUDED(health_mutex_);

  const Config config_;
  const std::function<absl::StatusOr<Config>()> load_config_;
  const absl::Time start_time_;
  // In the order of construction; taken apart the other way round.
  std::unique_ptr<AclLibrary> acl_;
  std::unique_ptr<OperatorTable> operators_;
  std::unique_ptr<Tenants> tenants_;
  const Peers peers_;
  std::unique_ptr<TlsFiles> tls_;
  std::shared_ptr<PinnedPool> pinned_;
  std::unique_ptr<PreparedPrograms> prepared_;
  std::unique_ptr<ResidentTensors> residents_;
  SharedMemoryQuota shared_memory_quota_;
  std::unique_ptr<SharedRegions> shared_regions_;  // null: shared memory is not enabled
  std::unique_ptr<NamedRegions> named_regions_;    // null: regions by name are not allowed
  std::unique_ptr<ShadowChecks> shadow_checks_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<ResidentMover> mover_;
  std::unique_ptr<DeviceMonitor> monitor_;
  std::unique_ptr<RequestMetrics> metrics_;
  RequestLog request_log_;
  DepositMetrics deposits_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<Depositor> depositor_;  // null: tensors are lost when the daemon ends
  std::unique_ptr<SharedMemoryServer> shared_memory_;  // null likewise
  std::unique_ptr<AdminServer> admin_;
  StatusHistory history_;
  std::unique_ptr<MetricsListener> metrics_listener_;
  // The same pointer for scrapes: the listener's own thread may scrape before it is stored above,
  // and until it is gone.
  std::atomic<const MetricsListener*> metrics_source_ = nullptr;

  absl::Mutex reload_mutex_;                                    // one reload at a time
  config::ServerConfig values_ ABSL_GUARDED_BY(reload_mutex_);  // as of the last reload
  std::atomic<bool> is_stopping_ = false;
  std::atomic<uint64_t> reloads_ = 0;
  std::atomic<uint64_t> failed_reloads_ = 0;
  std::atomic<uint64_t> dangerous_reloads_ = 0;  // refused, since tenants would have been lost

  DrainOnce drain_{[this] { return EndService(); }};

  absl::Mutex health_mutex_;  // keeps changes of health in the order of the states
  enum class Service { kStarting, kOffered, kEnding };
  Service service_ ABSL_GUARDED_BY(health_mutex_) = Service::kStarting;
};

}  // namespace opserve::server
