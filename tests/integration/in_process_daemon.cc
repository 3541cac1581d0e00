#include "tests/integration/in_process_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/catalog/catalog.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {
namespace {

std::string SocketPath() {
  static const std::string* const directory = [] {
    std::string pattern = "/tmp/opserve-test-XXXXXX";
    return new std::string(mkdtemp(pattern.data()));
  }();
  static int count = 0;
  return absl::StrCat(*directory, "/", count++, ".sock");
}

template <typename T>
T OrAbort(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

}  // namespace

Config InProcessDaemon::DefaultConfig() {
  config::ServerConfig values;
  values.set_metrics_listen("none");
  values.set_admin_listen("none");
  Config config = OrAbort(ConfigFrom(values));
  config.listen = {{.is_unix = true, .path = SocketPath(), .host = "", .port = 0}};
  config.acl_library_dir = kHostCannDir;
  config.streams_per_device = 2;
  config.max_tensor_bytes = 64 << 20;
  config.max_request_bytes = 256 << 20;
  config.pinned_pool_bytes = 64 << 20;
  config.grpc_memory_quota_bytes = 1 << 30;
  config.max_streams_per_connection = 1000;
  config.drain_delay = absl::ZeroDuration();
  config.recovery_wait = absl::Milliseconds(1);
  config.longest_recovery_wait = absl::Milliseconds(20);
  return config;
}

Config InProcessDaemon::OneLane() {
  Config config = DefaultConfig();
  config.devices = {0};
  config.streams_per_device = 1;
  return config;
}

InProcessDaemon::InProcessDaemon(const Config& config) {
  setenv("OPSERVE_HOST_DEVICES", "2", 0);
  setenv("OPSERVE_HOST_DEVICE_MEMORY", "64M", 0);
  daemon_ = OrAbort(Daemon::Start(config));
  target_ = config.listen[0].ToString();
  client_ = OrAbort(Client::Connect(target_, {.retry = {.max_attempts = 1}}));
}

InProcessDaemon::~InProcessDaemon() {
  client_.reset();
  daemon_->Drain();
}

int64_t InProcessDaemon::HeldByRequests() {
  int64_t held = HostCount(OPSERVE_HOST_TENSORS);
  int64_t executors = HostCount(OPSERVE_HOST_EXECUTORS);
  for (const auto& service : daemon_->scheduler().devices()) {
    // Captured runs keep memory, like the plan caches; it comes back when it is wanted.
    service->captured().GiveMemoryBack(std::nullopt, absl::Now());
    // The plan cache keeps the ACL objects of a call for each plan, and an executor
    // unless that could run only once.
    for (size_t op = 0; op < catalog::AllOperators().size(); ++op) {
      const auto& counters = service->plan_counters().of[op];
      held -= counters.objects;
      executors -= counters.entries;
    }
  }
  held += std::max<int64_t>(executors, 0);
  const v1::GetServerStatusResponse status = OrAbort(client_->GetServerStatus());
  for (const v1::DeviceStatus& device : status.devices()) {
    held += device.pool_allocated_bytes() + device.queued_requests() + device.executing_requests();
  }
  return held;
}

void InProcessDaemon::DrainAndResume(int32_t device) {
  DeviceService* const service = daemon_->scheduler().Find(device);
  service->BeginDrain().IgnoreError();
  service->AwaitDrained(absl::Now() + absl::Milliseconds(100)).IgnoreError();
  service->Resume(absl::Now() + absl::Seconds(5)).IgnoreError();
}

void InProcessDaemon::EndLeases() { daemon_->residents().Expire(absl::InfiniteFuture()); }

void InProcessDaemon::AwaitReady() {
  for (const auto& service : daemon_->scheduler().devices()) {
    const absl::Status status = service->Resume(absl::Now() + absl::Seconds(60));
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::abort();
    }
  }
}

}  // namespace opserve::server
