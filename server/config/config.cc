#include "server/config/config.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"
#include "server/config/config_text.h"
#include "server/config/dns_name.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

// An address of this text means no listener.
constexpr char kNone[] = "none";

// lib/opserve/host-cann beside the bin directory this program runs from.
std::string EmbeddedLibraryDir() {
  std::error_code error;
  // Without procfs the path is a relative one, and loading says that nothing is there.
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / "lib/opserve/host-cann").string();
}

absl::Status Invalid(absl::string_view name, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", problem));
}

absl::StatusOr<std::vector<ListenAddress>> ListenAddresses(const config::ServerConfig& values) {
  std::vector<ListenAddress> addresses;
  if (values.listen().empty()) {
    // Without an address given, only programs of this machine reach the daemon.
    addresses.push_back({.is_unix = true, .path = DefaultSocketPath(), .host = "", .port = 0});
  }
  for (const std::string& text : values.listen()) {
    auto address = ParseListenAddress(text);
    if (!address.ok()) return Invalid("listen", address.status().message());
    // Two ways to serve strangers by mistake, in plaintext or without credentials: either has to be
    // said.
    if (!address->is_local() && values.tls_cert().empty() && !values.insecure_allow_plaintext()) {
      return Invalid("listen",
                     absl::StrCat("other machines can reach ", text,
                                  ", without encryption; use --tls_cert and --tls_key, a loopback "
                                  "address or a Unix socket, or say --insecure_allow_plaintext"));
    }
    const bool shows_credentials = !values.tls_client_ca().empty() || !values.tenant().empty();
    if (!address->is_local() && !values.tls_cert().empty() && !shows_credentials &&
        values.anonymous_tenant().empty()) {
      return Invalid("listen",
                     absl::StrCat("other machines can reach ", text,
                                  " and would need no credentials; name tenants in --config, use "
                                  "--tls_client_ca, or say --anonymous_tenant=default"));
    }
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

absl::StatusOr<std::optional<ListenAddress>> MetricsAddress(const config::ServerConfig& values) {
  if (values.metrics_listen() == kNone) return std::nullopt;
  auto address = ParseListenAddress(values.metrics_listen());
  if (!address.ok()) return Invalid("metrics_listen", address.status().message());
  if (address->is_unix) {
    return Invalid("metrics_listen", "a Unix socket cannot be scraped; use HOST:PORT");
  }
  return *std::move(address);
}

absl::StatusOr<std::vector<std::string>> MetricsHosts(const config::ServerConfig& values) {
  for (const std::string& host : values.metrics_host()) {
    if (IsDnsName(host)) continue;
    return Invalid("metrics_host", absl::StrCat("\"", absl::CHexEscape(host.substr(0, 63)),
                                                "\" is no host's name; give it without a port"));
  }
  return std::vector<std::string>(values.metrics_host().begin(), values.metrics_host().end());
}

// It is put into a header of HTTP as it is.
absl::Status CheckRunbookUrl(const config::ServerConfig& values) {
  const std::string& url = values.runbook_url();
  if (url.empty()) return absl::OkStatus();
  const bool is_printable = std::all_of(url.begin(), url.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (is_printable && (absl::StartsWith(url, "https://") || absl::StartsWith(url, "http://"))) {
    return absl::OkStatus();
  }
  return Invalid("runbook_url",
                 absl::StrCat("\"", absl::CHexEscape(url.substr(0, 63)),
                              "\" is no address of a page; begin with https:// or http://"));
}

absl::StatusOr<std::optional<ListenAddress>> AdminAddress(
    const config::ServerConfig& values, const std::vector<ListenAddress>& listen) {
  std::string text = values.admin_listen();
  if (text == kNone) return std::nullopt;
  if (text.empty()) {
    // Beside the first socket of clients, where administrators look for it.
    const auto first = std::find_if(listen.begin(), listen.end(),
                                    [](const ListenAddress& address) { return address.is_unix; });
    text =
        absl::StrCat("unix:", first != listen.end() ? first->path : DefaultSocketPath(), ".admin");
  }
  auto address = ParseListenAddress(text);
  if (!address.ok()) return Invalid("admin_listen", address.status().message());
  if (!address->is_unix) return Invalid("admin_listen", "must be unix:PATH or none");
  return *std::move(address);
}

// Shared memory needs a Unix socket, whose path leaves room for the suffix.
absl::Status CheckSharedMemory(const std::vector<ListenAddress>& listen) {
  bool has_unix = false;
  for (const ListenAddress& address : listen) {
    if (!address.is_unix) continue;
    has_unix = true;
    const auto socket = ParseListenAddress(absl::StrCat("unix:", SharedMemoryPath(address.path)));
    if (!socket.ok()) return Invalid("enable_shm", socket.status().message());
  }
  if (has_unix) return absl::OkStatus();
  return Invalid("enable_shm", "only works over Unix sockets; add unix:PATH to listen");
}

// A client that can say a name must be on this machine, where the name means the same.
absl::Status CheckNamedSharedMemory(const std::vector<ListenAddress>& listen) {
  for (const ListenAddress& address : listen) {
    if (address.is_local()) continue;
    return Invalid("allow_named_shm",
                   absl::StrCat("other machines can reach ", address.ToString(),
                                "; listen on Unix sockets and loopback addresses only"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<TlsFilesConfig>> TlsFiles(const config::ServerConfig& values) {
  if (values.tls_cert().empty() != values.tls_key().empty()) {
    return Invalid("tls_cert", "needs tls_key, and the other way round");
  }
  if (values.tls_cert().empty() && !values.tls_client_ca().empty()) {
    return Invalid("tls_client_ca", "needs tls_cert and tls_key");
  }
  if (values.tls_client_ca().empty() && !values.tls_crl().empty()) {
    return Invalid("tls_crl", "needs tls_client_ca, whose certificates it revokes");
  }
  if (values.tls_cert().empty()) return std::nullopt;
  return TlsFilesConfig{.cert = values.tls_cert(),
                        .key = values.tls_key(),
                        .client_ca = values.tls_client_ca(),
                        .crl = values.tls_crl(),
                        .reload_interval = ToDuration(values.tls_reload_interval())};
}

absl::StatusOr<std::vector<int32_t>> Devices(const config::ServerConfig& values) {
  for (int32_t id : values.device()) {
    if (id < 0) return Invalid("device", absl::StrCat(id, " is not a device id (0, 1, ...)"));
    // Two services of one device would share its memory without knowing it.
    if (std::count(values.device().begin(), values.device().end(), id) > 1) {
      return Invalid("device", absl::StrCat(id, " is named twice"));
    }
  }
  return std::vector<int32_t>(values.device().begin(), values.device().end());
}

// A tenant that could never be recognized is a mistake: clients show certificates only where the
// daemon asks for them.
absl::Status CheckCertificateNames(const config::ServerConfig& values) {
  if (!values.tls_client_ca().empty()) return absl::OkStatus();
  for (const config::Tenant& tenant : values.tenant()) {
    if (tenant.certificate_name().empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tenant ", tenant.name(),
                     ": certificate_name: needs tls_client_ca, without which no client shows a "
                     "certificate"));
  }
  return absl::OkStatus();
}

absl::Status CheckRecoveryWaits(const Config& config) {
  if (config.longest_recovery_wait >= config.recovery_wait) return absl::OkStatus();
  return Invalid("longest_recovery_wait", absl::StrCat("must be at least recovery_wait, which is ",
                                                       absl::FormatDuration(config.recovery_wait)));
}

// A request within its own limit must find room in an empty queue.
absl::Status CheckQueuedWork(const Config& config) {
  if (config.queue_work_per_tenant >= config.max_request_work) return absl::OkStatus();
  return Invalid(
      "queue_work_per_tenant",
      absl::StrCat("must be at least max_request_work, which is ", config.max_request_work));
}

}  // namespace

absl::StatusOr<Config> ConfigFrom(config::ServerConfig values) {
  // First the rules of single values (server_config.proto); then rules that need several.
  OPSERVE_RETURN_IF_ERROR(CheckRules(values));
  Config config;
  OPSERVE_ASSIGN_OR_RETURN(config.listen, ListenAddresses(values));
  OPSERVE_ASSIGN_OR_RETURN(config.metrics_listen, MetricsAddress(values));
  config.metrics_max_tenants = values.metrics_max_tenants();
  OPSERVE_ASSIGN_OR_RETURN(config.metrics_hosts, MetricsHosts(values));
  OPSERVE_RETURN_IF_ERROR(CheckRunbookUrl(values));
  OPSERVE_ASSIGN_OR_RETURN(config.admin_listen, AdminAddress(values, config.listen));
  config.enable_shm = values.enable_shm();
  if (config.enable_shm) OPSERVE_RETURN_IF_ERROR(CheckSharedMemory(config.listen));
  config.allow_named_shm = values.allow_named_shm();
  if (config.allow_named_shm) OPSERVE_RETURN_IF_ERROR(CheckNamedSharedMemory(config.listen));
  OPSERVE_ASSIGN_OR_RETURN(config.tls, TlsFiles(values));
  OPSERVE_ASSIGN_OR_RETURN(config.tenants, TenantsFrom(values));
  OPSERVE_RETURN_IF_ERROR(CheckCertificateNames(values));
  OPSERVE_ASSIGN_OR_RETURN(config.peers, PeersFrom(values));
  OPSERVE_ASSIGN_OR_RETURN(config.deposit, DepositFrom(values));
  OPSERVE_ASSIGN_OR_RETURN(config.devices, Devices(values));
  config.acl_library_dir = values.acl_library_dir();
  // Without a choice the daemon computes on the CPU, on any machine.
  if (config.acl_library_dir.empty()) config.acl_library_dir = EmbeddedLibraryDir();
  config.operator_packs.assign(values.operator_pack().begin(), values.operator_pack().end());
  config.max_pack_operators = values.max_pack_operators();
  config.max_connections = values.max_connections();
  config.max_connections_per_listener = values.max_connections_per_listener();
  config.max_connections_per_user = values.max_connections_per_user();
  config.max_connections_per_address = values.max_connections_per_address();
  config.first_call_timeout = ToDuration(values.first_call_timeout());
  config.max_connection_age = ToDuration(values.max_connection_age());
  config.max_connection_age_grace = ToDuration(values.max_connection_age_grace());
  config.max_connection_idle = ToDuration(values.max_connection_idle());
  config.keepalive_time = ToDuration(values.keepalive_time());
  config.keepalive_timeout = ToDuration(values.keepalive_timeout());
  config.write_stall_timeout = ToDuration(values.write_stall_timeout());
  config.upload_stall_timeout = ToDuration(values.upload_stall_timeout());
  config.upload_min_bytes_per_second = values.upload_min_bytes_per_second();
  config.streams_per_device = values.streams_per_device();
  config.shadow_check_ratio = values.shadow_check_ratio();
  config.queue_capacity_total = values.queue_capacity_total();
  config.queue_capacity_per_tenant = values.queue_capacity_per_tenant();
  config.queue_work_per_tenant = values.queue_work_per_tenant();
  config.queue_max_age = ToDuration(values.queue_max_age());
  config.max_message_bytes = values.max_message_bytes();
  config.max_tensor_bytes = values.max_tensor_bytes();
  config.max_request_bytes = values.max_request_bytes();
  config.max_output_ratio = values.max_output_ratio();
  config.max_request_work = values.max_request_work();
  config.max_program_work = values.max_program_work();
  config.max_invocations = values.max_invocations();
  config.max_header_bytes = values.max_header_bytes();
  config.max_workspace_bytes = values.max_workspace_bytes();
  config.max_workspace_ratio = values.max_workspace_ratio();
  config.workspace_floor_bytes = values.workspace_floor_bytes();
  config.workspace_max_bytes = values.workspace_max_bytes();
  config.workspace_decay = ToDuration(values.workspace_decay());
  config.scrub = values.scrub();
  config.guard_device_memory = values.guard_device_memory();
  config.allocation_log = values.allocation_log();
  config.executor_cache_entries = values.executor_cache_entries();
  config.resident_max_bytes_per_tenant = values.resident_max_bytes_per_tenant();
  config.resident_max_tensors_per_tenant = values.resident_max_tensors_per_tenant();
  config.prepared_max_programs_per_tenant = values.prepared_max_programs_per_tenant();
  config.prepared_max_bytes_per_tenant = values.prepared_max_bytes_per_tenant();
  config.captured_max_bytes_per_device = values.captured_max_bytes_per_device();
  config.captures_per_program = values.captures_per_program();
  config.resident_max_lease = ToDuration(values.resident_max_lease());
  config.resident_grace = ToDuration(values.resident_grace());
  config.stream_window = values.stream_window();
  config.idempotency_cache_bytes = values.idempotency_cache_bytes();
  config.recovery_wait = ToDuration(values.recovery_wait());
  config.longest_recovery_wait = ToDuration(values.longest_recovery_wait());
  config.allow_host_fallback = values.allow_host_fallback();
  config.pinned_pool_bytes = values.pinned_pool_bytes();
  config.grpc_memory_quota_bytes = values.grpc_memory_quota_bytes();
  config.max_streams_per_connection = values.max_streams_per_connection();
  config.max_anonymous_streams = values.max_anonymous_streams();
  config.unidentified_calls_per_second = values.unidentified_calls_per_second();
  config.stream_resets_per_second = values.stream_resets_per_second();
  config.control_frames_per_second = values.control_frames_per_second();
  config.default_deadline = ToDuration(values.default_deadline());
  config.max_deadline = ToDuration(values.max_deadline());
  config.execution_timeout = ToDuration(values.execution_timeout());
  config.drain_delay = ToDuration(values.drain_delay());
  config.drain_timeout = ToDuration(values.drain_timeout());
  config.log_level = values.log_level();
  config.log_slow_requests = ToDuration(values.log_slow_requests());
  config.log_sample_one_in = values.log_sample_one_in();
  config.log_requests_per_second = values.log_requests_per_second();
  OPSERVE_RETURN_IF_ERROR(CheckRecoveryWaits(config));
  OPSERVE_RETURN_IF_ERROR(CheckQueuedWork(config));
  config.values = std::move(values);
  return config;
}

absl::StatusOr<Config> LoadConfig(const CommandLine& command_line) {
  config::ServerConfig values;
  const std::string& path = command_line.command().config();
  if (!path.empty()) {
    OPSERVE_ASSIGN_OR_RETURN(values, ReadConfigFile(path));
    // A file that lost its contents would otherwise mean defaults: a daemon that serves everybody.
    if (values.ByteSizeLong() == 0) {
      return absl::DataLossError(
          absl::StrCat(path, ": has no setting, though it is named as the configuration"));
    }
  }
  command_line.Override(&values);
  OPSERVE_ASSIGN_OR_RETURN(Config config, ConfigFrom(std::move(values)));
  config.file = path;
  return config;
}

}  // namespace opserve::server
