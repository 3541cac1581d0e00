#include "server/grpc/health_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "inference/grpc_service.grpc.pb.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "opserve/v1/tensor_service.grpc.pb.h"
#include "proto/status/error.h"
#include "server/grpc/completion_event.h"
#include "server/grpc/message_bytes.h"
#include "server/grpc/status_conversion.h"
#include "server/request/refusal.h"

namespace opserve::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

// Other watches end when their clients say so.
constexpr int64_t kWatchPushbackMs = 1000;

}  // namespace

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
    // The server shuts down: no call has come.
    if (!ok) {
      delete this;
      return;
    }
    health_.calls_.open.Add();
    Listen(health_, queue_);
    HealthCheckRequest request;
    const absl::Status status = ParseMessage(health_.calls_.max_message_bytes, &request_, &request);
    HealthCheckResponse response;
    response.set_status(health_.StatusOf(request.service()));
    write_.Begin();
    if (!status.ok()) {
      writer_.FinishWithError(ToGrpcStatus(status, &rpc_), &finished_);
    } else if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
      // By the protocol Check answers NOT_FOUND here, while Watch sends SERVICE_UNKNOWN.
      writer_.FinishWithError({grpc::StatusCode::NOT_FOUND, "no such service"}, &finished_);
    } else {
      writer_.Finish(ToByteBuffer(response), grpc::Status::OK, &finished_);
    }
  }

  void OnFinished(bool ok) {
    write_.End();
    if (ok) health_.ledger_.MarkHealthChecked(rpc_.peer());
    health_.calls_.open.Remove();
    delete this;
  }

  HealthService& health_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&rpc_};
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
    writer_.Write(ToByteBuffer(sent_), &written_);
  }

  // Whether the call is over and its end is to be sent, by the caller, with End. Under the mutex of
  // the service.
  bool BeginEnd() {
    if (!is_over_ || is_writing_ || has_ended_) return false;
    has_ended_ = true;
    return true;
  }

  // The same for a call that is over from now on, with `status` unless it was over before.
  bool BeginEndWith(absl::Status status) {
    if (!is_over_) {
      is_over_ = true;
      end_status_ = std::move(status);
    }
    return BeginEnd();
  }

  void End() {
    write_.Begin();
    writer_.Finish(ToGrpcStatus(end_status_, &rpc_), &finished_);
  }

 private:
  HealthWatchCall(HealthService& health, grpc::ServerCompletionQueue* queue)
      : health_(health), queue_(queue) {
    health_.calls_.alive.Add();
    rpc_.AsyncNotifyWhenDone(&done_);
    health_.service_.RequestWatch(&rpc_, &bytes_, &writer_, queue, queue, &arrival_);
  }
  ~HealthWatchCall() { health_.calls_.alive.Remove(); }

  void OnArrival(bool ok) {
    if (!ok) {
      delete this;  // without OnDone: there was no call
      return;
    }
    health_.calls_.open.Add();
    Listen(health_, queue_);
    absl::Status status = ParseMessage(health_.calls_.max_message_bytes, &bytes_, &request_);
    peer_ = rpc_.peer();
    // A connection that has had one identified call may watch more services, whichever call brings
    // the watch.
    is_identified_ =
        health_.authenticator_.TenantOf(rpc_, peer_).ok() || health_.ledger_.IsIdentified(peer_);
    HealthWatchCall* evicted = nullptr;
    bool has_change = false;
    bool ends = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      if (health_.watches_are_over_) status = DrainingError();
      if (status.ok()) status = health_.Admit(this);
      if (status.ok()) {
        evicted = health_.MakeRoom();
        has_change = BeginWrite();
      } else {
        ends = BeginEndWith(std::move(status));
      }
    }
    if (has_change) SendChange();
    if (ends) End();
    if (evicted != nullptr) evicted->End();  // it lives until its end has been sent
  }

  void OnWritten(bool ok) {
    write_.End();
    if (ok) health_.ledger_.MarkHealthChecked(rpc_.peer());
    bool has_change = false;
    bool ends = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      is_writing_ = false;
      has_change = BeginWrite();
      ends = BeginEnd();
    }
    if (has_change) SendChange();
    if (ends) End();
  }

  // The client is gone, or the call has ended.
  void OnDone(bool /*ok*/) {
    bool ends = false;
    {
      absl::MutexLock lock(&health_.mutex_);
      health_.Remove(this);
      is_over_ = true;
      // A message that is still being written ends first: OnWritten sends the end then.
      ends = BeginEnd();
    }
    if (ends) End();
    DestroyAfterLastEvent();
  }

  void OnFinished(bool /*ok*/) {
    write_.End();
    DestroyAfterLastEvent();
  }

  void DestroyAfterLastEvent() {
    if (--events_to_come_ > 0) return;
    health_.calls_.open.Remove();
    delete this;
  }

  HealthService& health_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  grpc::ByteBuffer bytes_;
  HealthCheckRequest request_;  // of bytes_
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&rpc_};
  WriteWatch::Write write_{health_.calls_.writes, rpc_};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnArrival> arrival_{this};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnWritten> written_{this};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnDone> done_{this};
  MemberEvent<HealthWatchCall, &HealthWatchCall::OnFinished> finished_{this};

  friend class HealthService;
  std::string peer_;            // which names the connection
  bool is_identified_ = false;  // as of its arrival

  // Guarded by health_.mutex_; the message itself is gRPC's while it is written, and the status is
  // final once the call is over.
  HealthCheckResponse sent_;  // UNKNOWN: nothing yet
  bool is_writing_ = false;
  bool is_over_ = false;
  bool has_ended_ = false;
  bool is_counted_ = false;  // in the service's books
  absl::Status end_status_;

  int events_to_come_ = 2;  // OnDone, OnFinished; of the polling thread
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

absl::Status HealthService::Admit(HealthWatchCall* call) {
  // Nothing needs more than one watch for each service; a proxy may carry those of a few clients.
  constexpr int kMaxIdentifiedWatches = 16;
  int& watches = watches_of_[call->peer_];
  if (watches >= (call->is_identified_ ? kMaxIdentifiedWatches : 1)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return MakeError(Reason::kRateLimited, "this connection has as many Watch calls as it may",
                     kWatchPushbackMs);
  }
  ++watches;
  call->is_counted_ = true;
  watchers_.insert(call);
  if (!call->is_identified_) anonymous_.push_back(call);
  return absl::OkStatus();
}

void HealthService::Remove(HealthWatchCall* call) {
  if (!call->is_counted_) return;
  watchers_.erase(call);
  anonymous_.remove(call);
  const auto watches = watches_of_.find(call->peer_);
  if (--watches->second == 0) watches_of_.erase(watches);
}

HealthWatchCall* HealthService::MakeRoom() {
  if (anonymous_.size() <= max_anonymous_streams_) return nullptr;
  anonymous_.remove_if(
      [this](const HealthWatchCall* call) { return ledger_.IsIdentified(call->peer_); });
  if (anonymous_.size() <= max_anonymous_streams_) return nullptr;
  // The oldest goes, not the newest: a client is identified soon after it came, a stranger never.
  HealthWatchCall* const oldest = anonymous_.front();
  anonymous_.pop_front();
  evicted_.fetch_add(1, std::memory_order_relaxed);
  const bool ends = oldest->BeginEndWith(
      MakeError(Reason::kRateLimited,
                "too many Watch calls without credentials; this was the oldest", kWatchPushbackMs));
  return ends ? oldest : nullptr;
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
  // Each lives until its message is written.
  for (HealthWatchCall* watcher : changed) watcher->SendChange();
}

void HealthService::EndWatches() {
  std::vector<HealthWatchCall*> ended;
  {
    absl::MutexLock lock(&mutex_);
    watches_are_over_ = true;
    for (HealthWatchCall* watcher : watchers_) {
      if (watcher->BeginEndWith(DrainingError())) ended.push_back(watcher);
    }
  }
  // Each lives until its end has been sent.
  for (HealthWatchCall* watcher : ended) watcher->End();
}

}  // namespace opserve::server
