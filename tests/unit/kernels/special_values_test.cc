// Zeros, infinities, NaN, subnormals and the edges of the range.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/kernels/reference.h"

namespace opserve::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMinSubnormal = 0x1p-149;

void ExpectSame(double value, double expected, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << what << ": " << value;
  } else {
    EXPECT_EQ(value, expected) << what;
  }
}

struct ElementCase {
  const char* name;
  Operator op;
  double grad_output;
  double self;
  double target;
  double expected;
  Dtype dtype = Dtype::kFloat;
  int64_t divisor = 1;  // the mean of so many elements
};

const ElementCase kElementCases[] = {
    {"NegativeTargetIsTakenAsIs", Operator::kKlDiv, 3, 0, -2, 6},
    {"ZeroTimesInfinity", Operator::kKlDiv, kInf, 0, 0, kNan},
    {"SelfDoesNotMatter", Operator::kKlDiv, 3, kNan, 2, -6},
    {"NanTarget", Operator::kKlDiv, 3, 0, kNan, kNan},
    {"SubnormalProduct", Operator::kKlDiv, kMinSubnormal, 0, -3, 3 * kMinSubnormal},
    {"HalfOverflows", Operator::kKlDiv, 60000, 0, -8, kInf, Dtype::kFloat16},
    {"HalfIntermediateMayBeLarge", Operator::kKlDiv, 60000, 0, -8, 480, Dtype::kFloat16, 1000},
    {"FloatIntermediateMayBeLarge", Operator::kKlDiv, 0x1p120, 0, -1024, 0x1p126, Dtype::kFloat,
     16},

    {"ExpOfMinusInfinity", Operator::kKlDivLog, 3, 0, -kInf, 0},
    {"ExpOfMinusInfinityTimesInfinity", Operator::kKlDivLog, kInf, 0, -kInf, kNan},
    {"ExpOfInfinity", Operator::kKlDivLog, -3, 0, kInf, kInf},
    {"ExpUnderflowsGradually", Operator::kKlDivLog, -1, 0, -103, kMinSubnormal},

    {"ZeroTarget", Operator::kKlDivTarget, 3, 1, 0, 0},
    {"NegativeZeroTarget", Operator::kKlDivTarget, 3, 1, -0.0, 0},
    {"ZeroTargetHidesNan", Operator::kKlDivTarget, kNan, kNan, 0, 0},
    {"ZeroTargetHidesInfinities", Operator::kKlDivTarget, kInf, -kInf, 0, 0},
    {"NegativeTarget", Operator::kKlDivTarget, 3, 1, -1, kNan},
    {"NanPlainTarget", Operator::kKlDivTarget, 3, 1, kNan, kNan},
    {"InfiniteSelf", Operator::kKlDivTarget, 3, kInf, 1, -kInf},
    {"NegativeInfiniteSelf", Operator::kKlDivTarget, 3, -kInf, 1, kInf},

    {"LogTargetMinusInfinity", Operator::kKlDivTargetLog, 3, 1, -kInf, kNan},
    {"LogTargetInfinity", Operator::kKlDivTargetLog, 3, 1, kInf, kInf},
    {"LogTargetZeroIsNotSpecial", Operator::kKlDivTargetLog, 3, -1, 0, 6},

    {"Above", Operator::kL1Loss, 3, 2, 1, 3},
    {"Below", Operator::kL1Loss, 3, 1, 2, -3},
    {"Equal", Operator::kL1Loss, 3, 2, 2, 0},
    {"EqualInfinities", Operator::kL1Loss, 3, kInf, kInf, 0},
    {"OppositeInfinities", Operator::kL1Loss, 3, -kInf, kInf, -3},
    {"NanSelf", Operator::kL1Loss, 3, kNan, 1, 0},
    {"NanL1Target", Operator::kL1Loss, 3, 1, kNan, 0},
    {"NanSelfTimesInfinity", Operator::kL1Loss, kInf, kNan, 1, kNan},
    {"EqualTimesNan", Operator::kL1Loss, kNan, 1, 1, kNan},
    {"InfiniteGradient", Operator::kL1Loss, kInf, 1, 2, -kInf},
    {"SubnormalsDiffer", Operator::kL1Loss, 3, kMinSubnormal, 0, 3},
    {"DifferenceWouldOverflow", Operator::kL1Loss, 3, 3e38, -3e38, 3},
    {"Squared", Operator::kMseLoss, 3, 2, 1.5, 3},
    {"SquaredInfinity", Operator::kMseLoss, 3, kInf, 1, kInf},
    {"SquaredEqualInfinities", Operator::kMseLoss, 3, kInf, kInf, kNan},
    {"SquaredNan", Operator::kMseLoss, 3, kNan, 1, kNan},
    {"SquaredZeroTimesInfinity", Operator::kMseLoss, 0, kInf, 1, kNan},
    {"SquaredHalf", Operator::kMseLoss, 300, 200, -200, 24000, Dtype::kFloat16, 10},
    {"SubnormalGradient", Operator::kL1Loss, kMinSubnormal, 2, 1, kMinSubnormal},
    {"HalfSubnormal", Operator::kL1Loss, 0x1p-24, 2, 1, 0x1p-24, Dtype::kFloat16},
    {"HalfTiesToEven", Operator::kL1Loss, 2049, 2, 1, 1024, Dtype::kFloat16, 2},
};

// In the middle of a vector and in the elements that are left over after the last one; a mean is
// of as many as it divides by.
TEST(SpecialValuesTest, Elements) {
  for (const ElementCase& c : kElementCases) {
    const bool is_mean = c.divisor != 1;
    for (int64_t size : is_mean ? Shape{c.divisor} : Shape{1, 37}) {
      std::vector<TestTensor> inputs;
      for (double value : {c.grad_output, c.self, c.target}) {
        inputs.emplace_back(ContiguousLayout(c.dtype, {size}));
        inputs.back().Fill([value] { return value; });
      }
      const TestCall call{c.op, std::move(inputs), TestTensor(ContiguousLayout(c.dtype, {size})),
                          is_mean ? kMean : kSum};
      SerialTaskRunner runner;
      RunCall(call, runner);
      for (int64_t i = 0; i < size; ++i) ExpectSame(call.out.Get(i), c.expected, c.name);
    }
  }
}

TEST(SpecialValuesTest, LogOfASubnormalTargetIsFinite) {
  std::vector<TestTensor> inputs;
  for (double value : {1.0, 0.0, kMinSubnormal}) {
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, {37}));
    inputs.back().Fill([value] { return value; });
  }
  const TestCall call{Operator::kKlDivTarget, std::move(inputs),
                      TestTensor(ContiguousLayout(Dtype::kFloat, {37}))};
  SerialTaskRunner runner;
  RunCall(call, runner);
  for (int64_t i = 0; i < 37; ++i) EXPECT_NEAR(call.out.Get(i), -102.278929, 2e-5);
}

TEST(SpecialValuesTest, ASumOverNoTermsIsZero) {
  for (const Operator op : {Operator::kKlDiv, Operator::kKlDivTarget}) {
    const Shape empty = {0, 3};
    const Shape one = {1, 3};
    const bool is_target = op == Operator::kKlDivTarget;
    std::vector<TestTensor> inputs;
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, one));
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, is_target ? empty : one));
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, is_target ? one : empty));
    const TestCall call{op, std::move(inputs), TestTensor(ContiguousLayout(Dtype::kFloat, one))};
    SerialTaskRunner runner;
    RunCall(call, runner);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(call.out.Get(i), 0);
  }
}

struct RowCase {
  const char* name;
  std::vector<double> grad_output;
  std::vector<double> output;
  std::vector<double> expected;
  Dtype dtype = Dtype::kFloat;
};

const RowCase kRowCases[] = {
    {"ProbabilityZero", {1, 2}, {-kInf, 0}, {1, -1}},
    {"ProbabilityZeroTimesInfinity", {1, kInf}, {-kInf, 0}, {kNan, kNan}},
    {"InfiniteGradient", {1, kInf, 2}, {0, 0, 0}, {-kInf, kNan, -kInf}},
    {"BothInfinities", {1, kInf, -kInf}, {0, 0, 0}, {kNan, kNan, kNan}},
    {"NanGradient", {1, kNan, 2}, {0, 0, 0}, {kNan, kNan, kNan}},
    {"NanOutput", {1, 2}, {kNan, 0}, {kNan, -1}},
    {"HalfSumBeyondItsRange", {60000, 60000}, {-kInf, -kInf}, {60000, 60000}, Dtype::kFloat16},
};

// As the last axis and as an inner one, with a row of ones after it that must not be touched by it.
TEST(SpecialValuesTest, LogSoftmaxRows) {
  for (const RowCase& c : kRowCases) {
    const auto extent = static_cast<int64_t>(c.expected.size());
    for (int dim : {0, 1}) {
      const Shape shape = dim == 1 ? Shape{2, extent} : Shape{extent, 2};
      const auto index = [&](int64_t row, int64_t i) {
        return dim == 1 ? row * extent + i : i * 2 + row;
      };
      std::vector<TestTensor> inputs;
      for (int k = 0; k < 2; ++k) inputs.emplace_back(ContiguousLayout(c.dtype, shape));
      for (int64_t i = 0; i < extent; ++i) {
        inputs[0].Set(index(0, i), c.grad_output[i]);
        inputs[1].Set(index(0, i), c.output[i]);
        inputs[0].Set(index(1, i), 1);
        inputs[1].Set(index(1, i), 0);
      }
      TestCall call{Operator::kLogSoftmax, std::move(inputs),
                    TestTensor(ContiguousLayout(c.dtype, shape))};
      call.dim = dim;
      SerialTaskRunner runner;
      RunCall(call, runner);
      for (int64_t i = 0; i < extent; ++i) {
        ExpectSame(call.out.Get(index(0, i)), c.expected[i], c.name);
        ExpectSame(call.out.Get(index(1, i)), 1 - static_cast<double>(extent), c.name);
      }
    }
  }
}

}  // namespace
}  // namespace opserve::kernels
