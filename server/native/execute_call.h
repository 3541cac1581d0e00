// One Execute call.
#pragma once

#include "server/grpc/single_call.h"
#include "server/native/native_answer.h"
#include "server/native/native_context.h"

namespace opserve::server {

class ExecuteCall final : public SingleCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(NativeContext& context, grpc::ServerCompletionQueue* queue);

 private:
  ExecuteCall(NativeContext& context, grpc::ServerCompletionQueue* queue);

  void ListenForNext() override { Listen(native_, queue_); }
  void Start(Tenant* tenant, const StageClock& clock) override;
  grpc::ByteBuffer BuildAnswer(const RequestAnswer& answer) const override;

  NativeContext& native_;
  AnswerForm form_;  // from Start on
};

}  // namespace opserve::server
