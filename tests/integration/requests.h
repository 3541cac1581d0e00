// Requests that tests send, and what they should give.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/cpp/client.h"

namespace opserve::server {

// L1LossBackward of `count` FLOAT elements with self above target everywhere: every element of the
// gradient is 1 (reduction sum, gradient 1).
inline Request OnesRequest(int64_t count) {
  const auto elements = [count](float value) {
    return Tensor::Owning<float>({count}, std::vector<float>(count, value));
  };
  return {.invocations = {{.operator_name = "L1LossBackward",
                           .inputs = {{"grad_output", Tensor::Owning<float>({}, {1.0f})},
                                      {"self", elements(3)},
                                      {"target", elements(2)}},
                           .attributes = {{"reduction", "sum"}}}}};
}

// Whether `response` is the right answer to OnesRequest(count).
inline bool IsAllOnes(const absl::StatusOr<Response>& response, int64_t count) {
  if (!response.ok() || response->results.size() != 1) return false;
  const auto values = response->results[0].values<float>();
  if (!values.ok() || static_cast<int64_t>(values->size()) != count) return false;
  for (float value : *values) {
    if (value != 1.0f) return false;
  }
  return true;
}

}  // namespace opserve::server
