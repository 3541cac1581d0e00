// The gRPC side of the daemon: listeners, completion queues and their polling threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "server/config/config.h"
#include "server/deposit/deposit_call.h"
#include "server/grpc/authenticator.h"
#include "server/grpc/health_service.h"
#include "server/grpc/unary_call.h"
#include "server/kserve/inference_server.h"
#include "server/native/tensor_service.h"
#include "server/net/connection_acceptor.h"
#include "server/net/connection_gate.h"
#include "server/net/connection_ledger.h"
#include "server/net/tls_files.h"
#include "server/observability/operator_statistics.h"
#include "server/observability/request_metrics.h"
#include "server/program/operator_table.h"
#include "server/request/idempotency_cache.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "server/session/session_context.h"

namespace opserve::server {

class GrpcServer {
 public:
  // The parts behind the services. All outlive it.
  struct Parts {
    RequestParts requests;
    NamedRegions* named_regions = nullptr;  // null: regions by name are not allowed
    const Tenants* tenants = nullptr;
    const Peers* peers = nullptr;
    DepositMetrics* deposits = nullptr;
    const TlsFiles* tls = nullptr;  // null: TCP is in plaintext
    // Answers GetServerStatus; called on polling threads, must not block.
    std::function<v1::GetServerStatusResponse()> status;
  };

  // Polling threads, which are Visitors 0 and up.
  static uint32_t NumPollers();

  // Serves on `listeners`; health says NOT_SERVING until SetServing. kResourceExhausted: no more
  // file descriptors.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const Config& config,
                                                           std::vector<Listener> listeners,
                                                           Parts parts);

  // Ends the connections, cancels the other calls, waits until the devices have let go of them, and
  // ends the threads. Clients see UNAVAILABLE: with reason "draining" where there was time to
  // answer, else their connection ends.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // The answer of the standard health service, for "" and for every service.
  void SetServing(bool is_serving) { health_.SetServing(is_serving); }
  bool is_serving() const { return health_.is_serving(); }

  // Says NOT_SERVING, and tells sessions to go elsewhere, as balancers send new calls elsewhere:
  // all requests are still served.
  void BeginLeaving();
  // Answers new calls UNAVAILABLE from now on; those in flight go on.
  void RefuseNewCalls();
  // Calls that are refused because the daemon ends are told that resident tensors are, or will be,
  // at `address`, which outlives the server. Thread-safe.
  void SetMovedTo(const std::string* address) { execute_.moved_to = address; }
  // Waits until no call is in flight, at most for `timeout`; returns how many are.
  int64_t AwaitCalls(absl::Duration timeout) { return execute_.in_flight.AwaitNone(timeout); }

  // Whether every polling thread takes up something new within `timeout`. Thread-safe.
  bool IsPolling(absl::Duration timeout) const;

  // Addresses served, with the ports the system chose.
  const std::vector<std::string>& addresses() const { return addresses_; }
  const ConnectionAcceptor& acceptor() const { return acceptor_; }
  const ConnectionLedger& ledger() const { return ledger_; }
  const HealthService& health() const { return health_; }
  // Calls that were ended so far because their clients took nothing.
  uint64_t stalled_calls() const { return calls_.writes.cancelled(); }
  const IdempotencyCache& idempotency() const { return idempotency_; }
  const TransferMetrics& transfers() const { return transfers_; }
  const SessionMetrics& sessions() const { return sessions_; }
  const KnownRequestCounters& known_requests() const { return known_requests_; }

 private:
  GrpcServer(const Config& config, Parts parts);
  void DescribeUnaryMethods();
  absl::Status Listen(const Config& config, std::vector<Listener> listeners);
  std::unique_ptr<ConnectionGate> GateFor(const ListenAddress& address,
                                          grpc::ServerBuilder* builder) const;
  void ListenForCalls(grpc::ServerCompletionQueue* queue);
  void EndService();
  void Poll(grpc::ServerCompletionQueue* queue);
  absl::Status ListOperators(const Tenant& tenant, const v1::ListOperatorsRequest& request,
                             v1::ListOperatorsResponse* response) const;

  const Parts parts_;
  ConnectionLedger ledger_;
  const Authenticator authenticator_;
  AsyncOperatorService operator_service_;
  AsyncTensorService tensor_service_;
  AsyncPeerService peer_service_;
  grpc::AsyncGenericService unknown_methods_;
  ServerCalls calls_;
  HealthService health_;
  IdempotencyCache idempotency_;
  TransferMetrics transfers_;
  SessionMetrics sessions_;
  KnownRequestCounters known_requests_;
  OperatorStatistics statistics_;
  SessionContext execute_;
  InferenceServer inference_;
  TensorContext tensors_;
  DepositCalls deposit_calls_;
  DepositContext deposits_;
  UnaryMethod<v1::ListOperatorsRequest, v1::ListOperatorsResponse> list_operators_;
  UnaryMethod<v1::GetServerStatusRequest, v1::GetServerStatusResponse> get_server_status_;
  UnaryMethod<v1::PrepareRequest, v1::PrepareResponse> prepare_;
  UnaryMethod<v1::ReleaseProgramsRequest, v1::ReleaseProgramsResponse> release_programs_;
  UnaryMethod<v1::RenewRequest, v1::RenewResponse> renew_;
  UnaryMethod<v1::ReleaseRequest, v1::ReleaseResponse> release_;
  UnaryMethod<v1::ListRequest, v1::ListResponse> list_tensors_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::vector<std::string> addresses_;
  std::unique_ptr<grpc::Server> server_;
  ConnectionAcceptor acceptor_;       // hands connections to server_
  std::vector<std::thread> pollers_;  // one per queue
};

}  // namespace opserve::server
