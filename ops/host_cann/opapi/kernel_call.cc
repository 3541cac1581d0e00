#include "ops/host_cann/opapi/kernel_call.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/cpu/kernel.h"

namespace opserve::host_cann {
namespace {

kernels::Dtype KernelDtype(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16:
      return kernels::Dtype::kFloat16;
    case ACL_BF16:
      return kernels::Dtype::kBfloat16;
    case ACL_DOUBLE:
      return kernels::Dtype::kDouble;
    case ACL_INT8:
      return kernels::Dtype::kInt8;
    case ACL_UINT8:
      return kernels::Dtype::kUint8;
    case ACL_INT16:
      return kernels::Dtype::kInt16;
    case ACL_INT32:
      return kernels::Dtype::kInt32;
    case ACL_INT64:
      return kernels::Dtype::kInt64;
    case ACL_BOOL:
      return kernels::Dtype::kBool;
    // FLOAT. Stage one has refused types without a kernel.
    default:
      return kernels::Dtype::kFloat;
  }
}

kernels::Layout LayoutOf(const aclTensor& tensor) {
  kernels::Layout layout;
  layout.dtype = KernelDtype(tensor.dtype);
  layout.rank = static_cast<int>(tensor.shape.size());
  std::copy(tensor.shape.begin(), tensor.shape.end(), layout.shape.begin());
  std::copy(tensor.strides.begin(), tensor.strides.end(), layout.strides.begin());
  return layout;
}

kernels::Tensors LayoutsOf(const TensorGroup& group) {
  kernels::Tensors layouts;
  for (const auto& tensor : group) layouts.push_back(LayoutOf(*tensor));
  return layouts;
}

// Rounds towards zero; values that int64 cannot hold become its nearest, NaN 0.
int64_t Truncated(double value) {
  // NaN alone differs from itself.
  if (!(value == value)) return 0;
  return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : static_cast<int64_t>(value);
}

kernels::Attribute AttributeOf(const catalog::AttributeValue& value) {
  return std::visit(
      [](const auto& held) -> kernels::Attribute {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, aclDataType>) {
          return KernelDtype(held);
        } else if constexpr (std::is_same_v<Held, catalog::Scalar>) {
          // Integers stay exact: beyond 2^53 a double would lose bits.
          const int64_t* integer = std::get_if<int64_t>(&held.value);
          return kernels::Scalar{KernelDtype(held.dtype), held.AsDouble(),
                                 integer != nullptr ? *integer : Truncated(held.AsDouble())};
        } else {
          return held;
        }
      },
      value);
}

// An axis of 0 leaves none. A tensor of rank 0 has one.
bool HasElements(const kernels::Tensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const kernels::Layout& layout) {
    return std::find(layout.shape.begin(), layout.shape.begin() + layout.rank, 0) ==
           layout.shape.begin() + layout.rank;
  });
}

kernels::Call CallOf(const catalog::OperatorDescriptor& op, absl::Span<const TensorGroup> inputs,
                     absl::Span<const TensorGroup> outputs,
                     absl::Span<const catalog::AttributeValue> attributes) {
  kernels::Call call;
  for (const TensorGroup& group : inputs) call.inputs.push_back(LayoutsOf(group));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::optional<size_t> input = op.outputs[i].input;
    // In place: the output is the input's memory and has its layout.
    call.outputs.push_back(input ? call.inputs[*input] : LayoutsOf(outputs[i]));
  }
  for (const catalog::AttributeValue& value : attributes) {
    call.attributes.push_back(AttributeOf(value));
  }
  return call;
}

}  // namespace

ExecutorPlan MakePlan(const char* function, const catalog::OperatorDescriptor& op,
                      absl::Span<const TensorGroup> inputs, absl::Span<const TensorGroup> outputs,
                      absl::Span<const catalog::AttributeValue> attributes,
                      std::optional<int64_t> work) {
  ExecutorPlan plan;
  plan.function = function;
  if (work) {  // of any other call ranks and dtypes may not have been looked at
    const kernels::Call call = CallOf(op, inputs, outputs, attributes);
    // Without elements to write there is no kernel: stage two succeeds and does nothing.
    if (std::any_of(call.outputs.begin(), call.outputs.end(), HasElements)) {
      plan.kernel = kernels::MakeKernel(function, call);
      plan.work = static_cast<uint64_t>(*work);
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    OperandGroup& group = plan.inputs.emplace_back();
    group.is_list = op.inputs[i].is_list;
    // One that is changed in place is written, if not read.
    const bool is_read =
        plan.kernel == nullptr || plan.kernel->ReadsInput(i) || op.inputs[i].output.has_value();
    for (const auto& tensor : inputs[i]) {
      group.operands.push_back(is_read ? MakeOperand(op.inputs[i].vendor.c_str(), *tensor)
                                       : MakeUnreadOperand(op.inputs[i].vendor.c_str(), *tensor));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    OperandGroup& group = plan.outputs.emplace_back();
    group.is_list = op.outputs[i].is_list;
    // In place: no operands of its own. Stage two takes those of the input.
    group.input = op.outputs[i].input;
    for (const auto& tensor : outputs[i]) {
      group.operands.push_back(MakeOperand(op.outputs[i].vendor.c_str(), *tensor));
    }
  }
  return plan;
}

}  // namespace opserve::host_cann
