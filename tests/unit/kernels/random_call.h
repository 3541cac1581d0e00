// Random calls of all operators.
#pragma once

#include <random>

#include "tests/unit/kernels/reference.h"

namespace opserve::kernels {

// Fills the inputs with numbers that keep results finite in float: gradients in [-2, 2), plain
// targets in [0, 1) with some zeros, log targets and log-softmax outputs in [-6, 1).
void FillInputs(TestCall& call, std::mt19937& random);

// A call whose shapes, strides, dtypes and values are all drawn from `random`: rank 0 to 8, up to
// about `max_elements` elements, broadcasting as far as the operator allows it.
TestCall RandomCall(Operator op, int64_t max_elements, std::mt19937& random);

}  // namespace opserve::kernels
