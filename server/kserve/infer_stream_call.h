// One ModelStreamInfer call: answers come in the order of the requests, and errors among them.
#pragma once

#include <cstdint>

#include "server/grpc/request_stream.h"
#include "server/kserve/inference_context.h"

namespace opserve::server {

class InferStreamCall final : public RequestStream {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(InferenceContext& context, grpc::ServerCompletionQueue* queue);

 private:
  InferStreamCall(InferenceContext& context, grpc::ServerCompletionQueue* queue);

  void ListenForNext() override { Listen(inference_, queue_); }
  // Clients wait for ever for requests of a stream that ends with an error, so a message that is
  // no request is answered, too.
  void HandleMessage(const StageClock& clock) override;

  InferenceContext& inference_;
  uint64_t requests_ = 0;  // so far; of the polling thread
};

}  // namespace opserve::server
