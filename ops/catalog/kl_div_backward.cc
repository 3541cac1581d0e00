#include "aclnnop/aclnn_kl_div_backward.h"

#include "ops/catalog/catalog.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

constexpr absl::string_view kName = "KlDivBackward";

absl::StatusOr<TensorSpec> InferOutput(absl::Span<const TensorSpec> inputs,
                                       absl::Span<const AttributeValue> /*attributes*/,
                                       std::optional<Dtype> dtype) {
  return InferKlDivOutput(kName, "out", inputs, /*output_like=*/inputs[1], dtype);
}

aclnnStatus CallStageOne(void* stage_one, const StageOneArguments& a) {
  return reinterpret_cast<decltype(&aclnnKlDivBackwardGetWorkspaceSize)>(stage_one)(
      a.inputs[0], a.inputs[1], a.inputs[2], std::get<int64_t>(a.attributes[0]),
      std::get<bool>(a.attributes[1]), a.output, a.workspace_bytes, a.executor);
}

std::vector<Dtype> AllDtypes() {
  std::vector<Dtype> dtypes = HalfAndSingle();
  dtypes.push_back(v1::DATA_TYPE_DOUBLE);
  return dtypes;
}

}  // namespace

const OperatorDescriptor& KlDivBackward() {
  static const auto* const descriptor = new OperatorDescriptor{
      .name = kName,
      .summary = "Gradient of the KL divergence loss with respect to its input.",
      .documentation =
          "With B the broadcast shape of self and target and d the divisor of the reduction:\n"
          "  log_target false:  term = -target * grad_output / d\n"
          "  log_target true:   term = -exp(target) * grad_output / d\n"
          "out is the term summed over the axes along which self was broadcast. The values of self "
          "do not matter, only its shape and dtype. FLOAT, FLOAT16 and BF16 mix freely; DOUBLE "
          "goes "
          "only with DOUBLE. Sums are taken in float32 (float64 for DOUBLE) and rounded once. "
          "Targets that are zero or negative are not singled out; NaN in self reaches nothing.",
      .inputs = KlDivInputs(AllDtypes()),
      .attributes = KlDivAttributes(),
      .output = {"out", "Gradient with respect to self, in its shape and dtype.", AllDtypes()},
      .binding = {"aclnnKlDivBackwardGetWorkspaceSize", "aclnnKlDivBackward", CallStageOne},
      .golden = {.inputs = {{{2}, {2, -4}}, {{2, 2}, {0, 0, 0, 0}}, {{2, 2}, {0.5, 0.25, 1, 3}}},
                 .attributes = {int64_t{0}, false},
                 .expected = {-1, 1, -2, 12}},
      .infer_output = InferOutput,
      .count_work = ElementwiseWork};
  return *descriptor;
}

}  // namespace opserve::catalog
