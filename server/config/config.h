// What the daemon is told on its command line, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/listen_address.h"

namespace opserve::server {

struct Config {
  std::vector<ListenAddress> listen;
  std::optional<ListenAddress> metrics_listen;  // none: no metrics endpoint
  std::optional<ListenAddress> admin_listen;    // none: no administration
  std::string acl_library_dir;
  std::vector<int32_t> devices;  // ids; empty: all there are
  uint32_t streams_per_device = 4;
  uint32_t queue_capacity_total = 4096;
  uint64_t max_message_bytes = 0;
  uint64_t max_tensor_bytes = 0;
  uint64_t max_request_bytes = 0;
  uint64_t max_output_ratio = 100;
  uint64_t max_workspace_bytes = 0;  // 0: a quarter of the device's memory
  uint64_t max_workspace_ratio = 1024;
  uint64_t workspace_floor_bytes = uint64_t{64} << 20;
  uint64_t workspace_max_bytes = 0;  // 0: half of the device's memory
  absl::Duration workspace_decay = absl::Seconds(10);
  std::string scrub = "cross-tenant";  // or always, never
  uint32_t executor_cache_entries = 1024;
  uint64_t pinned_pool_bytes = 0;
  bool allow_host_fallback = false;
  uint64_t resident_max_bytes_per_tenant = uint64_t{4} << 30;
  uint32_t resident_max_tensors_per_tenant = 1024;
  absl::Duration resident_max_lease = absl::Hours(1);
  absl::Duration resident_grace = absl::Seconds(30);
  uint32_t stream_window = 64;
  uint64_t idempotency_cache_bytes = uint64_t{64} << 20;
  absl::Duration recovery_wait = absl::Seconds(1);
  absl::Duration longest_recovery_wait = absl::Minutes(1);
  uint64_t grpc_memory_quota_bytes = 0;
  uint32_t max_streams_per_connection = 0;
  absl::Duration default_deadline;
  absl::Duration max_deadline;
  absl::Duration execution_timeout;
  absl::Duration drain_delay;
  absl::Duration drain_timeout;
  std::string log_level;
};

// Reads the flags (after absl::ParseCommandLine) and checks every one.
// kInvalidArgument: names the flag, its value and what is valid.
absl::StatusOr<Config> ConfigFromFlags();

// Makes --help print the daemon's flags with a text that explains them, and --version the version.
void SetUsage();

}  // namespace opserve::server
