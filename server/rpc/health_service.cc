#include "server/rpc/health_service.h"

#include <algorithm>
#include <vector>

#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "inference/grpc_service.grpc.pb.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "opserve/v1/tensor_service.grpc.pb.h"
#include "server/rpc/completion_event.h"

namespace opserve::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Owns itself, as ExecuteCall does.
class HealthCheckCall {
 public:
  static void Listen(HealthService& health, grpc::ServerCompletionQueue* queue) {
    if (health.calls_.accepts_more.load(std::memory_order_acquire)) {
      new HealthCheckCall(health, queue);
    }
  }

 private:
  HealthCheckCall(HealthService& health, grpc::ServerCompletionQueue* queue)
      : health_(health), queue_(queue) {
    health_.calls_.alive.Add();
    health_.service_.RequestCheck(&rpc_, &request_, &writer_, queue, queue, &arrival_);
  }
  ~HealthCheckCall() { health_.calls_.alive.Remove(); }

  void OnArrival(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    Listen(health_, queue_);
    HealthCheckResponse response;
    response.set_status(health_.StatusOf(request_.service()));
    health_.ledger_.MarkHealthChecked(rpc_.peer());
    write_.Begin();
    if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      writer_.FinishWithError({grpc::StatusCode::NOT_FOUND, "no such service"}, &finished_);
    } else {
      writer_.Finish(response, grpc::Status::OK, &finished_);
    }
  }

  void OnFinished(bool /*ok*/) {
    write_.End();
    delete this;
  }

  HealthService& health_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  HealthCheckRequest request_;
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> writer_{&rpc_};
  WriteWatch::Write write_{health_.calls_.writes, rpc_};
  MemberEvent<HealthCheckCall, &HealthCheckCall::OnArrival> arrival_{this};
  MemberEvent<HealthCheckCall, &HealthCheckCall::OnFinished> finished_{this};
};

// Owns itself; ends when its client does, or the server. Its handlers run on the polling thread,
// SendChange on that of a change.
class HealthWatchCall {
 public:
  static void Listen(HealthService& health, grpc::ServerCompletionQueue* queue) {
    if (health.calls_.accepts_more.load(std::memory_order_acquire)) {
      new HealthWatchCall(health, queue);
    }
  }

  // Whether there is something to write that the caller then has to write, with SendChange. Under
  // the mutex of the service.
  bool BeginWrite() {
    const auto status = health_.StatusOf(request_.service());
    if (is_writing_ || is_over_ || status == sent_.status()) return false;
    is_writing_ = true;
    sent_.set_status(status);
    return true;
  }

  void SendChange() {
    write_.Begin();
    writer_.Write(sent_, &written_);
  }

 private:
  HealthWatchCall(HealthService& health, grpc::ServerCompletionQueue* queue)
      : health_(health), queue_(queue) {
    health_.calls_.alive.Add();
    rpc_.AsyncNotifyWhenDone(&done_);
    health_.service_.RequestWatch(&rpc_, &request_, &writer_, queue, queue, &arrival_);
  }
  ~HealthWatchCall() { health_.calls_.alive.Remove(); }

  void OnArrival(bool ok) {
    if (!ok) {
      delete this;  // without OnDone: there was no call
      return;
    }
    Listen(health_, queue_);
    peer_ = rpc_.peer();
    is_identified_ =
        health_.authenticator_.TenantOf(rpc_).ok() || health_.ledger_.IsIdentified(peer_);
    bool is_admitted = false;
    bool has_change = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      is_admitted = health_.Admit(this);
      has_change = is_admitted && BeginWrite();
      is_ending_ = !is_admitted;
    }
    if (has_change) SendChange();
    if (!is_admitted) {
      writer_.Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                      "this connection has as many Watch calls as it may"},
                     &finished_);
    }
  }

  void OnWritten(bool /*ok*/) {
    write_.End();
    bool has_change = false;
    bool is_over = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      is_writing_ = false;
      is_over = is_over_;
      has_change = BeginWrite();
    }
    if (has_change) SendChange();
    if (is_over) End();
  }

  // The client is gone, the call was refused or evicted, or the server ends.
  void OnDone(bool /*ok*/) {
    bool is_writing = false;
    bool is_ending = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      health_.Remove(this);
      is_over_ = true;
      is_writing = is_writing_;
      is_ending = is_ending_;
    }
    if (is_ending) {
      EventEnded();
    } else if (!is_writing) {
      End();
    }
  }

  void End() {
    --events_to_come_;  // OnDone has been
    writer_.Finish(grpc::Status::CANCELLED, &finished_);
  }
  void OnFinished(bool /*ok*/) { EventEnded(); }

  // OnDone and OnFinished come in either order when the call is refused.
  void EventEnded() {
    if (--events_to_come_ == 0) delete this;
  }

  HealthService& health_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  HealthCheckRequest request_;
  grpc::ServerAsyncWriter<HealthCheckResponse> writer_{&rpc_};
  WriteWatch::Write write_{health_.calls_.writes, rpc_};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnArrival> arrival_{this};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnWritten> written_{this};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnDone> done_{this};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnFinished> finished_{this};

  friend class HealthService;
  std::string peer_;
  bool is_identified_ = false;
  int events_to_come_ = 2;  // of the polling thread: OnDone, OnFinished

  // Guarded by health_.mutex_; the message itself is gRPC's while it is written.
  HealthCheckResponse sent_;  // UNKNOWN: nothing yet
  bool is_writing_ = false;
  bool is_over_ = false;
  bool is_ending_ = false;  // refused: it is being finished
  bool is_counted_ = false;
};

void HealthService::Listen(grpc::ServerCompletionQueue* queue) {
  HealthCheckCall::Listen(*this, queue);
  HealthWatchCall::Listen(*this, queue);
}

HealthService::Status HealthService::StatusOf(absl::string_view service) const {
  if (!service.empty() && service != v1::OperatorService::service_full_name() &&
      service != v1::TensorService::service_full_name() &&
      service != inference::GRPCInferenceService::service_full_name()) {
    return HealthCheckResponse::SERVICE_UNKNOWN;
  }
  return is_serving_.load() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

bool HealthService::Admit(HealthWatchCall* call) {
  // Nothing needs more than one watch for each service; a proxy may carry those of a few clients.
  constexpr int kMaxIdentifiedWatches = 16;
  int& watches = watches_of_[call->peer_];
  if (watches >= (call->is_identified_ ? kMaxIdentifiedWatches : 1)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  ++watches;
  call->is_counted_ = true;
  watchers_.insert(call);
  if (call->is_identified_) return true;
  // The oldest goes, not the newest: a client is identified soon after it came, a stranger never.
  anonymous_.push_back(call);
  if (anonymous_.size() > max_anonymous_streams_) MakeRoom();
  return true;
}

void HealthService::Remove(HealthWatchCall* call) {
  if (!call->is_counted_) return;
  watchers_.erase(call);
  anonymous_.remove(call);
  const auto watches = watches_of_.find(call->peer_);
  if (--watches->second == 0) watches_of_.erase(watches);
}

void HealthService::MakeRoom() {
  anonymous_.remove_if(
      [this](const HealthWatchCall* call) { return ledger_.IsIdentified(call->peer_); });
  if (anonymous_.size() <= max_anonymous_streams_) return;
  HealthWatchCall* const oldest = anonymous_.front();
  anonymous_.pop_front();
  evicted_.fetch_add(1, std::memory_order_relaxed);
  // Its end removes it from the rest; until then the lock keeps it alive.
  oldest->rpc_.TryCancel();
}

uint64_t HealthService::anonymous_streams() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<uint64_t>(std::count_if(
      anonymous_.begin(), anonymous_.end(),
      [this](const HealthWatchCall* call) { return !ledger_.IsIdentified(call->peer_); }));
}

void HealthService::SetServing(bool is_serving) {
  std::vector<HealthWatchCall*> changed;
  {
    absl::MutexLock lock(&mutex_);
    is_serving_.store(is_serving);
    for (HealthWatchCall* watcher : watchers_) {
      if (watcher->BeginWrite()) changed.push_back(watcher);
    }
  }
  // Each lives until what it writes is written.
  for (HealthWatchCall* watcher : changed) watcher->SendChange();
}

}  // namespace opserve::server
