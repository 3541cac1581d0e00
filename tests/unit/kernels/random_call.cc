#include "tests/unit/kernels/random_call.h"

#include <algorithm>
#include <utility>

namespace opserve::kernels {
namespace {

constexpr Dtype kDtypes[] = {Dtype::kFloat, Dtype::kFloat16, Dtype::kBfloat16};

Shape RandomShape(int64_t max_elements, std::mt19937& random) {
  Shape shape(random() % (kMaxRank + 1));
  int64_t count = 1;
  for (int64_t& extent : shape) {
    extent = 1 + static_cast<int64_t>(random() % (random() % 3 == 0 ? 70 : 5));
    if (count * extent > max_elements) extent = 1;
    count *= extent;
  }
  std::shuffle(shape.begin(), shape.end(), random);
  return shape;
}

// `shape` with some extents replaced by 1 and perhaps without leading axes.
Shape Shrunk(Shape shape, std::mt19937& random) {
  for (int64_t& extent : shape) {
    if (random() % 3 == 0) extent = 1;
  }
  if (random() % 3 == 0) shape.erase(shape.begin(), shape.begin() + random() % (shape.size() + 1));
  return shape;
}

TestTensor RandomTensor(Dtype dtype, const Shape& shape, bool is_output, std::mt19937& random) {
  const Layout layout = random() % 3 == 0 ? ContiguousLayout(dtype, shape)
                                          : RandomLayout(dtype, shape, !is_output, random);
  return TestTensor(layout, static_cast<int64_t>(random() % 4));
}

}  // namespace

void FillInputs(TestCall& call, std::mt19937& random) {
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * (static_cast<double>(random()) / 0x1p32);
  };
  const bool is_log = call.op != Operator::kKlDiv && call.op != Operator::kKlDivTarget;
  call.inputs[0].Fill([&] { return uniform(-2, 2); });
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    call.inputs[i].Fill([&]() -> double {
      if (is_log || i == 1) return uniform(-6, 1);
      return random() % 8 == 0 ? 0 : uniform(0, 1);
    });
  }
}

TestCall RandomCall(Operator op, int64_t max_elements, std::mt19937& random) {
  const Shape full = RandomShape(max_elements, random);
  const auto dtype = [&] { return kDtypes[random() % 3]; };
  std::vector<TestTensor> inputs;
  if (op == Operator::kLogSoftmax) {
    const Dtype input_dtype = dtype();
    const Dtype out_dtype = random() % 4 == 0 ? Dtype::kDouble : dtype();
    inputs.push_back(RandomTensor(input_dtype, full, false, random));
    inputs.push_back(RandomTensor(input_dtype, full, false, random));
    TestCall call{op, std::move(inputs), RandomTensor(out_dtype, full, true, random)};
    if (!full.empty()) call.dim = static_cast<int>(random() % full.size());
    FillInputs(call, random);
    return call;
  }

  // One of self and target has the full shape; the gradient broadcasts to it.
  Shape shapes[3] = {Shrunk(full, random), full, full};
  shapes[1 + random() % 2] = Shrunk(full, random);
  const bool has_full_output = op == Operator::kL1Loss || op == Operator::kMseLoss;
  if (has_full_output) std::swap(shapes[0], shapes[random() % 3]);
  const bool is_double = (op == Operator::kKlDiv || op == Operator::kKlDivLog) && random() % 6 == 0;
  Dtype dtypes[3];
  for (int i = 0; i < 3; ++i) {
    dtypes[i] = is_double ? Dtype::kDouble : dtype();
    inputs.push_back(RandomTensor(dtypes[i], shapes[i], false, random));
  }
  const auto out_like = [&](int i) { return RandomTensor(dtypes[i], shapes[i], true, random); };
  TestTensor out = has_full_output ? RandomTensor(dtype(), full, true, random)
                   : op == Operator::kKlDiv || op == Operator::kKlDivLog ? out_like(1)
                                                                         : out_like(2);
  TestCall call{op, std::move(inputs), std::move(out)};
  call.reduction = static_cast<int64_t>(random() % (IsKlDivergence(op) ? 4 : 3));
  FillInputs(call, random);
  return call;
}

}  // namespace opserve::kernels
