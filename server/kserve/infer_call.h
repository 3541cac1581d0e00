// One ModelInfer call.
#pragma once

#include "server/grpc/single_call.h"
#include "server/kserve/infer_answer.h"
#include "server/kserve/inference_context.h"

namespace opserve::server {

class InferCall final : public SingleCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(InferenceContext& context, grpc::ServerCompletionQueue* queue);

 private:
  InferCall(InferenceContext& context, grpc::ServerCompletionQueue* queue);

  void ListenForNext() override { Listen(inference_, queue_); }
  void Start(Tenant* tenant, const StageClock& clock) override;
  grpc::ByteBuffer BuildAnswer(const RequestAnswer& answer) const override;
  absl::Status ErrorFor(const absl::Status& status) const override;

  InferenceContext& inference_;
  InferEcho echo_;  // once the request was understood
};

}  // namespace opserve::server
