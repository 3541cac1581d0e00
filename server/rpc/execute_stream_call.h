// One ExecuteStream call: answers come in the order in which the requests end.
#pragma once

#include "absl/status/status.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/rpc/execution_stream.h"

namespace opserve::server {

class ExecuteStreamCall final : public ExecutionStream {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue);

 private:
  ExecuteStreamCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue);

  void ListenForNext() override { Listen(context_, queue_); }
  // A message that is no request at all ends the stream's input.
  void HandleMessage(const StageClock& clock) override;
  // Why the message cannot be a request; OK if it can.
  absl::Status CheckMessage(const v1::ExecuteStreamRequest& message) const;
};

}  // namespace opserve::server
