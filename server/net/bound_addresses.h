// The addresses of a daemon, bound before its devices are opened.
//
// A second daemon of a machine thus fails on its addresses before it touches a device that the
// first one uses. Clients that connect meanwhile wait in the sockets' backlogs until the daemon
// serves.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/net/listener.h"

namespace opserve::server {

struct BoundAddresses {
  std::vector<Listener> clients;        // Config::listen
  std::vector<Listener> shared_memory;  // SharedMemoryPath of each Unix socket, if it is enabled
  std::optional<Listener> admin;        // Config::admin_listen, for the daemon's user alone
  std::optional<Listener> metrics;      // Config::metrics_listen
};

// Binds all addresses of `config`. A metrics port that is taken is replaced by a free one, which is
// logged, if the configuration does not name it.
//
// kInvalidArgument: administration is not on a Unix socket. kUnavailable, kFailedPrecondition: as
// Listener::Bind. Nothing stays bound then.
absl::StatusOr<BoundAddresses> BindAddresses(const Config& config);

}  // namespace opserve::server
