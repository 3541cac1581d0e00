// The administration of the daemon: a server of its own, so that no listener that clients reach
// offers it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server.h"
#include "opserve/v1/admin_service.grpc.pb.h"
#include "server/config/config.h"
#include "server/net/connection_acceptor.h"
#include "server/net/connection_ledger.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

class AdminService;

// A call has a thread to itself, of a few; draining and resuming wait on it, until the call's
// deadline (default_deadline if it has none, max_deadline at most). Every call is logged.
class AdminServer {
 public:
  // The administrators' methods. All may be called by several threads at once.
  struct Hooks {
    std::function<v1::AdminStatus()> status;
    std::function<absl::StatusOr<v1::ReloadResponse>()> reload;
    // Of the tenant with this name, or of all tenants if it is "".
    std::function<absl::StatusOr<v1::ListTensorsResponse>(const std::string& tenant)> list_tensors;
    // Ends the daemon's service and waits for that. kDeadlineExceeded: it goes on.
    std::function<absl::StatusOr<v1::DrainDaemonResponse>(absl::Time deadline)> drain;
  };

  // Serves on `bound`, a Unix socket that only its owner may connect to. `scheduler` outlives the
  // server. kResourceExhausted: no more file descriptors.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const Config& config, Listener bound,
                                                            Scheduler& scheduler, Hooks hooks);

  // Ends the watching calls, and waits for the other calls in progress.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  const std::string& address() const { return address_; }
  const ConnectionAcceptor& acceptor() const { return acceptor_; }

 private:
  static constexpr uint32_t kMaxConnections = 64;

  AdminServer(std::unique_ptr<AdminService> service, absl::Duration write_stall_timeout);
  absl::Status Listen(Listener listener);
  // Sees to it that administrators are served while no thread of the clients' server polls.
  void PollSeldom();

  const std::unique_ptr<AdminService> service_;
  std::string address_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;  // nothing arrives on it
  std::unique_ptr<grpc::Server> server_;
  ConnectionLedger ledger_{{.trusts_peers = true}};
  ConnectionAcceptor acceptor_;  // hands connections to server_
  absl::Notification is_over_;
  std::thread poller_;  // last: uses the others
};

}  // namespace opserve::server
