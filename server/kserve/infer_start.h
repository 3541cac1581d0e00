// From the bytes of a ModelInferRequest to the execution that every protocol shares.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/kserve/infer_answer.h"
#include "server/kserve/inference_context.h"
#include "server/observability/stage_clock.h"
#include "server/request/request_end.h"
#include "server/run/call_state.h"

namespace opserve::server {

struct InferenceInput {
  Tenant* tenant = nullptr;  // the request's
  const grpc::ByteBuffer& message;
  const grpc::ServerContextBase* rpc = nullptr;
  uint64_t connection = 0;  // ConnectionKey of `rpc`
  StageClock clock;         // running since the request's arrival
};

// Takes the request apart, translates it and starts its execution; as Request::Start.
//
// `echo` is set before `begin` and `on_end` are called, and stays empty if the message is no
// request. `begin` is called once, before `on_end`, for the state of a request that may take
// `timeout`, whether it is then started or refused.
void StartInference(InferenceContext& context, const InferenceInput& input, InferEcho* echo,
                    absl::FunctionRef<std::shared_ptr<CallState>(absl::Duration timeout)> begin,
                    OnRequestEnd on_end);

}  // namespace opserve::server
