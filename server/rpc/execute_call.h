// One Execute call, from arrival to the confirmation that its answer was sent.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/rpc/completion_event.h"
#include "server/rpc/execute_service.h"
#include "server/scheduling/execution_request.h"

namespace opserve::server {

// Owns itself: it waits for a call, serves it and destroys itself after its last event. The
// handlers run on the queue's polling thread; only the answer comes from a device's thread.
class ExecuteCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue);

 private:
  ExecuteCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue);
  ~ExecuteCall();

  void OnArrival(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);
  void DestroyAfterLastEvent();

  // Takes the message apart, checks it and hands it to a device, unless it has to be refused.
  absl::Status Start();
  absl::Time Deadline() const;
  // The last thing that happens to a call before OnFinished; `this` must not be used after it by
  // another thread than the polling one.
  void Answer(const absl::Status& status, const StageClock& clock, std::optional<int32_t> device,
              const grpc::ByteBuffer& response);
  void AnswerWithResult(ExecutionRequest& request, absl::StatusOr<ProgramResult> result);

  ExecuteContext& context_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&rpc_};
  MemberEvent<ExecuteCall, &ExecuteCall::OnArrival> arrival_{this};
  MemberEvent<ExecuteCall, &ExecuteCall::OnFinished> finished_{this};
  MemberEvent<ExecuteCall, &ExecuteCall::OnDone> done_{this};

  StageClock clock_;  // until the request takes it over
  std::shared_ptr<CallState> state_ = std::make_shared<CallState>();
  int op_ = RequestMetrics::kUnknown;
  bool want_receipt_ = false;
  int events_to_come_ = 0;  // OnFinished, OnDone
};

}  // namespace opserve::server
