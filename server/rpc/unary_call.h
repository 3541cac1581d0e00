// A small unary call with generated types, served on the polling thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "server/access/authenticator.h"
#include "server/rpc/call_counter.h"
#include "server/rpc/completion_event.h"
#include "server/rpc/status_conversion.h"

namespace opserve::server {

// Whose call it is.
struct Caller {
  const Tenant& tenant;
  std::optional<uint32_t> uid;  // of the connection, where a processor knew it
};

// How calls of one method are received and answered. Outlives the calls.
template <typename Request, typename Response>
struct UnaryMethod {
  // The generated service's RequestXxx.
  std::function<void(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Response>*,
                     grpc::ServerCompletionQueue*, void* tag)>
      receive;
  // Must not block.
  std::function<absl::Status(const Caller&, const Request&, Response*)> answer;
  const Authenticator* authenticator = nullptr;
};

// Owns itself, as ExecuteCall does.
template <typename Request, typename Response>
class UnaryCall {
 public:
  static void Listen(const UnaryMethod<Request, Response>& method, ServerCalls& calls,
                     grpc::ServerCompletionQueue* queue) {
    if (calls.accepts_more.load(std::memory_order_acquire)) new UnaryCall(method, calls, queue);
  }

 private:
  UnaryCall(const UnaryMethod<Request, Response>& method, ServerCalls& calls,
            grpc::ServerCompletionQueue* queue)
      : method_(method), calls_(calls), queue_(queue) {
    calls_.alive.Add();
    method_.receive(&rpc_, &request_, &writer_, queue_, &arrival_);
  }

  ~UnaryCall() { calls_.alive.Remove(); }

  void OnArrival(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    calls_.open.Add();
    Listen(method_, calls_, queue_);
    Response response;
    const absl::StatusOr<Tenant*> tenant = method_.authenticator->TenantOf(rpc_);
    const absl::Status status =
        tenant.ok() ? method_.answer({**tenant, Authenticator::UidOf(rpc_)}, request_, &response)
                    : tenant.status();
    write_.Begin();
    if (status.ok()) {
      writer_.Finish(response, grpc::Status::OK, &finished_);
    } else {
      writer_.FinishWithError(ToGrpcStatus(status, &rpc_), &finished_);
    }
  }

  void OnFinished(bool /*ok*/) {
    write_.End();
    calls_.open.Remove();
    delete this;
  }

  const UnaryMethod<Request, Response>& method_;
  ServerCalls& calls_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Response> writer_{&rpc_};
  WriteWatch::Write write_{calls_.writes, rpc_};
  MemberEvent<UnaryCall, &UnaryCall::OnArrival> arrival_{this};
  MemberEvent<UnaryCall, &UnaryCall::OnFinished> finished_{this};
};

}  // namespace opserve::server
