#include "client/cli/verification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/array_text.h"
#include "client/cpp/tensor_layout.h"
#include "proto/dtypes/element.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

template <typename Descriptor>
bool HasDataType(const Descriptor& descriptor, DataType dtype) {
  const auto& dtypes = descriptor.dtypes();
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

DataType WidestOf(const v1::OperatorDescriptor& descriptor) {
  const auto has_double = [](const auto& part) { return HasDataType(part, kDouble); };
  const bool all =
      std::all_of(descriptor.inputs().begin(), descriptor.inputs().end(), has_double) &&
      std::all_of(descriptor.outputs().begin(), descriptor.outputs().end(), has_double);
  return all ? kDouble : kFloat;
}

template <typename To>
Tensor ConvertTo(const Result& elements) {
  std::vector<To> converted(static_cast<size_t>(elements.num_elements()));
  for (size_t i = 0; i < converted.size(); ++i) {
    converted[i] = static_cast<To>(ElementAt(elements, static_cast<int64_t>(i)));
  }
  return Tensor::Owning<To>(elements.shape(), std::move(converted));
}

absl::StatusOr<Tensor> Widen(const Tensor& tensor, DataType dtype) {
  OPSERVE_ASSIGN_OR_RETURN(const Tensor plain, MakeContiguous(tensor));
  const absl::string_view bytes(reinterpret_cast<const char*>(plain.storage().data()),
                                plain.storage().size());
  const Result elements(OutputOf{}, plain.dtype(), plain.shape(), {&bytes, 1}, plain.owner());
  return dtype == kDouble ? ConvertTo<double>(elements) : ConvertTo<float>(elements);
}

// Results below the normal range are whole multiples of it.
double SmallestSubnormal(DataType dtype) {
  return VisitElement(dtype, []<typename T>(std::type_identity<T>) {
    return static_cast<double>(std::numeric_limits<T>::denorm_min());
  });
}

}  // namespace

absl::StatusOr<Comparison> Compare(const Result& result, const Result& reference) {
  if (result.shape() != reference.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        result.source().output, " has the shape [", absl::StrJoin(result.shape(), ", "),
        "], that of the reference is [", absl::StrJoin(reference.shape(), ", "), "]"));
  }
  Comparison comparison{.output = result.source().output,
                        .reference_dtype = reference.dtype(),
                        .tolerance = FindDtype(result.dtype())->tolerance,
                        .num_elements = result.num_elements()};
  for (int64_t i = 0; i < comparison.num_elements; ++i) {
    const double magnitude = std::abs(ElementAt(reference, i));
    if (std::isfinite(magnitude)) {
      comparison.largest_value = std::max(comparison.largest_value, magnitude);
    }
  }
  for (int64_t i = 0; i < comparison.num_elements; ++i) {
    const double actual = ElementAt(result, i);
    const double expected = ElementAt(reference, i);
    if (!std::isfinite(actual) || !std::isfinite(expected)) {
      const bool is_same = actual == expected || (std::isnan(actual) && std::isnan(expected));
      comparison.num_wrong += is_same ? 0 : 1;
      continue;
    }
    const double error = std::abs(actual - expected);
    comparison.largest_error = std::max(comparison.largest_error, error);
    const double allowed = comparison.tolerance * (std::abs(expected) + comparison.largest_value) +
                           SmallestSubnormal(result.dtype());
    comparison.num_wrong += error <= allowed ? 0 : 1;
  }
  return comparison;
}

absl::StatusOr<Invocation> Widened(const v1::OperatorDescriptor& descriptor,
                                   const Invocation& invocation) {
  const DataType dtype = WidestOf(descriptor);
  Invocation widened{.operator_name = invocation.operator_name,
                     .attributes = invocation.attributes};
  for (const NamedInput& input : invocation.inputs) {
    const auto* tensor = std::get_if<Tensor>(&input.value);
    if (tensor == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input \"", input.name,
          "\" is in the daemon's memory; download it to a file to compare with a reference"));
    }
    OPSERVE_ASSIGN_OR_RETURN(Tensor wide, Widen(*tensor, dtype));
    widened.inputs.push_back({.name = input.name, .value = std::move(wide)});
  }
  for (const v1::OutputDescriptor& output : descriptor.outputs()) {
    widened.output_dtypes.push_back({.output = output.name(), .dtype = dtype});
  }
  return widened;
}

absl::StatusOr<std::vector<Comparison>> Verify(const v1::OperatorDescriptor& descriptor,
                                               const Invocation& invocation,
                                               const std::vector<Result>& results,
                                               Client& reference, absl::Duration timeout) {
  OPSERVE_ASSIGN_OR_RETURN(Invocation widened, Widened(descriptor, invocation));
  const absl::StatusOr<Response> expected =
      reference.Execute({.invocations = {std::move(widened)}, .timeout = timeout});
  if (!expected.ok()) {
    return absl::Status(expected.status().code(), absl::StrCat("the local reference refuses it: ",
                                                               expected.status().message()));
  }
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < std::min(results.size(), expected->results.size()); ++i) {
    OPSERVE_ASSIGN_OR_RETURN(Comparison comparison, Compare(results[i], expected->results[i]));
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

}  // namespace opserve::cli
