// Whether results agree with a reference: `opserve run --verify`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/cpp/request.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// How a result compares with the reference. An element is right if it is within
// tolerance * (|reference| + largest finite |reference|) of it (and the smallest number that the
// result's dtype has), or NaN where that is NaN, or
// the same infinity; the zero's sign does not matter. Integers and BOOL are right if they are
// equal.
struct Comparison {
  std::string output = {};
  DataType reference_dtype = v1::DATA_TYPE_UNSPECIFIED;
  double tolerance = 0;  // that of the result's dtype
  int64_t num_elements = 0;
  int64_t num_wrong = 0;
  double largest_error = 0;  // |result - reference| where both are finite
  double largest_value = 0;  // |reference|, where finite
};

// kInvalidArgument: different shapes.
absl::StatusOr<Comparison> Compare(const Result& result, const Result& reference);

// The invocation with all its tensors of floating point in the widest dtype that the operator has
// for all of these: DOUBLE, or FLOAT. The others stay as they are. kInvalidArgument: an input is
// not a tensor that this process has.
absl::StatusOr<Invocation> Widened(const v1::OperatorDescriptor& descriptor,
                                   const Invocation& invocation);

// Runs `invocation`, widened, on `reference`, and compares `results` with the response.
absl::StatusOr<std::vector<Comparison>> Verify(const v1::OperatorDescriptor& descriptor,
                                               const Invocation& invocation,
                                               const std::vector<Result>& results,
                                               Client& reference, absl::Duration timeout);

}  // namespace opserve::cli
