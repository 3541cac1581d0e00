// One ExecuteStream call: answers come in the order in which the requests end.
#pragma once

#include "absl/status/status.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/grpc/request_stream.h"
#include "server/native/native_context.h"

namespace opserve::server {

class ExecuteStreamCall final : public RequestStream {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(NativeContext& context, grpc::ServerCompletionQueue* queue);

 private:
  ExecuteStreamCall(NativeContext& context, grpc::ServerCompletionQueue* queue);

  void ListenForNext() override { Listen(native_, queue_); }
  // A message that is no request at all ends the stream's input.
  void HandleMessage(const StageClock& clock) override;
  // Why the message cannot be a request; OK if it can.
  absl::Status CheckMessage(const v1::ExecuteStreamRequest& message) const;

  NativeContext& native_;
};

}  // namespace opserve::server
