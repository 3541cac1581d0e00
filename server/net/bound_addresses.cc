#include "server/net/bound_addresses.h"

#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"
#include "server/config/listen_address.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Only owner and group may connect.
constexpr unsigned kClientMode = 0660;
// Only the owner may connect.
constexpr unsigned kAdminMode = 0600;

absl::StatusOr<Listener> BindMetrics(const Config& config) {
  const ListenAddress& wanted = *config.metrics_listen;
  absl::StatusOr<Listener> listener = Listener::Bind(wanted, /*unix_mode=*/0);
  if (listener.ok()) return listener;
  // A default port is most likely taken by another daemon of this machine.
  if (absl::IsUnavailable(listener.status()) && !config.values.has_metrics_listen()) {
    ListenAddress any_port = wanted;
    any_port.port = 0;
    absl::StatusOr<Listener> other = Listener::Bind(any_port, /*unix_mode=*/0);
    if (other.ok()) {
      LogWarning("metrics_port_taken",
                 {{"wanted", wanted.ToString()}, {"served", other->address().ToString()}});
      return other;
    }
  }
  return absl::Status(listener.status().code(),
                      absl::StrCat("cannot serve metrics on ", wanted.ToString(), ": ",
                                   listener.status().message()));
}

}  // namespace

absl::StatusOr<BoundAddresses> BindAddresses(const Config& config) {
  BoundAddresses bound;
  for (ListenAddress address : config.listen) {
    OPSERVE_ASSIGN_OR_RETURN(Listener listener, Listener::Bind(address, kClientMode));
    bound.clients.push_back(std::move(listener));
    // Shared memory has a socket beside each Unix socket of clients.
    if (!config.enable_shm || !address.is_unix) continue;
    address.path = SharedMemoryPath(address.path);
    OPSERVE_ASSIGN_OR_RETURN(Listener shared, Listener::Bind(address, kClientMode, SOCK_SEQPACKET));
    bound.shared_memory.push_back(std::move(shared));
  }
  if (config.admin_listen) {
    if (!config.admin_listen->is_unix) {
      return absl::InvalidArgumentError(absl::StrCat("administration on ",
                                                     config.admin_listen->ToString(),
                                                     ": must be a Unix socket (--admin_listen)"));
    }
    // Other users must not even connect.
    OPSERVE_ASSIGN_OR_RETURN(Listener admin, Listener::Bind(*config.admin_listen, kAdminMode));
    bound.admin.emplace(std::move(admin));
  }
  if (config.metrics_listen) {
    OPSERVE_ASSIGN_OR_RETURN(Listener metrics, BindMetrics(config));
    bound.metrics.emplace(std::move(metrics));
  }
  return bound;
}

}  // namespace opserve::server
