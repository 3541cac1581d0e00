// One Execute call.
#pragma once

#include "server/rpc/execution_call.h"

namespace opserve::server {

class ExecuteCall final : public ExecutionCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue);

 private:
  ExecuteCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue);

  void ListenForNext() override { Listen(context_, queue_); }
  void Start(Tenant* tenant, const StageClock& clock) override;
  grpc::ByteBuffer BuildAnswer(const ExecuteAnswer& answer) const override;
};

}  // namespace opserve::server
