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
// than 8 axes; the message says what was expected.
absl::StatusOr<std::vector<int64_t>> ParseShape(absl::string_view text);

// A contiguous tensor of numbers from 0.25 to 1, of which no operator makes NaN, nor anything
// infinite or subnormal that would take another time to compute with. Requires: a known dtype, and
// a shape whose elements fit in memory.
Tensor RandomTensor(DataType dtype, const std::vector<int64_t>& shape, std::mt19937_64& random);

}  // namespace opserve::cli
