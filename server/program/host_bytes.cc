#include "server/program/host_bytes.h"

#include <type_traits>
#include <variant>

namespace opserve::server {
namespace {

uint64_t AttributeBytes(const catalog::AttributeValue& value) {
  return std::visit(
      []<typename T>(const T& held) -> uint64_t {
        if constexpr (std::is_same_v<T, std::string>) return HeapBytes(held);
        if constexpr (std::is_same_v<T, std::vector<int64_t>> ||
                      std::is_same_v<T, std::vector<double>>) {
          return HeapBytes(held);
        }
        if constexpr (std::is_same_v<T, std::vector<bool>>) return HeapPiece(held.capacity() / 8);
        return 0;
      },
      value);
}

}  // namespace

uint64_t HeapBytes(const BoundInvocation& invocation) {
  uint64_t bytes = HeapBytes(invocation.inputs) + HeapBytes(invocation.input_ends) +
                   HeapBytes(invocation.attributes) + HeapBytes(invocation.outputs) +
                   HeapBytes(invocation.output_ends) + HeapBytes(invocation.plan_key);
  for (const BoundInput& input : invocation.inputs) {
    bytes += HeapBytes(input.spec.shape) + HeapBytes(input.strides);
  }
  for (const BoundOutput& output : invocation.outputs) bytes += HeapBytes(output.spec.shape);
  for (const catalog::AttributeValue& attribute : invocation.attributes) {
    bytes += AttributeBytes(attribute);
  }
  return bytes;
}

uint64_t HeapBytes(const MemoryPlan& plan) {
  return HeapBytes(plan.payloads) + HeapBytes(plan.windows) + HeapBytes(plan.copies) +
         HeapBytes(plan.outputs) + HeapBytes(plan.workspaces);
}

}  // namespace opserve::server
