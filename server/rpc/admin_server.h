// The administration of the daemon: a server of its own, so that no listener that clients reach
// offers it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/server.h"
#include "opserve/v1/admin_service.grpc.pb.h"
#include "server/config/config.h"
#include "server/scheduling/scheduler.h"

namespace opserve::server {

// A call has a thread to itself, of a few; draining and resuming wait on it, until the call's
// deadline (default_deadline if it has none, max_deadline at most). Every call is logged.
class AdminServer {
 public:
  // Serves on `config.admin_listen`, which must be set: a Unix socket that only its owner may
  // connect to, or a loopback address. `scheduler` outlives the server.
  //
  // kInvalidArgument: other machines could connect.  kUnavailable, kFailedPrecondition: the address
  // cannot be bound.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const Config& config,
                                                            Scheduler& scheduler);

  // Waits for the calls in progress.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // With the port the system chose.
  const std::string& address() const { return address_; }

 private:
  explicit AdminServer(std::unique_ptr<v1::AdminService::Service> service)
      : service_(std::move(service)) {}
  absl::Status Listen(ListenAddress address);

  const std::unique_ptr<v1::AdminService::Service> service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace opserve::server
