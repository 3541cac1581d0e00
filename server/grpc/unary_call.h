// A small unary call, served on the polling thread. Messages are taken and given as raw bytes and
// parsed here: gRPC would answer a message that is none with INTERNAL, which clients repeat and
// operators take for a fault of the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "proto/status/status_macros.h"
#include "server/grpc/authenticator.h"
#include "server/grpc/call_counter.h"
#include "server/grpc/completion_event.h"
#include "server/grpc/message_bytes.h"
#include "server/grpc/status_conversion.h"

namespace opserve::server {

// The sender of a call.
struct Caller {
  Tenant& tenant;
  std::optional<uint32_t> uid;  // of the connection, where a processor knew it
};

// How calls of one method are received and answered. Outlives the calls.
template <typename Request, typename Response>
struct UnaryMethod {
  // The generated service's RequestXxx, of the raw method.
  std::function<void(grpc::ServerContext*, grpc::ByteBuffer*,
                     grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*,
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
    grpc::ByteBuffer response;
    const absl::Status status = Answer(&response);
    write_.Begin();
    if (status.ok()) {
      writer_.Finish(response, grpc::Status::OK, &finished_);
    } else {
      writer_.FinishWithError(ToGrpcStatus(status, &rpc_), &finished_);
    }
  }

  absl::Status Answer(grpc::ByteBuffer* bytes) {
    OPSERVE_ASSIGN_OR_RETURN(Tenant* const tenant,
                             method_.authenticator->TenantOf(rpc_, rpc_.peer()));
    OPSERVE_RETURN_IF_ERROR(CheckHeaderBytes(request_.Length(), calls_.max_header_bytes));
    Request request;
    OPSERVE_RETURN_IF_ERROR(ParseMessage(calls_.max_message_bytes, &request_, &request));
    Response response;
    OPSERVE_RETURN_IF_ERROR(
        method_.answer({*tenant, Authenticator::UidOf(rpc_)}, request, &response));
    *bytes = ToByteBuffer(response);
    return absl::OkStatus();
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
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&rpc_};
  WriteWatch::Write write_{calls_.writes, rpc_};
  MemberEvent<UnaryCall, &UnaryCall::OnArrival> arrival_{this};
  MemberEvent<UnaryCall, &UnaryCall::OnFinished> finished_{this};
};

}  // namespace opserve::server
