#include "client/cli/arrays/verification.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/arrays/array_text.h"
#include "client/cli/arrays/run_arguments.h"
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

// Whether it has floating point at all.
template <typename Descriptor>
bool IsFloating(const Descriptor& descriptor) {
  return std::any_of(descriptor.dtypes().begin(), descriptor.dtypes().end(), [](int dtype) {
    const auto known = static_cast<DataType>(dtype);
    return FindDtype(known) != nullptr && !IsInteger(known);
  });
}

DataType WidestOf(const v1::OperatorDescriptor& descriptor) {
  // Inputs of integers do not keep an operator from computing in DOUBLE.
  const auto has_double = [](const auto& part) {
    return !IsFloating(part) || HasDataType(part, kDouble);
  };
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

// Integers stay as they are.
absl::StatusOr<Tensor> Widen(const Tensor& tensor, DataType dtype) {
  // An unknown dtype stays as it is; the daemon refuses it by name.
  if (FindDtype(tensor.dtype()) == nullptr || IsInteger(tensor.dtype())) return tensor;
  OPSERVE_ASSIGN_OR_RETURN(const Tensor plain, MakeContiguous(tensor));
  const absl::string_view bytes(reinterpret_cast<const char*>(plain.storage().data()),
                                plain.storage().size());
  // A result over the tensor's own bytes, which ElementAt can read.
  const Result elements(OutputOf{}, plain.dtype(), plain.shape(), {&bytes, 1}, plain.owner());
  return dtype == kDouble ? ConvertTo<double>(elements) : ConvertTo<float>(elements);
}

absl::Status InDaemonsMemory(absl::string_view input) {
  return absl::InvalidArgumentError(absl::StrCat(
      "input \"", input,
      "\" is in the daemon's memory; download it to a file to compare with a reference"));
}

absl::StatusOr<NamedInput> WidenInput(const NamedInput& input, DataType dtype) {
  NamedInput widened{.name = input.name};
  if (const auto* list = std::get_if<std::vector<ListedTensor>>(&input.value)) {
    std::vector<ListedTensor> tensors;
    for (const ListedTensor& listed : *list) {
      const auto* tensor = std::get_if<Tensor>(&listed);
      if (tensor == nullptr) return InDaemonsMemory(input.name);
      OPSERVE_ASSIGN_OR_RETURN(Tensor wide, Widen(*tensor, dtype));
      tensors.push_back(std::move(wide));
    }
    widened.value = std::move(tensors);
    return widened;
  }
  const auto* tensor = std::get_if<Tensor>(&input.value);
  if (tensor == nullptr) return InDaemonsMemory(input.name);
  OPSERVE_ASSIGN_OR_RETURN(Tensor wide, Widen(*tensor, dtype));
  widened.value = std::move(wide);
  return widened;
}

// |actual - expected| of integers, which may be further apart than an int64 can say.
double Distance(int64_t actual, int64_t expected) {
  // In unsigned numbers, where the distance of any two fits.
  const auto difference = static_cast<uint64_t>(std::max(actual, expected)) -
                          static_cast<uint64_t>(std::min(actual, expected));
  return static_cast<double>(difference);
}

void CompareIntegers(const Result& result, const Result& reference, Comparison* comparison) {
  for (int64_t i = 0; i < comparison->num_elements; ++i) {
    const int64_t expected = IntegerAt(reference, i);
    const double error = Distance(IntegerAt(result, i), expected);
    comparison->largest_value =
        std::max(comparison->largest_value, std::abs(static_cast<double>(expected)));
    comparison->largest_error = std::max(comparison->largest_error, error);
    comparison->num_wrong += error == 0 ? 0 : 1;
  }
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
  if (IsInteger(result.dtype()) && IsInteger(reference.dtype())) {
    CompareIntegers(result, reference, &comparison);
    return comparison;
  }
  // First over all: an element's tolerance depends on the largest value.
  for (int64_t i = 0; i < comparison.num_elements; ++i) {
    const double magnitude = std::abs(ElementAt(reference, i));
    if (std::isfinite(magnitude)) {
      comparison.largest_value = std::max(comparison.largest_value, magnitude);
    }
  }
  for (int64_t i = 0; i < comparison.num_elements; ++i) {
    const double actual = ElementAt(result, i);
    const double expected = ElementAt(reference, i);
    // Infinities must be equal, and NaN meet NaN; a difference of them means nothing.
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
    OPSERVE_ASSIGN_OR_RETURN(NamedInput wide, WidenInput(input, dtype));
    widened.inputs.push_back(std::move(wide));
  }
  for (const v1::OutputDescriptor& output : descriptor.outputs()) {
    if (!IsComputed(descriptor, invocation, output)) continue;
    // As wide as the inputs: the reference would else round to the output's default.
    if (IsFloating(output)) {
      widened.output_dtypes.push_back({.output = output.name(), .dtype = dtype});
    } else if (output.masked()) {
      widened.masked_outputs.push_back(output.name());
    }
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
  // By name: the reference returns all computed outputs, the call perhaps fewer.
  for (const Result& result : results) {
    const auto same = std::find_if(
        expected->results.begin(), expected->results.end(),
        [&](const Result& other) { return other.source().output == result.source().output; });
    if (same == expected->results.end()) {
      return absl::InternalError(
          absl::StrCat("the local reference has no output \"", result.source().output, "\""));
    }
    OPSERVE_ASSIGN_OR_RETURN(Comparison comparison, Compare(result, *same));
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

}  // namespace opserve::cli
