// The daemon's settings, from its configuration file and its command line, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/flags.h"
#include "server/config/listen_address.h"
#include "server/config/peer_config.h"
#include "server/config/server_config.pb.h"
#include "server/config/tenant_config.h"

namespace opserve::server {

// Files of a TLS server, in PEM.
struct TlsFilesConfig {
  std::string cert;       // the server's chain
  std::string key;        // its private key
  std::string client_ca;  // signers of clients' certificates; empty: clients need none
  std::string crl;        // certificates that are revoked; empty: none
  absl::Duration reload_interval = absl::Minutes(1);
};

struct Config {
  config::ServerConfig values;  // as text; the rest is made of it
  std::string file;             // that of --config, or empty
  std::vector<ListenAddress> listen;
  std::optional<ListenAddress> metrics_listen;  // none: no metrics endpoint
  uint32_t metrics_max_tenants = 200;
  std::vector<std::string> metrics_hosts;  // that requests may name; empty: as metrics_listen says
  std::optional<ListenAddress> admin_listen;  // none: no administration
  // Shared memory, on every Unix socket of `listen`: at SharedMemoryPath.
  bool enable_shm = false;
  // Shared memory by name, for clients of the Open Inference Protocol; every address of `listen` is
  // then local.
  bool allow_named_shm = false;
  std::optional<TlsFilesConfig> tls;  // for all of `listen` that are not Unix sockets
  uint32_t max_connections = 1024;
  uint32_t max_connections_per_listener = 0;  // 0: as server_config.proto says, as for the next two
  uint32_t max_connections_per_user = 0;
  uint32_t max_connections_per_address = 0;
  absl::Duration first_call_timeout = absl::Seconds(10);
  absl::Duration max_connection_age;
  absl::Duration max_connection_age_grace;
  absl::Duration max_connection_idle;
  absl::Duration keepalive_time;
  absl::Duration keepalive_timeout;
  absl::Duration write_stall_timeout;
  absl::Duration upload_stall_timeout;
  uint64_t upload_min_bytes_per_second = 1;
  TenantsConfig tenants;
  std::vector<PeerConfig> peers;
  std::optional<DepositConfig> deposit;
  std::string acl_library_dir;
  std::vector<int32_t> devices;             // ids; empty: all there are
  std::vector<std::string> operator_packs;  // files and directories
  uint32_t max_pack_operators = 256;
  uint32_t streams_per_device = 4;
  double shadow_check_ratio = 0;
  uint32_t queue_capacity_total = 4096;
  uint32_t queue_capacity_per_tenant = 256;
  uint64_t queue_work_per_tenant = uint64_t{1} << 40;  // in elements, for one device
  absl::Duration queue_max_age = absl::Seconds(30);
  uint64_t max_message_bytes = 0;
  uint64_t max_tensor_bytes = 0;
  uint64_t max_request_bytes = 0;
  uint64_t max_output_ratio = 100;
  uint64_t max_request_work = uint64_t{4} << 30;  // of one invocation, in elements
  uint64_t max_program_work = uint64_t{1} << 40;  // of one request, likewise; at least as much
  uint32_t max_invocations = 10'000;
  uint64_t max_header_bytes = uint64_t{16} << 20;  // of a request, beside its payloads
  uint64_t max_workspace_bytes = 0;                // 0: a quarter of the device's memory
  uint64_t max_workspace_ratio = 1024;
  uint64_t workspace_floor_bytes = uint64_t{64} << 20;
  uint64_t workspace_max_bytes = 0;  // 0: half of the device's memory
  absl::Duration workspace_decay = absl::Seconds(10);
  std::string scrub = "cross-tenant";  // or always, never
  bool guard_device_memory = false;
  std::string allocation_log;  // path without the device's number; empty: none
  uint32_t executor_cache_entries = 8192;
  uint64_t pinned_pool_bytes = 0;
  bool allow_host_fallback = false;
  uint64_t resident_max_bytes_per_tenant = uint64_t{4} << 30;
  uint32_t resident_max_tensors_per_tenant = 16384;
  uint32_t prepared_max_programs_per_tenant = 1024;
  uint64_t prepared_max_bytes_per_tenant = uint64_t{256} << 20;
  uint64_t captured_max_bytes_per_device = uint64_t{1} << 30;
  uint32_t captures_per_program = 1;
  absl::Duration resident_max_lease = absl::Hours(1);
  absl::Duration resident_grace = absl::Seconds(30);
  uint32_t stream_window = 64;
  uint64_t idempotency_cache_bytes = uint64_t{64} << 20;
  absl::Duration recovery_wait = absl::Seconds(1);
  absl::Duration longest_recovery_wait = absl::Minutes(1);
  uint64_t grpc_memory_quota_bytes = 0;
  uint32_t max_streams_per_connection = 0;
  uint32_t max_anonymous_streams = 256;
  uint32_t unidentified_calls_per_second = 10;
  uint32_t stream_resets_per_second = 50;
  uint32_t control_frames_per_second = 200;
  absl::Duration default_deadline;
  absl::Duration max_deadline;
  absl::Duration execution_timeout;
  absl::Duration drain_delay;
  absl::Duration drain_timeout;
  std::string log_level;
  absl::Duration log_slow_requests = absl::Seconds(1);  // 0: no request is slow
  uint32_t log_sample_one_in = 0;                       // 0: none
  uint32_t log_requests_per_second = 1;                 // of one tenant
};

// Reads the file of --config, if there is one, lets the flags override it, and checks every value.
// Called again, it reads the file anew. Blocks while the file is being written, see ReadFileAtRest.
// kInvalidArgument: names the value and its rule.  kNotFound: no such file.  kDataLoss: the file
// has no setting.
absl::StatusOr<Config> LoadConfig(const CommandLine& command_line);

// Checks values that come from elsewhere and makes a configuration of them.
absl::StatusOr<Config> ConfigFrom(config::ServerConfig values);

}  // namespace opserve::server
