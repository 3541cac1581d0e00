// Tensors of random numbers, for trying an operator without data.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/tensor.h"

namespace opserve::cli {

// Reads "256,1024", or "scalar" for no axis. kInvalidArgument: anything else, extents below 1, more
// than 8 axes; the message tells the expected form.
absl::StatusOr<std::vector<int64_t>> ParseShape(absl::string_view text);

// Integers from `low` on, below `high`.
struct IntegerRange {
  int64_t low = 0;
  int64_t high = 0;
};

// Reads "(0,10)". kInvalidArgument: anything else, no integer in between; the message tells the
// expected form.
absl::StatusOr<IntegerRange> ParseIntegerRange(absl::string_view text);

// Whether elements of the dtype hold all of the range, BOOL being 0 and 1. Requires: a known dtype.
bool Holds(DataType dtype, const IntegerRange& range);

// A contiguous tensor of numbers from 0.25 to 1, of which no operator makes NaN, nor anything
// infinite or subnormal that would take another time to compute with; of integers and BOOL, of 0
// and 1. Requires: a known dtype, and a shape with elements that fit in memory.
Tensor RandomTensor(DataType dtype, const std::vector<int64_t>& shape, std::mt19937_64& random);

// Likewise of integers of a range that the dtype Holds.
Tensor RandomIntegers(DataType dtype, const std::vector<int64_t>& shape, const IntegerRange& range,
                      std::mt19937_64& random);

}  // namespace opserve::cli
