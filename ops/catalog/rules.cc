#include "ops/catalog/rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::catalog {

std::vector<Dtype> HalfAndSingle() {
  return {v1::DATA_TYPE_FLOAT, v1::DATA_TYPE_FLOAT16, v1::DATA_TYPE_BF16};
}

bool Broadcast(absl::Span<const int64_t> a, absl::Span<const int64_t> b, Shape* result) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t shift = a.size() - b.size();
  Shape common(a.begin(), a.end());
  for (size_t axis = 0; axis < b.size(); ++axis) {
    int64_t& extent = common[shift + axis];
    if (extent == 1) {
      extent = b[axis];
    } else if (b[axis] != 1 && b[axis] != extent) {
      return false;
    }
  }
  *result = std::move(common);
  return true;
}

AttributeDescriptor ReductionAttribute(bool with_batchmean) {
  AttributeDescriptor reduction{
      .name = "reduction",
      .documentation =
          "How the forward loss was reduced; the gradient is divided by 1 (none, sum) or by the "
          "number of elements of the broadcast shape B (mean).",
      .default_value = int64_t{1},
      .names = {{"none", 0}, {"mean", 1}, {"sum", 2}},
      .minimum = 0,
      .maximum = 2};
  if (with_batchmean) {
    reduction.documentation =
        "How the forward loss was reduced; the gradient is divided by 1 (none, sum), by the number "
        "of elements of the broadcast shape B (mean) or by B's first extent (batchmean; 1 if B is "
        "0-d). Any other number acts as none.";
    reduction.names.push_back({"batchmean", 3});
    reduction.minimum.reset();
    reduction.maximum.reset();
  }
  return reduction;
}

absl::StatusOr<Shape> BroadcastShapes(absl::string_view operator_name, const Argument& a,
                                      const Argument& b) {
  Shape common;
  if (!Broadcast(a.spec.shape, b.spec.shape, &common)) {
    return InvalidCall(operator_name, a.name,
                       absl::StrCat("shape ", ShapeText(a.spec.shape), " does not broadcast with ",
                                    b.name, " ", ShapeText(b.spec.shape)));
  }
  // Two shapes that each fit may not fit together.
  if (absl::Status status = CheckShape(v1::DATA_TYPE_DOUBLE, common); !status.ok()) {
    return InvalidCall(operator_name, a.name,
                       absl::StrCat("broadcast with ", b.name, ": ", status.message()));
  }
  return common;
}

absl::StatusOr<Shape> BroadcastLossInputs(absl::string_view operator_name,
                                          absl::Span<const TensorSpec> inputs) {
  const absl::StatusOr<Shape> shape =
      BroadcastShapes(operator_name, {"self", inputs[1]}, {"grad_output", inputs[0]});
  if (!shape.ok()) return shape.status();
  return BroadcastShapes(operator_name, {"target", inputs[2]},
                         {"self and grad_output", TensorSpec{inputs[0].dtype, *shape}});
}

absl::Status CheckBroadcastsTo(absl::string_view operator_name, const Argument& a,
                               absl::string_view shape_name, const Shape& shape) {
  Shape common;
  if (!Broadcast(a.spec.shape, shape, &common) || common != shape) {
    return InvalidCall(operator_name, a.name,
                       absl::StrCat("shape ", ShapeText(a.spec.shape), " does not broadcast to ",
                                    ShapeText(shape), ", ", shape_name));
  }
  return absl::OkStatus();
}

absl::Status CheckOutputDtype(absl::string_view operator_name, absl::string_view output_name,
                              std::optional<Dtype> asked, Dtype only) {
  if (asked && *asked != only) {
    return InvalidCall(operator_name, output_name,
                       absl::StrCat("dtype ", DtypeName(*asked), " asked for, but it can only be ",
                                    DtypeName(only)));
  }
  return absl::OkStatus();
}

std::vector<InputDescriptor> KlDivInputs(const std::vector<Dtype>& dtypes) {
  return {{"grad_output", "Gradient of the loss; broadcasts to B, often one element.", dtypes},
          {"self", "The loss's input (log-probabilities); broadcasts with target.", dtypes},
          {"target", "The loss's target, or its logarithm if log_target.", dtypes}};
}

std::vector<AttributeDescriptor> KlDivAttributes() {
  return {ReductionAttribute(/*with_batchmean=*/true),
          {.name = "log_target",
           .documentation = "Whether target holds logarithms of probabilities.",
           .default_value = false,
           .names = {},
           .minimum = {},
           .maximum = {}}};
}

absl::StatusOr<TensorSpec> InferKlDivOutput(absl::string_view operator_name,
                                            absl::string_view output_name,
                                            absl::Span<const TensorSpec> inputs,
                                            const TensorSpec& output_like,
                                            std::optional<Dtype> asked) {
  const TensorSpec& grad_output = inputs[0];
  const TensorSpec& self = inputs[1];
  const TensorSpec& target = inputs[2];
  const auto is_double = [](const TensorSpec& spec) { return spec.dtype == v1::DATA_TYPE_DOUBLE; };
  if (std::any_of(inputs.begin(), inputs.end(), is_double) &&
      !std::all_of(inputs.begin(), inputs.end(), is_double)) {
    return InvalidCall(operator_name, "",
                       absl::StrCat("DOUBLE does not mix with other dtypes: grad_output is ",
                                    DtypeName(grad_output.dtype), ", self ", DtypeName(self.dtype),
                                    ", target ", DtypeName(target.dtype)));
  }
  auto broadcast = BroadcastShapes(operator_name, {"self", self}, {"target", target});
  if (!broadcast.ok()) return broadcast.status();
  if (absl::Status status = CheckBroadcastsTo(operator_name, {"grad_output", grad_output},
                                              "the broadcast shape of self and target", *broadcast);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckOutputDtype(operator_name, output_name, asked, output_like.dtype);
      !status.ok()) {
    return status;
  }
  // An empty self makes stage one succeed without computing anything.
  if (NumElements(self.shape) == 0 && NumElements(output_like.shape) != 0) {
    return InvalidCall(operator_name, "self",
                       absl::StrCat("shape ", ShapeText(self.shape), " is empty, but the output ",
                                    ShapeText(output_like.shape), " is not"));
  }
  return output_like;
}

uint64_t ElementwiseWork(absl::Span<const TensorSpec> inputs,
                         absl::Span<const AttributeValue> /*attributes*/,
                         const TensorSpec& /*output*/) {
  Shape common;
  for (const TensorSpec& input : inputs) {
    const Shape before = common;
    Broadcast(before, input.shape, &common);
  }
  return static_cast<uint64_t>(NumElements(common));
}

}  // namespace opserve::catalog
