// The standard health service, on the daemon's own queues.
//
// gRPC has one too, but built on its callback API: threads of its own then poll every second
// connection, and each of that connection's calls is handed from them to the thread that serves it.
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health_service.grpc.pb.h"
#include "grpcpp/completion_queue.h"
#include "server/access/connection_ledger.h"
#include "server/rpc/call_counter.h"

namespace opserve::server {

class HealthWatchCall;

// Thread-safe. Outlives its calls.
class HealthService {
 public:
  // Connections that had an answer are marked in `ledger`.
  HealthService(ServerCalls& calls, ConnectionLedger& ledger) : calls_(calls), ledger_(ledger) {}

  // To be registered with the server.
  grpc::health::v1::Health::AsyncService& service() { return service_; }

  // Waits for calls on `queue`, as long as the server takes any.
  void Listen(grpc::ServerCompletionQueue* queue);

  // What it says of "" and of the services for clients; at first, that they do not serve. Tells
  // those who watch.
  void SetServing(bool is_serving) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_serving() const { return is_serving_.load(); }

 private:
  friend class HealthCheckCall;
  friend class HealthWatchCall;
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // SERVICE_UNKNOWN: of a service that is none of ours.
  Status StatusOf(absl::string_view service) const;

  ServerCalls& calls_;
  ConnectionLedger& ledger_;
  grpc::health::v1::Health::AsyncService service_;
  std::atomic<bool> is_serving_ = false;
  absl::Mutex mutex_;
  absl::flat_hash_set<HealthWatchCall*> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
