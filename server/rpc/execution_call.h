// One Execute call, from arrival to the confirmation that its answer was sent.
#pragma once

#include <memory>

#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/execution/call_state.h"
#include "server/rpc/completion_event.h"
#include "server/rpc/execute_service.h"
#include "server/rpc/execution_end.h"

namespace opserve::server {

// Owns itself: it waits for a call, serves it and destroys itself after its last event. The
// handlers run on the queue's polling thread; only the answer may come from a device's thread.
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

  // The last thing that happens to a call before OnFinished; `this` must not be used after it by
  // another thread than the polling one.
  void Answer(const ExecutionEnd& end);

  ExecuteContext& context_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&rpc_};
  WriteWatch::Write write_{context_.calls->writes, rpc_};
  MemberEvent<ExecuteCall, &ExecuteCall::OnArrival> arrival_{this};
  MemberEvent<ExecuteCall, &ExecuteCall::OnFinished> finished_{this};
  MemberEvent<ExecuteCall, &ExecuteCall::OnDone> done_{this};

  std::shared_ptr<CallState> state_;  // from arrival on
  int events_to_come_ = 0;            // OnFinished, OnDone
};

}  // namespace opserve::server
