// Rules that several operators share, each with its precise error.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// A tensor of a call under the name that errors give it.
struct Argument {
  absl::string_view name;
  const TensorSpec& spec;
};

// FLOAT, FLOAT16 and BF16: what the Atlas A2 computes gradients in.
std::vector<Dtype> HalfAndSingle();

// The attribute "reduction" with its names: none, mean, sum and, for losses that have it,
// batchmean. The losses that have it take any other number as none.
AttributeDescriptor ReductionAttribute(bool with_batchmean);

// Common shape of two shapes aligned at the last axis, where extents match if equal or if one is 1
// (1 against 0 gives 0). False if they do not broadcast; `result` is then unspecified.
bool Broadcast(absl::Span<const int64_t> a, absl::Span<const int64_t> b, Shape* result);

// Common shape of two arguments.
absl::StatusOr<Shape> BroadcastShapes(absl::string_view operator_name, const Argument& a,
                                      const Argument& b);

// Common shape of the inputs grad_output, self and target of a loss whose gradient has that shape.
absl::StatusOr<Shape> BroadcastLossInputs(absl::string_view operator_name,
                                          absl::Span<const TensorSpec> inputs);

// OK if `a` broadcasts to `shape` without enlarging it. `shape_name` says what that shape is.
absl::Status CheckBroadcastsTo(absl::string_view operator_name, const Argument& a,
                               absl::string_view shape_name, const Shape& shape);

// OK if the caller asked for no dtype, or for `only`, the one dtype the output can have.
absl::Status CheckOutputDtype(absl::string_view operator_name, absl::string_view output_name,
                              std::optional<Dtype> asked, Dtype only);

// What both KL divergence gradients take: the inputs grad_output, self and target, each of
// `dtypes`, and the attributes reduction and log_target.
std::vector<InputDescriptor> KlDivInputs(const std::vector<Dtype>& dtypes);
std::vector<AttributeDescriptor> KlDivAttributes();

// Rules of both KL divergence gradients: DOUBLE only if all inputs are, self and target broadcast
// to a shape B, grad_output broadcasts to B, and the output is exactly like `output_like`.
absl::StatusOr<TensorSpec> InferKlDivOutput(absl::string_view operator_name,
                                            absl::string_view output_name,
                                            absl::Span<const TensorSpec> inputs,
                                            const TensorSpec& output_like,
                                            std::optional<Dtype> asked);

// Work of an operator that computes each element of the broadcast shape of its inputs once.
uint64_t ElementwiseWork(absl::Span<const TensorSpec> inputs,
                         absl::Span<const AttributeValue> attributes, const TensorSpec& output);

}  // namespace opserve::catalog
