#include "aclnnop/aclnn_mse_loss_backward.h"

#include "absl/strings/str_cat.h"
#include "ops/catalog/catalog.h"
#include "ops/catalog/rules.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

constexpr absl::string_view kName = "MseLossBackward";

absl::StatusOr<TensorSpec> InferOutput(absl::Span<const TensorSpec> inputs,
                                       absl::Span<const AttributeValue> /*attributes*/,
                                       std::optional<Dtype> dtype) {
  const Dtype own = inputs[1].dtype;
  for (const Argument& argument :
       {Argument{"grad_output", inputs[0]}, Argument{"target", inputs[2]}}) {
    if (argument.spec.dtype != own) {
      return InvalidCall(kName, argument.name,
                         absl::StrCat("dtype ", DtypeName(argument.spec.dtype),
                                      "; it must be that of self, ", DtypeName(own)));
    }
  }
  OPSERVE_ASSIGN_OR_RETURN(Shape shape, BroadcastLossInputs(kName, inputs));
  return TensorSpec{dtype.value_or(own), std::move(shape)};
}

aclnnStatus CallStageOne(void* stage_one, const StageOneArguments& a) {
  return reinterpret_cast<decltype(&aclnnMseLossBackwardGetWorkspaceSize)>(stage_one)(
      a.inputs[0], a.inputs[1], a.inputs[2], std::get<int64_t>(a.attributes[0]), a.output,
      a.workspace_bytes, a.executor);
}

}  // namespace

const OperatorDescriptor& MseLossBackward() {
  static const auto* const descriptor = new OperatorDescriptor{
      .name = kName,
      .summary = "Gradient of the mean squared error loss with respect to its input.",
      .documentation =
          "out = 2 * (self - target) * grad_output / d in the full broadcast shape B of all three "
          "inputs; nothing is summed. All inputs have the same dtype, FLOAT, FLOAT16 or BF16; it "
          "is "
          "computed in float32 and rounded once. out has that dtype unless another is asked for.",
      .inputs = {{"grad_output", "Gradient of the loss; may be larger than the other two.",
                  HalfAndSingle()},
                 {"self", "The loss's input.", HalfAndSingle()},
                 {"target", "The loss's target.", HalfAndSingle()}},
      .attributes = {ReductionAttribute(/*with_batchmean=*/false)},
      .output = {"out", "Gradient with respect to self, in shape B.", HalfAndSingle()},
      .binding = {"aclnnMseLossBackwardGetWorkspaceSize", "aclnnMseLossBackward", CallStageOne},
      .golden = {.inputs = {{{2}, {2, -4}}, {{2, 2}, {1, 5, 3, 7}}, {{2, 2}, {1, 2, 4, 9}}},
                 .attributes = {int64_t{0}},
                 .expected = {0, -24, -4, 16}},
      .infer_output = InferOutput,
      .count_work = ElementwiseWork};
  return *descriptor;
}

}  // namespace opserve::catalog
