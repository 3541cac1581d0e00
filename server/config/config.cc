#include "server/config/config.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ops/catalog/status_macros.h"

ABSL_FLAG(std::string, listen, "",
          "Addresses to serve on, separated by commas: unix:PATH, HOST:PORT, [IPV6]:PORT. Empty: a "
          "Unix socket in $XDG_RUNTIME_DIR/opserve, or in /tmp/opserve-UID.");
ABSL_FLAG(bool, insecure_allow_plaintext, false,
          "Allows --listen on an address that other machines can reach. There is no encryption and "
          "no authentication: whoever can connect can use the devices.");
ABSL_FLAG(std::string, metrics_listen, "127.0.0.1:9464",
          "HOST:PORT for Prometheus (path /metrics); empty for none.");
ABSL_FLAG(std::string, admin_listen, "",
          "unix:PATH for administrators (drain and resume devices, trim and inspect pools), which "
          "only this user can reach. Empty: the first Unix socket of --listen (or the default one) "
          "with .admin behind its path; none: no such listener.");
ABSL_FLAG(std::string, acl_library_dir, "",
          "Directory of the ACL libraries: the lib64 of a CANN installation, or empty for the "
          "embedded host CANN, which computes on this machine's CPU.");
ABSL_FLAG(std::vector<std::string>, device, {},
          "Ids of the devices to serve, separated by commas; empty for all.");
ABSL_FLAG(
    uint32_t, streams_per_device, 4,
    "Stream lanes of each device: requests that copy and compute at the same time (1 to 64).");
ABSL_FLAG(uint32_t, queue_capacity_total, 4096,
          "Requests that may wait, over all devices (1 to 1000000); more are refused with "
          "RESOURCE_EXHAUSTED.");
ABSL_FLAG(uint64_t, max_message_bytes, uint64_t{64} << 20,
          "Largest request or response message (1048576 to 2147483647).");
ABSL_FLAG(uint64_t, max_tensor_bytes, uint64_t{2} << 30,
          "Largest storage of one input or output (at least 1).");
ABSL_FLAG(uint64_t, max_request_bytes, uint64_t{8} << 30,
          "Most bytes of all inputs and outputs of one request (at least 1).");
ABSL_FLAG(uint64_t, max_output_ratio, 100,
          "Outputs of one request may take this many times the bytes of its inputs, and 1 MiB more "
          "(at least 1).");
ABSL_FLAG(uint64_t, max_workspace_bytes, 0,
          "Largest workspace of one invocation; 0: a quarter of the device's memory.");
ABSL_FLAG(uint64_t, max_workspace_ratio, 1024,
          "A workspace may take this many times the bytes of the request's inputs, and 1 MiB more "
          "(at least 1).");
ABSL_FLAG(uint64_t, workspace_floor_bytes, uint64_t{64} << 20,
          "Idle device memory that is kept for later requests, however long they do not come.");
ABSL_FLAG(uint64_t, workspace_max_bytes, 0,
          "Most memory taken of a device, for tensors and workspaces; 0: half of what it has.");
ABSL_FLAG(absl::Duration, workspace_decay, absl::Seconds(10),
          "How long device memory above --workspace_floor_bytes stays idle before it is given back "
          "(at least 1ms).");
ABSL_FLAG(std::string, scrub, "cross-tenant",
          "When device memory is overwritten before it is lent: cross-tenant, always, never.");
ABSL_FLAG(uint32_t, executor_cache_entries, 1024,
          "Plans (stage-one results) kept for each device (1 to 1000000).");
ABSL_FLAG(uint64_t, resident_max_bytes_per_tenant, uint64_t{4} << 30,
          "Device memory one tenant's resident tensors may take; 0: no resident tensors.");
ABSL_FLAG(uint32_t, resident_max_tensors_per_tenant, 1024,
          "Resident tensors one tenant may have (0 to 1000000).");
ABSL_FLAG(absl::Duration, resident_max_lease, absl::Hours(1),
          "Longest lease of a resident tensor; a longer one is cut to it (at least 1s).");
ABSL_FLAG(absl::Duration, resident_grace, absl::Seconds(30),
          "How long a resident tensor outlives its lease, so that a late renewal still finds it "
          "(0 or more).");
ABSL_FLAG(uint32_t, stream_window, 64,
          "Requests of one ExecuteStream that may be unanswered before no more are read (1 to "
          "10000).");
ABSL_FLAG(uint64_t, idempotency_cache_bytes, uint64_t{64} << 20,
          "Host memory for answers to requests with an idempotency key (at least 1048576).");
ABSL_FLAG(absl::Duration, recovery_wait, absl::Seconds(1),
          "Wait before the second attempt to bring a broken device back; doubled for each further "
          "one (at least 1ms).");
ABSL_FLAG(absl::Duration, longest_recovery_wait, absl::Minutes(1),
          "Longest of these waits (at least --recovery_wait).");
ABSL_FLAG(bool, allow_host_fallback, false,
          "Lets results use ordinary host memory, which devices copy into more slowly, when the "
          "pinned pool is in use; otherwise such requests are refused with RESOURCE_EXHAUSTED.");
ABSL_FLAG(uint64_t, pinned_pool_bytes, uint64_t{512} << 20,
          "Page-locked host memory for results on their way out (at least 1048576).");
ABSL_FLAG(uint64_t, grpc_memory_quota_bytes, uint64_t{2} << 30,
          "Memory gRPC may use for messages on their way in (at least 1048576).");
ABSL_FLAG(uint32_t, max_streams_per_connection, 128,
          "Calls one connection may have open (1 to 1000000).");
ABSL_FLAG(absl::Duration, default_deadline, absl::Seconds(30),
          "Deadline of a call that brings none (more than 0).");
ABSL_FLAG(absl::Duration, max_deadline, absl::Seconds(300),
          "Longest deadline; a longer one is cut to it (more than 0).");
ABSL_FLAG(
    absl::Duration, execution_timeout, absl::Seconds(30),
    "Longest a request may run on a device; a kernel that takes longer is aborted (1ms to 1h).");
ABSL_FLAG(absl::Duration, drain_delay, absl::Seconds(5),
          "After SIGTERM, how long calls are still taken while health says NOT_SERVING, so that "
          "balancers look away first (0 or more).");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(30),
          "After --drain_delay, how long calls in progress may take to end (0 or more).");
ABSL_FLAG(std::string, log_level, "info", "Lowest level logged: debug, info, warning, error, off.");

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] =
    R"(opserved lends Ascend NPUs to programs that have none: it runs gradient operators on them for
clients that call over gRPC. Without NPUs it computes on the CPU.

  opserved                                      serve this user's programs on a Unix socket
  opserved --listen=unix:/run/a.sock,127.0.0.1:8470
                                                serve on a socket and on loopback TCP
  opserved --acl_library_dir=$ASCEND_HOME_PATH/lib64
                                                serve on real NPUs

Try it from another terminal with `opserve status` and `opserve ops`. SIGTERM ends it gracefully, a
second one at once. Exit codes: 0 ended well, 1 could not start, 2 bad flags, 3 requests were cut off.
Durations are written 500ms, 10s, 5m. Flags:
)";

template <typename T>
absl::Status CheckRange(absl::string_view flag, T value, T lowest, T highest) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": must be from ", lowest, " to ", highest));
}

absl::Status CheckDuration(absl::string_view flag, absl::Duration value, absl::Duration lowest) {
  if (value >= lowest && value < absl::InfiniteDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", absl::FormatDuration(value),
                                                 ": must be at least ",
                                                 absl::FormatDuration(lowest)));
}

// lib/opserve/host-cann beside the bin directory this program runs from.
std::string EmbeddedLibraryDir() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / "lib/opserve/host-cann").string();
}

absl::StatusOr<std::vector<ListenAddress>> ListenAddresses() {
  const std::string text = absl::GetFlag(FLAGS_listen);
  std::vector<ListenAddress> addresses;
  if (text.empty()) {
    addresses.push_back({.is_unix = true, .path = DefaultSocketPath(), .host = "", .port = 0});
    return addresses;
  }
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    auto address = ParseListenAddress(part);
    if (!address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--listen: ", address.status().message()));
    }
    if (!address->is_local() && !absl::GetFlag(FLAGS_insecure_allow_plaintext)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--listen: other machines can reach ", part,
                       ", without encryption or authentication; use a loopback address or a Unix "
                       "socket, or say --insecure_allow_plaintext"));
    }
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

absl::StatusOr<std::optional<ListenAddress>> MetricsAddress() {
  const std::string text = absl::GetFlag(FLAGS_metrics_listen);
  if (text.empty()) return std::nullopt;
  auto address = ParseListenAddress(text);
  if (!address.ok() || address->is_unix) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--metrics_listen: ", address.ok() ? "a Unix socket cannot be scraped; use HOST:PORT"
                                           : address.status().message()));
  }
  return *std::move(address);
}

absl::StatusOr<std::optional<ListenAddress>> AdminAddress(
    const std::vector<ListenAddress>& listen) {
  std::string text = absl::GetFlag(FLAGS_admin_listen);
  if (text == "none") return std::nullopt;
  if (text.empty()) {
    const auto first = std::find_if(listen.begin(), listen.end(),
                                    [](const ListenAddress& address) { return address.is_unix; });
    text =
        absl::StrCat("unix:", first != listen.end() ? first->path : DefaultSocketPath(), ".admin");
  }
  auto address = ParseListenAddress(text);
  if (!address.ok() || !address->is_unix) {
    return absl::InvalidArgumentError(
        absl::StrCat("--admin_listen: ",
                     address.ok() ? "must be unix:PATH or none" : address.status().message()));
  }
  return *std::move(address);
}

absl::StatusOr<std::vector<int32_t>> Devices() {
  std::vector<int32_t> devices;
  for (const std::string& text : absl::GetFlag(FLAGS_device)) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(text, &id) || id < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device: \"", text, "\" is not a device id (0, 1, ...)"));
    }
    devices.push_back(id);
  }
  return devices;
}

absl::Status CheckNumbers(const Config& config) {
  constexpr uint64_t kNoLimit = UINT64_MAX;
  OPSERVE_RETURN_IF_ERROR(CheckRange("streams_per_device", config.streams_per_device, 1u, 64u));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange("queue_capacity_total", config.queue_capacity_total, 1u, 1000000u));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange<uint64_t>("max_message_bytes", config.max_message_bytes, 1 << 20, INT32_MAX));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange<uint64_t>("max_tensor_bytes", config.max_tensor_bytes, 1, kNoLimit));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange<uint64_t>("max_request_bytes", config.max_request_bytes, 1, kNoLimit));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange<uint64_t>("pinned_pool_bytes", config.pinned_pool_bytes, 1 << 20, kNoLimit));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange<uint64_t>("max_output_ratio", config.max_output_ratio, 1, kNoLimit));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange<uint64_t>("max_workspace_ratio", config.max_workspace_ratio, 1, kNoLimit));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange("executor_cache_entries", config.executor_cache_entries, 1u, 1000000u));
  OPSERVE_RETURN_IF_ERROR(CheckRange("resident_max_tensors_per_tenant",
                                     config.resident_max_tensors_per_tenant, 0u, 1000000u));
  OPSERVE_RETURN_IF_ERROR(CheckRange("stream_window", config.stream_window, 1u, 10000u));
  OPSERVE_RETURN_IF_ERROR(CheckRange<uint64_t>("idempotency_cache_bytes",
                                               config.idempotency_cache_bytes, 1 << 20, kNoLimit));
  if (config.scrub != "cross-tenant" && config.scrub != "always" && config.scrub != "never") {
    return absl::InvalidArgumentError(
        absl::StrCat("--scrub=", config.scrub, ": must be cross-tenant, always or never"));
  }
  OPSERVE_RETURN_IF_ERROR(CheckRange<uint64_t>("grpc_memory_quota_bytes",
                                               config.grpc_memory_quota_bytes, 1 << 20, kNoLimit));
  OPSERVE_RETURN_IF_ERROR(
      CheckRange("max_streams_per_connection", config.max_streams_per_connection, 1u, 1000000u));
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("default_deadline", config.default_deadline, absl::Milliseconds(1)));
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("max_deadline", config.max_deadline, absl::Milliseconds(1)));
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("execution_timeout", config.execution_timeout, absl::Milliseconds(1)));
  if (config.execution_timeout > absl::Hours(1)) {
    return absl::InvalidArgumentError("--execution_timeout: must be at most 1h");
  }
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("workspace_decay", config.workspace_decay, absl::Milliseconds(1)));
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("resident_max_lease", config.resident_max_lease, absl::Seconds(1)));
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("resident_grace", config.resident_grace, absl::ZeroDuration()));
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("recovery_wait", config.recovery_wait, absl::Milliseconds(1)));
  OPSERVE_RETURN_IF_ERROR(
      CheckDuration("longest_recovery_wait", config.longest_recovery_wait, config.recovery_wait));
  OPSERVE_RETURN_IF_ERROR(CheckDuration("drain_delay", config.drain_delay, absl::ZeroDuration()));
  return CheckDuration("drain_timeout", config.drain_timeout, absl::ZeroDuration());
}

}  // namespace

absl::StatusOr<Config> ConfigFromFlags() {
  Config config;
  OPSERVE_ASSIGN_OR_RETURN(config.listen, ListenAddresses());
  OPSERVE_ASSIGN_OR_RETURN(config.metrics_listen, MetricsAddress());
  OPSERVE_ASSIGN_OR_RETURN(config.admin_listen, AdminAddress(config.listen));
  OPSERVE_ASSIGN_OR_RETURN(config.devices, Devices());
  config.acl_library_dir = absl::GetFlag(FLAGS_acl_library_dir);
  if (config.acl_library_dir.empty()) config.acl_library_dir = EmbeddedLibraryDir();
  config.streams_per_device = absl::GetFlag(FLAGS_streams_per_device);
  config.queue_capacity_total = absl::GetFlag(FLAGS_queue_capacity_total);
  config.max_message_bytes = absl::GetFlag(FLAGS_max_message_bytes);
  config.max_tensor_bytes = absl::GetFlag(FLAGS_max_tensor_bytes);
  config.max_request_bytes = absl::GetFlag(FLAGS_max_request_bytes);
  config.max_output_ratio = absl::GetFlag(FLAGS_max_output_ratio);
  config.max_workspace_bytes = absl::GetFlag(FLAGS_max_workspace_bytes);
  config.max_workspace_ratio = absl::GetFlag(FLAGS_max_workspace_ratio);
  config.workspace_floor_bytes = absl::GetFlag(FLAGS_workspace_floor_bytes);
  config.workspace_max_bytes = absl::GetFlag(FLAGS_workspace_max_bytes);
  config.workspace_decay = absl::GetFlag(FLAGS_workspace_decay);
  config.scrub = absl::GetFlag(FLAGS_scrub);
  config.executor_cache_entries = absl::GetFlag(FLAGS_executor_cache_entries);
  config.resident_max_bytes_per_tenant = absl::GetFlag(FLAGS_resident_max_bytes_per_tenant);
  config.resident_max_tensors_per_tenant = absl::GetFlag(FLAGS_resident_max_tensors_per_tenant);
  config.resident_max_lease = absl::GetFlag(FLAGS_resident_max_lease);
  config.resident_grace = absl::GetFlag(FLAGS_resident_grace);
  config.stream_window = absl::GetFlag(FLAGS_stream_window);
  config.idempotency_cache_bytes = absl::GetFlag(FLAGS_idempotency_cache_bytes);
  config.recovery_wait = absl::GetFlag(FLAGS_recovery_wait);
  config.longest_recovery_wait = absl::GetFlag(FLAGS_longest_recovery_wait);
  config.allow_host_fallback = absl::GetFlag(FLAGS_allow_host_fallback);
  config.pinned_pool_bytes = absl::GetFlag(FLAGS_pinned_pool_bytes);
  config.grpc_memory_quota_bytes = absl::GetFlag(FLAGS_grpc_memory_quota_bytes);
  config.max_streams_per_connection = absl::GetFlag(FLAGS_max_streams_per_connection);
  config.default_deadline = absl::GetFlag(FLAGS_default_deadline);
  config.max_deadline = absl::GetFlag(FLAGS_max_deadline);
  config.execution_timeout = absl::GetFlag(FLAGS_execution_timeout);
  config.drain_delay = absl::GetFlag(FLAGS_drain_delay);
  config.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  config.log_level = absl::GetFlag(FLAGS_log_level);
  OPSERVE_RETURN_IF_ERROR(CheckNumbers(config));
  return config;
}

void SetUsage() {
  absl::SetProgramUsageMessage(kUsage);
  absl::FlagsUsageConfig usage;
  const auto is_ours = [](absl::string_view file) {
    return absl::EndsWith(file, "server/config/config.cc");
  };
  usage.contains_helpshort_flags = is_ours;
  usage.contains_help_flags = is_ours;
  usage.version_string = [] { return absl::StrCat("opserved ", OPSERVE_VERSION, "\n"); };
  absl::SetFlagsUsageConfig(std::move(usage));
}

}  // namespace opserve::server
