#include "server/rpc/health_service.h"

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
    write_.Begin();
    if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      writer_.FinishWithError({grpc::StatusCode::NOT_FOUND, "no such service"}, &finished_);
    } else {
      writer_.Finish(response, grpc::Status::OK, &finished_);
    }
  }

  void OnFinished(bool ok) {
    write_.End();
    if (ok) health_.ledger_.MarkHealthChecked(rpc_.peer());
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
    bool has_change = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      health_.watchers_.insert(this);
      has_change = BeginWrite();
    }
    if (has_change) SendChange();
  }

  void OnWritten(bool ok) {
    write_.End();
    if (ok) health_.ledger_.MarkHealthChecked(rpc_.peer());
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

  // The client is gone, or the server ends.
  void OnDone(bool /*ok*/) {
    bool is_writing = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      health_.watchers_.erase(this);
      is_over_ = true;
      is_writing = is_writing_;
    }
    if (!is_writing) End();
  }

  void End() { writer_.Finish(grpc::Status::CANCELLED, &finished_); }
  void OnFinished(bool /*ok*/) { delete this; }

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

  // Guarded by health_.mutex_; the message itself is gRPC's while it is written.
  HealthCheckResponse sent_;  // UNKNOWN: nothing yet
  bool is_writing_ = false;
  bool is_over_ = false;
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
