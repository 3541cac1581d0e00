// The standard health service, on the daemon's own queues.
//
// gRPC has one too, but built on its callback API: threads of its own then poll every second
// connection, and each of that connection's calls is handed from them to the thread that serves it.
#pragma once

#include <atomic>
#include <list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health_service.grpc.pb.h"
#include "grpcpp/completion_queue.h"
#include "server/grpc/authenticator.h"
#include "server/grpc/call_counter.h"
#include "server/net/connection_ledger.h"

namespace opserve::server {

class HealthWatchCall;

// Anybody may ask, so streams that watch are bounded: on each connection, and in total those of
// connections on which no call was identified. (Client libraries watch without credentials before
// their first call.) Thread-safe. Outlives its calls.
class HealthService {
 public:
  // A watch beyond `max_anonymous_streams` ends the oldest of them. The others outlive the service.
  HealthService(ServerCalls& calls, const Authenticator& authenticator, ConnectionLedger& ledger,
                uint32_t max_anonymous_streams)
      : calls_(calls),
        authenticator_(authenticator),
        ledger_(ledger),
        max_anonymous_streams_(max_anonymous_streams) {}

  // Messages are raw bytes, as of other small calls (unary_call.h).
  using RawService = grpc::health::v1::Health::WithRawMethod_Check<
      grpc::health::v1::Health::WithRawMethod_Watch<grpc::health::v1::Health::Service>>;

  // To be registered with the server.
  RawService& service() { return service_; }

  // Waits for calls on `queue`, as long as the server takes any.
  void Listen(grpc::ServerCompletionQueue* queue);

  // The answer for "" and for the services for clients; at first, that they do not serve. Tells the
  // watching clients.
  void SetServing(bool is_serving) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_serving() const { return is_serving_.load(); }

  // Ends all watches, and those that come later at once: UNAVAILABLE, reason "draining".
  void EndWatches() ABSL_LOCKS_EXCLUDED(mutex_);

  // Watching now on connections without an identified call; refused, since their connection had as
  // many as it may; ended for newer ones.
  uint64_t anonymous_streams() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t refused_streams() const { return refused_.load(std::memory_order_relaxed); }
  uint64_t evicted_streams() const { return evicted_.load(std::memory_order_relaxed); }

 private:
  friend class HealthCheckCall;
  friend class HealthWatchCall;
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // SERVICE_UNKNOWN: of a service that is none of ours.
  Status StatusOf(absl::string_view service) const;

  // Takes a watch in. kResourceExhausted (reason "rate_limited"): its connection has as many as it
  // may.
  absl::Status Admit(HealthWatchCall* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(HealthWatchCall* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If there are too many watches on unidentified connections, the oldest is over. Returns it if
  // the caller is to send its end, after it has released the mutex.
  HealthWatchCall* MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ServerCalls& calls_;
  const Authenticator& authenticator_;
  ConnectionLedger& ledger_;
  const uint32_t max_anonymous_streams_;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<uint64_t> evicted_ = 0;
  RawService service_;
  std::atomic<bool> is_serving_ = false;
  mutable absl::Mutex mutex_;
  absl::flat_hash_set<HealthWatchCall*> watchers_ ABSL_GUARDED_BY(mutex_);
  // By peer, which is one connection.
  absl::flat_hash_map<std::string, int> watches_of_ ABSL_GUARDED_BY(mutex_);
  // Those that were unidentified when they came, oldest first.
  std::list<HealthWatchCall*> anonymous_ ABSL_GUARDED_BY(mutex_);
  bool watches_are_over_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opserve::server
