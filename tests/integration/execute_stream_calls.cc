#include "tests/integration/execute_stream_calls.h"

#include <cstring>

#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"

namespace opserve::server {
namespace {

bool HoldsOnes(const v1::ExecuteResponse& header, const std::string& payload, int64_t count) {
  if (header.results_size() != 1 || payload.size() != count * sizeof(float)) return false;
  for (int64_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, payload.data() + i * sizeof(float), sizeof(value));
    if (value != 1.0f) return false;
  }
  return true;
}

}  // namespace

v1::ExecuteRequest OnesProgram(int64_t count) {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("L1LossBackward");
  const auto add_input = [&](const char* name, bool is_scalar) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    if (!is_scalar) input->mutable_tensor()->add_shape(count);
    input->mutable_tensor()->set_payload(invocation->inputs_size() - 1);
  };
  add_input("grad_output", /*is_scalar=*/true);
  add_input("self", /*is_scalar=*/false);
  add_input("target", /*is_scalar=*/false);
  v1::NamedAttribute* reduction = invocation->add_attributes();
  reduction->set_name("reduction");
  reduction->mutable_value()->set_name("sum");
  return request;
}

v1::ExecuteRequest OnesRequest(int64_t count, const std::string& idempotency_key) {
  v1::ExecuteRequest request = OnesProgram(count);
  request.set_idempotency_key(idempotency_key);
  AddOnesPayloads(count, &request);
  return request;
}

v1::ExecuteStreamRequest OnesStreamRequest(uint64_t id, int64_t count) {
  v1::ExecuteStreamRequest request;
  request.set_id(id);
  *request.mutable_request() = OnesProgram(count);
  AddOnesPayloads(count, &request);
  return request;
}

bool IsAllOnes(const v1::ExecuteResponse& response, int64_t count) {
  return response.payloads_size() == 1 && HoldsOnes(response, response.payloads(0), count);
}

bool IsAllOnes(const v1::ExecuteStreamResponse& response, int64_t count) {
  return response.response().payloads().empty() && response.payloads_size() == 1 &&
         HoldsOnes(response.response(), response.payloads(0), count);
}

std::unique_ptr<v1::OperatorService::Stub> NewStub(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::OperatorService::NewStub(
      grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
}

uint32_t CountRequests(v1::OperatorService::Stub& stub) {
  grpc::ClientContext context;
  v1::GetServerStatusResponse status;
  stub.GetServerStatus(&context, {}, &status);
  uint32_t requests = 0;
  for (const v1::DeviceStatus& device : status.devices()) {
    requests += device.queued_requests() + device.executing_requests();
  }
  return requests;
}

TestStream::TestStream(v1::OperatorService::Stub& stub, absl::Duration timeout) {
  context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  stream_ = stub.ExecuteStream(&context_);
}

v1::ExecuteStreamResponse TestStream::Receive() {
  v1::ExecuteStreamResponse response;
  stream_->Read(&response);
  return response;
}

}  // namespace opserve::server
