#include "tests/integration/inference_calls.h"

#include <cstring>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "tests/integration/in_process_daemon.h"

namespace opserve::server {

std::unique_ptr<InferenceStub> NewInferenceStub(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return inference::GRPCInferenceService::NewStub(
      grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
}

inference::ModelInferRequest OnesModel(int64_t count) {
  inference::ModelInferRequest request;
  request.set_model_name("L1LossBackward");
  for (const char* name : {"grad_output", "self", "target"}) {
    auto* input = request.add_inputs();
    input->set_name(name);
    input->set_datatype("FP32");
    input->add_shape(count);
  }
  request.mutable_inputs(0)->clear_shape();
  (*request.mutable_parameters())["reduction"].set_string_param("sum");
  return request;
}

std::string OnesInput(int i, int64_t count) {
  constexpr float kValues[] = {1, 3, 2};
  return RawElements(std::vector<float>(i == 0 ? 1 : static_cast<size_t>(count), kValues[i]));
}

inference::ModelInferRequest OnesInference(int64_t count) {
  inference::ModelInferRequest request = OnesModel(count);
  for (int i = 0; i < 3; ++i) request.add_raw_input_contents(OnesInput(i, count));
  return request;
}

bool IsAllOnes(const inference::ModelInferResponse& response, int64_t count) {
  if (response.outputs_size() != 1 || response.raw_output_contents_size() != 1 ||
      response.outputs(0).name() != "grad_input" || response.outputs(0).datatype() != "FP32" ||
      response.outputs(0).shape_size() != 1 || response.outputs(0).shape(0) != count ||
      response.outputs(0).has_contents()) {
    return false;
  }
  return response.raw_output_contents(0) ==
         RawElements(std::vector<float>(static_cast<size_t>(count), 1));
}

InferResult Infer(InferenceStub& stub, const inference::ModelInferRequest& request,
                  absl::Duration timeout) {
  grpc::ClientContext context;
  if (timeout < absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  InferResult result;
  result.status = stub.ModelInfer(&context, request, &result.response);
  return result;
}

inference::ModelStatistics StatisticsOf(InferenceStub& stub) {
  grpc::ClientContext context;
  inference::ModelStatisticsRequest request;
  request.set_name("L1LossBackward");
  inference::ModelStatisticsResponse response;
  stub.ModelStatistics(&context, request, &response);
  return response.model_stats_size() == 1 ? response.model_stats(0) : inference::ModelStatistics();
}

Config LargeMessages() {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_message_bytes = uint64_t{200} << 20;
  config.max_tensor_bytes = uint64_t{100} << 20;
  config.pinned_pool_bytes = uint64_t{200} << 20;
  return config;
}

Config WithNamedRegions() {
  Config config = InProcessDaemon::DefaultConfig();
  config.allow_named_shm = true;
  return config;
}

}  // namespace opserve::server
