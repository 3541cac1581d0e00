// The operators as their definitions read: one loop over all elements, in double.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "tests/unit/kernels/test_tensor.h"

namespace opserve::kernels {

enum class Operator {
  kKlDiv,
  kKlDivLog,
  kKlDivTarget,
  kKlDivTargetLog,
  kL1Loss,
  kLogSoftmax,
  kMseLoss
};

inline constexpr Operator kOperators[] = {
    Operator::kKlDiv,  Operator::kKlDivLog,   Operator::kKlDivTarget, Operator::kKlDivTargetLog,
    Operator::kL1Loss, Operator::kLogSoftmax, Operator::kMseLoss};

std::string Name(Operator op);
bool IsKlDivergence(Operator op);

// What the losses take as `reduction`: it tells what the gradient is divided by.
inline constexpr int64_t kMean = 1;
inline constexpr int64_t kSum = 2;
inline constexpr int64_t kBatchMean = 3;  // not L1Loss, MseLoss

// One call of a kernel. `inputs` are those of the operator in its order.
struct TestCall {
  Operator op;
  std::vector<TestTensor> inputs;
  TestTensor out;
  int64_t reduction = kSum;  // not LogSoftmax
  int dim = 0;               // LogSoftmax
};

// Null: there is nothing to compute.
std::unique_ptr<Kernel> MakeKernel(const TestCall& call);

// Plans and runs the kernel, in a workspace of exactly the size it asks for.
void RunCall(const TestCall& call, TaskRunner& runner);

struct Expected {
  double value = 0;
  // Sum of the absolute values of what was multiplied out and added up for it.
  double magnitude = 0;
  int64_t num_terms = 0;
};

// The elements of call.out in row-major order, from the inputs' values.
std::vector<Expected> Reference(const TestCall& call);

// Whether `value` is what the reference expects, as far as an element of `dtype` and computing in
// float (or double, if that is the dtype of all tensors) can tell:
//   half a unit of the last place of `dtype` for the last rounding, and
//   u * (16 + 2 sqrt(num_terms)) * magnitude for the arithmetic before it, u = 2^-24 or 2^-53.
// NaN must meet NaN; an infinity must have the right sign.
bool Agrees(double value, const Expected& expected, Dtype dtype, bool computes_in_double);

}  // namespace opserve::kernels
