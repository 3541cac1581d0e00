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
  std::string acl_library_dir;
  std::vector<int32_t> devices;  // ids; empty: all there are
  uint32_t streams_per_device = 4;
  uint32_t queue_capacity_total = 4096;
  uint64_t max_message_bytes = 0;
  uint64_t max_tensor_bytes = 0;
  uint64_t max_request_bytes = 0;
  uint64_t pinned_pool_bytes = 0;
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
