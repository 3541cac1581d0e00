#include "aclnnop/aclnn_kl_div_target_backward.h"

#include "ops/catalog/catalog.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

constexpr absl::string_view kName = "KlDivTargetBackward";

absl::StatusOr<TensorSpec> InferOutput(absl::Span<const TensorSpec> inputs,
                                       absl::Span<const AttributeValue> /*attributes*/,
                                       std::optional<Dtype> dtype) {
  return InferKlDivOutput(kName, "grad_target", inputs, /*output_like=*/inputs[2], dtype);
}

aclnnStatus CallStageOne(void* stage_one, const StageOneArguments& a) {
  return reinterpret_cast<decltype(&aclnnKlDivTargetBackwardGetWorkspaceSize)>(stage_one)(
      a.inputs[0], a.inputs[1], a.inputs[2], std::get<int64_t>(a.attributes[0]),
      std::get<bool>(a.attributes[1]), a.output, a.workspace_bytes, a.executor);
}

}  // namespace

const OperatorDescriptor& KlDivTargetBackward() {
  static const auto* const descriptor = new OperatorDescriptor{
      .name = kName,
      .summary = "Gradient of the KL divergence loss with respect to its target.",
      .documentation =
          "With B the broadcast shape of self and target and d the divisor of the reduction:\n"
          "  log_target true:                term = grad_output / d * exp(target) * (target - self "
          "+ 1)\n"
          "  log_target false, target != 0:  term = grad_output / d * (ln(target) - self + 1)\n"
          "  log_target false, target == 0:  term = 0\n"
          "grad_target is the term summed over the axes along which target was broadcast. The "
          "dtypes "
          "mix freely; sums are taken in float32 and rounded once. A target of zero hides "
          "infinities and NaN in grad_output and self; a negative target gives NaN.",
      .inputs = KlDivInputs(HalfAndSingle()),
      .attributes = KlDivAttributes(),
      .output = {"grad_target", "Gradient with respect to target, in its shape and dtype.",
                 HalfAndSingle()},
      .binding = {"aclnnKlDivTargetBackwardGetWorkspaceSize", "aclnnKlDivTargetBackward",
                  CallStageOne},
      .golden = {.inputs = {{{2}, {2, -4}}, {{2, 2}, {0.5, 3, -1, 2}}, {{2, 2}, {1, 2, 0, 1}}},
                 .attributes = {int64_t{0}, false},
                 .expected = {1, 5.2274113f, 0, 4}},
      .infer_output = InferOutput,
      .count_work = ElementwiseWork};
  return *descriptor;
}

}  // namespace opserve::catalog
