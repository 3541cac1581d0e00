#include <algorithm>

#include "absl/strings/str_cat.h"
#include "aclnnop/aclnn_logsoftmax_backward.h"
#include "ops/catalog/catalog.h"
#include "ops/catalog/rules.h"
#include "proto/status/error.h"

namespace opserve::catalog {
namespace {

constexpr absl::string_view kName = "LogSoftmaxBackward";

absl::StatusOr<TensorSpec> InferOutput(absl::Span<const TensorSpec> inputs,
                                       absl::Span<const AttributeValue> attributes,
                                       std::optional<Dtype> dtype) {
  const TensorSpec& grad_output = inputs[0];
  const TensorSpec& output = inputs[1];
  const int64_t dim = std::get<int64_t>(attributes[0]);
  if (grad_output.dtype != output.dtype) {
    return InvalidCall(kName, "grad_output",
                       absl::StrCat("dtype ", DtypeName(grad_output.dtype),
                                    " differs from that of output, ", DtypeName(output.dtype)));
  }
  if (grad_output.shape != output.shape) {
    return InvalidCall(kName, "grad_output",
                       absl::StrCat("shape ", ShapeText(grad_output.shape),
                                    " differs from that of output, ", ShapeText(output.shape)));
  }
  const int64_t axes = std::max<int64_t>(output.shape.size(), 1);
  // An empty tensor is accepted with any dim: there is nothing to sum.
  if ((dim < -axes || dim >= axes) && NumElements(output.shape) != 0) {
    return InvalidCall(kName, "dim",
                       absl::StrCat(dim, " is outside [", -axes, ", ", axes - 1, "] for shape ",
                                    ShapeText(output.shape)));
  }
  return TensorSpec{dtype.value_or(output.dtype), output.shape};
}

aclnnStatus CallStageOne(void* stage_one, const StageOneArguments& a) {
  return reinterpret_cast<decltype(&aclnnLogSoftmaxBackwardGetWorkspaceSize)>(stage_one)(
      a.inputs[0], a.inputs[1], std::get<int64_t>(a.attributes[0]), a.output, a.workspace_bytes,
      a.executor);
}

std::vector<Dtype> OutputDtypes() {
  std::vector<Dtype> dtypes = HalfAndSingle();
  dtypes.push_back(v1::DATA_TYPE_DOUBLE);
  return dtypes;
}

}  // namespace

const OperatorDescriptor& LogSoftmaxBackward() {
  static const auto* const descriptor = new OperatorDescriptor{
      .name = kName,
      .summary = "Gradient of log-softmax with respect to its input.",
      .documentation =
          "out = grad_output - exp(output) * sum(grad_output over axis dim, kept). output is the "
          "result of the forward log-softmax and is used as given: it need not be normalised. Both "
          "inputs have the same shape and dtype. The sum is taken in float32. output = -inf has "
          "probability 0; a NaN gradient spoils its own row only.",
      .inputs = {{"grad_output", "Gradient of the loss with respect to output.", HalfAndSingle()},
                 {"output", "Result of the forward log-softmax.", HalfAndSingle()}},
      .attributes = {{.name = "dim",
                      .documentation = "Axis of the softmax; negative values count from the end.",
                      .default_value = int64_t{-1},
                      .names = {},
                      .minimum = {},
                      .maximum = {}}},
      .output = {"out",
                 "Gradient with respect to the softmax's input, in the inputs' dtype unless "
                 "another is asked for.",
                 OutputDtypes()},
      .binding = {"aclnnLogSoftmaxBackwardGetWorkspaceSize", "aclnnLogSoftmaxBackward",
                  CallStageOne},
      .golden = {.inputs = {{{2, 2}, {1, 2, 3, -1}}, {{2, 2}, {0, -1, -0.5f, 0}}},
                 .attributes = {int64_t{-1}},
                 .expected = {-2, 0.8963617f, 1.7869387f, -3}},
      .infer_output = InferOutput,
      .count_work = ElementwiseWork};
  return *descriptor;
}

}  // namespace opserve::catalog
