#include "aclnnop/aclnn_l1_loss_backward.h"

#include "ops/catalog/catalog.h"
#include "ops/catalog/rules.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

constexpr absl::string_view kName = "L1LossBackward";

// FLOAT16 with BF16 is FLOAT: neither holds the other.
Dtype Promote(Dtype a, Dtype b) { return a == b ? a : v1::DATA_TYPE_FLOAT; }

absl::StatusOr<TensorSpec> InferOutput(absl::Span<const TensorSpec> inputs,
                                       absl::Span<const AttributeValue> /*attributes*/,
                                       std::optional<Dtype> dtype) {
  const Dtype common = Promote(Promote(inputs[0].dtype, inputs[1].dtype), inputs[2].dtype);
  OPSERVE_ASSIGN_OR_RETURN(Shape shape, BroadcastLossInputs(kName, inputs));
  return TensorSpec{dtype.value_or(common), std::move(shape)};
}

aclnnStatus CallStageOne(void* stage_one, const StageOneArguments& a) {
  return reinterpret_cast<decltype(&aclnnL1LossBackwardGetWorkspaceSize)>(stage_one)(
      a.inputs[0], a.inputs[1], a.inputs[2], std::get<int64_t>(a.attributes[0]), a.output,
      a.workspace_bytes, a.executor);
}

}  // namespace

const OperatorDescriptor& L1LossBackward() {
  static const auto* const descriptor = new OperatorDescriptor{
      .name = kName,
      .summary = "Gradient of the L1 (mean absolute error) loss with respect to its input.",
      .documentation =
          "grad_input = sign(self - target) * grad_output / d in the full broadcast shape B of all "
          "three inputs; nothing is summed. The sign comes from a comparison: it is 0 where self "
          "and "
          "target are equal (equal infinities too) or where one is NaN. FLOAT, FLOAT16 and BF16 "
          "mix "
          "freely: equal dtypes stay, any mixture is computed as FLOAT. grad_input has that common "
          "dtype unless another is asked for.",
      .inputs = {{"grad_output", "Gradient of the loss; may be larger than the other two.",
                  HalfAndSingle()},
                 {"self", "The loss's input.", HalfAndSingle()},
                 {"target", "The loss's target.", HalfAndSingle()}},
      .attributes = {ReductionAttribute(/*with_batchmean=*/false)},
      .output = {"grad_input", "Gradient with respect to self, in shape B.", HalfAndSingle()},
      .binding = {"aclnnL1LossBackwardGetWorkspaceSize", "aclnnL1LossBackward", CallStageOne},
      .golden = {.inputs = {{{2}, {2, -4}}, {{2, 2}, {1, 5, 3, 7}}, {{2, 2}, {1, 2, 4, 9}}},
                 .attributes = {int64_t{0}},
                 .expected = {0, -4, -2, 4}},
      .infer_output = InferOutput,
      .count_work = ElementwiseWork};
  return *descriptor;
}

}  // namespace opserve::catalog
