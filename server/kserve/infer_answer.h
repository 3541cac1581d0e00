// The answer to a request of the Open Inference Protocol.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/grpc_service.pb.h"
#include "server/request/request_answer.h"

namespace opserve::server {

// The fields of a request that its answer repeats.
struct InferEcho {
  std::string model_name;
  std::string id;
};

InferEcho EchoOf(const inference::ModelInferRequest& request);

// A ModelInferResponse; its tensors are not copied.
grpc::ByteBuffer BuildInferResponse(const InferEcho& echo, const RequestAnswer& answer);

// The same as an answer of a stream, and that to a request which failed.
grpc::ByteBuffer BuildInferStreamResponse(const InferEcho& echo, const RequestAnswer& answer);
grpc::ByteBuffer BuildInferStreamError(const InferEcho& echo, const absl::Status& error);

// An error as this protocol has it: mistakes name the request, and shared memory that is too small
// for a result counts as an error of the server's.
absl::Status InferError(absl::string_view id, const absl::Status& status);

}  // namespace opserve::server
