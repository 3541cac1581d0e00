// The kernels against the reference.
#include "kernels/cpu/kernel.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/seed.h"
#include "tests/unit/kernels/random_call.h"
#include "tests/unit/kernels/reference.h"

namespace opserve::kernels {
namespace {

std::string Describe(const Layout& layout) {
  std::ostringstream text;
  text << " dtype " << static_cast<int>(layout.dtype) << " shape [";
  for (int d = 0; d < layout.rank; ++d) text << layout.shape[d] << ' ';
  text << "] strides [";
  for (int d = 0; d < layout.rank; ++d) text << layout.strides[d] << ' ';
  text << "]";
  return text.str();
}

std::string Describe(const TestCall& call) {
  std::string text = Name(call.op);
  for (const TestTensor& input : call.inputs) text += Describe(input.layout());
  return text + " to" + Describe(call.out.layout()) + " dim " + std::to_string(call.dim);
}

// Runs the call and compares every element and the guards.
void ExpectReference(const TestCall& call) {
  SerialTaskRunner runner;
  RunCall(call, runner);

  const Dtype dtype = call.out.layout().dtype;
  const bool is_double = call.inputs[0].layout().dtype == Dtype::kDouble;
  const std::vector<Expected> expected = Reference(call);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = call.out.Get(static_cast<int64_t>(i));
    ASSERT_TRUE(Agrees(value, expected[i], dtype, is_double))
        << "element " << i << " is " << value << ", expected " << expected[i].value << "\n"
        << Describe(call);
  }
  ASSERT_TRUE(call.out.GuardsAreUntouched()) << Describe(call);
}

// All tensors contiguous in `shapes`: those of the inputs, then of the output.
TestCall ContiguousCall(Operator op, const std::vector<Dtype>& dtypes,
                        const std::vector<Shape>& shapes) {
  std::vector<TestTensor> inputs;
  for (size_t i = 0; i + 1 < shapes.size(); ++i) {
    inputs.emplace_back(ContiguousLayout(dtypes[i], shapes[i]));
  }
  return {op, std::move(inputs), TestTensor(ContiguousLayout(dtypes.back(), shapes.back()))};
}

size_t NumTensors(Operator op) { return op == Operator::kLogSoftmax ? 3 : 4; }

TEST(KernelsTest, SizesAroundVectorsAndTiles) {
  std::mt19937 random(TestSeed(1));
  for (const Operator op : kOperators) {
    for (int64_t size : {0,  1,  2,  7,    8,    9,    15,   16,   17,    31,    32,
                         33, 63, 65, 1023, 1024, 1025, 2047, 2049, 65535, 65536, 65537}) {
      for (const Dtype dtype : {Dtype::kFloat, Dtype::kFloat16, Dtype::kBfloat16}) {
        TestCall call =
            ContiguousCall(op, std::vector(4, dtype), std::vector(NumTensors(op), Shape{size}));
        FillInputs(call, random);
        ExpectReference(call);
      }
    }
  }
}

TEST(KernelsTest, EveryMixtureOfDtypes) {
  std::mt19937 random(TestSeed(2));
  const Dtype all[] = {Dtype::kFloat, Dtype::kFloat16, Dtype::kBfloat16};
  for (const Operator op : kOperators) {
    for (const Dtype grad : all) {
      for (const Dtype self : all) {
        for (const Dtype target : all) {
          for (const Dtype out : all) {
            const std::vector<Dtype> dtypes = {grad, self, target, out};
            TestCall call = ContiguousCall(op, dtypes, std::vector(NumTensors(op), Shape{3, 43}));
            FillInputs(call, random);
            ExpectReference(call);
          }
        }
      }
    }
  }
}

TEST(KernelsTest, RandomLayoutsAndBroadcasts) {
  const uint32_t first = TestSeed(0);
  for (const Operator op : kOperators) {
    for (uint32_t seed = first; seed < first + 1500; ++seed) {
      std::mt19937 random(seed);
      const TestCall call = RandomCall(op, /*max_elements=*/3000, random);
      ExpectReference(call);
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
  }
}

struct SumCase {
  const char* name;
  Shape full;    // of the gradient and of what is not differentiated
  Shape summed;  // of the output
};

const SumCase kSumCases[] = {
    {"AllToScalar", {300, 700}, {}},      {"AllToOne", {200'003}, {1}},
    {"ShortRows", {5000, 3}, {5000, 1}},  {"LongRows", {3, 70'001}, {3, 1}},
    {"ShortColumns", {3, 5000}, {5000}},  {"LongColumns", {70'001, 3}, {3}},
    {"WideColumns", {130, 1500}, {1500}}, {"Middle", {7, 50, 33}, {7, 1, 33}},
    {"Outside", {50, 7, 33}, {7, 1}},     {"InnerAndOuterKept", {9, 2, 300, 5}, {9, 1, 1, 5}},
};

TEST(KernelsTest, Sums) {
  std::mt19937 random(TestSeed(3));
  for (const SumCase& c : kSumCases) {
    for (const Operator op : {Operator::kKlDiv, Operator::kKlDivLog, Operator::kKlDivTarget,
                              Operator::kKlDivTargetLog}) {
      const bool is_target = op == Operator::kKlDivTarget || op == Operator::kKlDivTargetLog;
      const std::vector<Dtype> dtypes(4, Dtype::kFloat);
      TestCall call = ContiguousCall(
          op, dtypes,
          {c.full, is_target ? c.full : c.summed, is_target ? c.summed : c.full, c.summed});
      FillInputs(call, random);
      ExpectReference(call);
      ASSERT_FALSE(HasFatalFailure()) << c.name;
    }
  }
}

TEST(KernelsTest, DoubleComputesInDouble) {
  std::mt19937 random(TestSeed(4));
  const std::vector<Dtype> dtypes(4, Dtype::kDouble);
  for (const Operator op : {Operator::kKlDiv, Operator::kKlDivLog}) {
    for (const Shape& out : {Shape{100, 1100}, Shape{1100}, Shape{100, 1}, Shape{}}) {
      const Shape full = {100, 1100};
      TestCall call = ContiguousCall(op, dtypes, {full, out, full, out});
      FillInputs(call, random);
      ExpectReference(call);
    }
  }
}

TEST(KernelsTest, LogSoftmaxAlongEveryAxis) {
  std::mt19937 random(TestSeed(5));
  // The columns of an inner axis are runs: narrow ones, ones as wide as a tile, and wider ones.
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{3, 50'257}, Shape{1025, 3}, Shape{2, 300, 70}, Shape{40, 1, 40},
        Shape{2, 1500, 2}, Shape{5, 1024}, Shape{3, 20, 200}, Shape{2, 10, 1500}}) {
    for (int dim = 0; dim < std::max<int>(1, static_cast<int>(shape.size())); ++dim) {
      for (const Dtype out : {Dtype::kFloat, Dtype::kFloat16, Dtype::kDouble}) {
        TestCall call = ContiguousCall(Operator::kLogSoftmax, {Dtype::kFloat, Dtype::kFloat, out},
                                       {shape, shape, shape});
        call.dim = dim;
        FillInputs(call, random);
        ExpectReference(call);
      }
    }
  }
}

TEST(KernelsTest, TransposedTensors) {
  std::mt19937 random(TestSeed(6));
  for (const Operator op : kOperators) {
    for (const Dtype dtype : {Dtype::kFloat, Dtype::kFloat16}) {
      for (const Shape& shape : {Shape{300, 270}, Shape{33, 31}, Shape{1, 100}, Shape{4, 3000},
                                 Shape{150, 1100}, Shape{2, 70'001}}) {
        for (size_t transposed = 0; transposed < NumTensors(op); ++transposed) {
          std::vector<TestTensor> tensors;
          for (size_t i = 0; i < NumTensors(op); ++i) {
            Layout layout = ContiguousLayout(dtype, shape);
            if (i == transposed) layout.strides = {1, shape[0]};
            tensors.emplace_back(layout);
          }
          TestTensor out = std::move(tensors.back());
          tensors.pop_back();
          TestCall call{op, std::move(tensors), std::move(out), kMean, /*dim=*/1};
          FillInputs(call, random);
          ExpectReference(call);
        }
      }
    }
  }
}

// Square tiles whose last row of tiles is short, and an input that is the same in all of them.
TEST(KernelsTest, ColumnSumsOfATransposedAndARepeatedTensor) {
  std::mt19937 random(TestSeed(8));
  Layout transposed = ContiguousLayout(Dtype::kFloat, {90, 100});
  transposed.strides = {1, 90};
  Layout repeated = ContiguousLayout(Dtype::kFloat16, {100});
  repeated.strides = {0};
  std::vector<TestTensor> inputs;
  inputs.emplace_back(ContiguousLayout(Dtype::kFloat, {90, 100}));
  inputs.emplace_back(transposed);
  inputs.emplace_back(repeated);
  TestCall call{Operator::kKlDivTargetLog, std::move(inputs),
                TestTensor(ContiguousLayout(Dtype::kFloat16, {100}))};
  FillInputs(call, random);
  ExpectReference(call);
}

// Outputs of this size are written past the caches.
TEST(KernelsTest, LargeOutputs) {
  std::mt19937 random(TestSeed(7));
  const int64_t size = (int64_t{32} << 20) / 4 + 77;
  for (int64_t offset : {0, 1}) {
    std::vector<TestTensor> inputs;
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, {size}));
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, {}));
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, {}));
    TestCall call{Operator::kL1Loss, std::move(inputs),
                  TestTensor(ContiguousLayout(Dtype::kFloat, {size}), offset)};
    FillInputs(call, random);
    ExpectReference(call);
  }
}

}  // namespace
}  // namespace opserve::kernels
