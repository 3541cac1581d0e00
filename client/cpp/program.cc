#include "client/cpp/program.h"

namespace opserve {

View InputOf::T() const {
  // The axes change places; the storage stays.
  return {.base = *this,
          .dtype = dtype,
          .shape = {shape.at(1), shape.at(0)},
          .strides = {1, shape.at(1)}};
}

InputOf Program::Input(DataType dtype, std::vector<int64_t> shape) {
  return {.number = num_inputs_++, .dtype = dtype, .shape = std::move(shape)};
}

void Program::Return(OutputOf output) { request_.results.push_back(std::move(output)); }

void Program::Keep(OutputOf output, absl::Duration lease) {
  request_.kept.push_back({.output = std::move(output), .lease = lease});
}

void Program::Replace(std::variant<ResidentTensor, InputOf> tensor, OutputOf output,
                      std::optional<uint64_t> version) {
  request_.replaced.push_back(
      {.tensor = std::move(tensor), .output = std::move(output), .version = version});
}

void Program::Donate(std::variant<ResidentTensor, InputOf> tensor) {
  request_.donated.push_back(std::move(tensor));
}

uint32_t Program::Invoke(Invocation invocation) {
  request_.invocations.push_back(std::move(invocation));
  return static_cast<uint32_t>(request_.invocations.size() - 1);
}

}  // namespace opserve
