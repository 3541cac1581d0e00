// The Open Inference Protocol with generated classes and stubs, in calls short enough for tests.
// Numbers of checks are those of the list in server/kserve/README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/config/config.h"

namespace opserve::server {

using InferenceStub = inference::GRPCInferenceService::Stub;

std::unique_ptr<InferenceStub> NewInferenceStub(const std::string& target);

// The raw bytes of elements.
template <typename Element>
std::string RawElements(const std::vector<Element>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element)};
}

// L1LossBackward of `count` FP32 elements with self above target everywhere: every element of the
// gradient is 1 (reduction sum, gradient 1). Without elements, and with them.
inference::ModelInferRequest OnesModel(int64_t count);
inference::ModelInferRequest OnesInference(int64_t count);
// The elements of its input `i`.
std::string OnesInput(int i, int64_t count);

// Whether it is the one right answer to these.
bool IsAllOnes(const inference::ModelInferResponse& response, int64_t count);

// A ModelInfer call.
struct InferResult {
  grpc::Status status;
  inference::ModelInferResponse response;
};
InferResult Infer(InferenceStub& stub, const inference::ModelInferRequest& request,
                  absl::Duration timeout = absl::InfiniteDuration());

// What ModelStatistics says of L1LossBackward.
inference::ModelStatistics StatisticsOf(InferenceStub& stub);

// A daemon that takes large messages, and regions by name.
Config LargeMessages();
Config WithNamedRegions();

}  // namespace opserve::server
