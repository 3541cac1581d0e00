#include "ops/catalog/catalog.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/attributes.h"
#include "ops/catalog/descriptor_proto.h"
#include "ops/catalog/rules.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/status/error.h"

namespace opserve::catalog {
namespace {

using ::testing::HasSubstr;

constexpr Dtype F = v1::DATA_TYPE_FLOAT;
constexpr Dtype H = v1::DATA_TYPE_FLOAT16;
constexpr Dtype B = v1::DATA_TYPE_BF16;
constexpr Dtype D = v1::DATA_TYPE_DOUBLE;

AttributeValues Defaults(const OperatorDescriptor& op) { return *ResolveAttributes(op, {}); }

// What the judge says of a call with one tensor for each input.
struct Verdict {
  std::optional<TensorSpec> output;  // of the first output; nothing: refused
  Problem problem;
  int64_t work = 0;
  int64_t charge = 0;
};

Verdict JudgeOf(const OperatorDescriptor& op, const std::vector<TensorSpec>& inputs,
                const AttributeValues& attributes, std::optional<Dtype> dtype) {
  std::vector<Spec> specs;
  std::vector<uint32_t> ends;
  for (const TensorSpec& input : inputs) {
    specs.push_back({ToAcl(input.dtype), input.shape});
    ends.push_back(static_cast<uint32_t>(specs.size()));
  }
  const CallSpec call{specs, ends, attributes};
  Judge judge(op, call, Names::kCatalogue);
  const std::optional<aclDataType> asked = dtype ? std::optional(ToAcl(*dtype)) : std::nullopt;
  Results results;
  if (!judge.Check() || !judge.Infer({true}, {asked}, &results) || !judge.CheckForDaemon(results)) {
    return {std::nullopt, judge.problem()};
  }
  const int64_t work = judge.CountWork(results);
  return {TensorSpec{ToWire(results.tensors[0].dtype), results.tensors[0].shape},
          {},
          work,
          judge.CountCharge(work, results)};
}

struct InferCase {
  const char* name;
  const char* op;
  std::vector<TensorSpec> inputs;
  std::optional<Dtype> dtype;
  std::optional<TensorSpec> output;  // nothing: refused
  const char* message = "";          // part of the refusal
};

TEST(InferOutputTest, FollowsTheOperatorsRules) {
  const std::vector<InferCase> cases = {
      {"KlPlain", "KlDivBackward", {{F, {}}, {H, {2, 3}}, {F, {2, 3}}}, {}, TensorSpec{H, {2, 3}}},
      {"KlSumsToSelf", "KlDivBackward", {{F, {}}, {F, {3}}, {F, {2, 3}}}, {}, TensorSpec{F, {3}}},
      {"KlDouble", "KlDivBackward", {{D, {}}, {D, {2}}, {D, {2}}}, {}, TensorSpec{D, {2}}},
      {"KlDoubleMixed",
       "KlDivBackward",
       {{F, {}}, {D, {2}}, {D, {2}}},
       {},
       {},
       "DOUBLE does not mix"},
      {"KlNoBroadcast",
       "KlDivBackward",
       {{F, {}}, {F, {2}}, {F, {3}}},
       {},
       {},
       "target: shape [3] does not broadcast with self [2]"},
      {"KlGradTooLarge",
       "KlDivBackward",
       {{F, {4, 2}}, {F, {2}}, {F, {2}}},
       {},
       {},
       "grad_output: shape [4,2] does not broadcast to [2]"},
      {"KlOtherOutputDtype",
       "KlDivBackward",
       {{F, {}}, {F, {2}}, {F, {2}}},
       H,
       {},
       "out: dtype FLOAT16 asked for, but it can only be FLOAT"},
      {"KlEmptySelf", "KlDivBackward", {{F, {}}, {F, {0}}, {F, {1}}}, {}, TensorSpec{F, {0}}},
      {"TargetSumsToTarget",
       "KlDivTargetBackward",
       {{F, {}}, {F, {2, 3}}, {B, {3}}},
       {},
       TensorSpec{B, {3}}},
      // Stage one would succeed and write nothing, though the output has an element.
      {"TargetOfEmptySelf",
       "KlDivTargetBackward",
       {{F, {}}, {F, {0}}, {F, {1}}},
       {},
       {},
       "is empty, but the output"},
      {"L1Promotes", "L1LossBackward", {{H, {}}, {B, {2, 1}}, {H, {3}}}, {}, TensorSpec{F, {2, 3}}},
      {"L1SameDtype",
       "L1LossBackward",
       {{H, {5, 2}}, {H, {2}}, {H, {1}}},
       {},
       TensorSpec{H, {5, 2}}},
      {"L1OutputDtype", "L1LossBackward", {{F, {}}, {F, {2}}, {F, {2}}}, B, TensorSpec{B, {2}}},
      {"L1ZeroAgainstTwo",
       "L1LossBackward",
       {{F, {}}, {F, {0}}, {F, {2}}},
       {},
       {},
       "does not broadcast"},
      {"LogSoftmax", "LogSoftmaxBackward", {{B, {2, 3}}, {B, {2, 3}}}, D, TensorSpec{D, {2, 3}}},
      {"LogSoftmaxShapes",
       "LogSoftmaxBackward",
       {{F, {1, 3}}, {F, {2, 3}}},
       {},
       {},
       "grad_output: shape [1,3]; it must be that of output, [2,3]"},
      {"LogSoftmaxDtypes",
       "LogSoftmaxBackward",
       {{F, {2}}, {H, {2}}},
       {},
       {},
       "grad_output: dtype FLOAT; it must be that of output, FLOAT16"},
      {"LogSoftmaxScalar", "LogSoftmaxBackward", {{F, {}}, {F, {}}}, {}, TensorSpec{F, {}}},
      {"TogetherTooLarge",
       "L1LossBackward",
       {{F, {}}, {F, {int64_t{1} << 40, 1}}, {F, {int64_t{1} << 40}}},
       {},
       {},
       "2^63 bytes"},
  };
  for (const InferCase& c : cases) {
    const OperatorDescriptor& op = *FindOperator(c.op);

    const Verdict verdict = JudgeOf(op, c.inputs, Defaults(op), c.dtype);

    EXPECT_EQ(verdict.output, c.output) << c.name << ": " << verdict.problem.text;
    if (!c.output) {
      const std::string at =
          verdict.problem.argument.empty() ? "" : verdict.problem.argument + ": ";
      EXPECT_THAT(at + verdict.problem.text, HasSubstr(c.message)) << c.name;
    }
  }
}

TEST(CountWorkTest, CountsTheElementsOfTheBroadcastShape) {
  struct Case {
    const char* op;
    std::vector<TensorSpec> inputs;
    uint64_t work;
  };
  const int64_t half = int64_t{1} << 30;
  for (const Case& c : {
           Case{"KlDivBackward", {{F, {}}, {H, {2, 3}}, {F, {2, 3}}}, 6},
           Case{"KlDivBackward", {{F, {}}, {F, {}}, {F, {half, half / 2}}}, uint64_t{1} << 59},
           Case{"KlDivTargetBackward", {{F, {}}, {F, {4, 1}}, {F, {5}}}, 20},
           Case{"L1LossBackward", {{F, {7, 1, 1}}, {F, {4, 1}}, {F, {5}}}, 140},
           Case{"MseLossBackward", {{F, {}}, {F, {0, 3}}, {F, {3}}}, 0},
           Case{"LogSoftmaxBackward", {{F, {2, 3}}, {F, {2, 3}}}, 6},
       }) {
    const OperatorDescriptor& op = *FindOperator(c.op);
    const Verdict verdict = JudgeOf(op, c.inputs, Defaults(op), {});
    ASSERT_TRUE(verdict.output.has_value()) << verdict.problem.text;
    EXPECT_EQ(verdict.work, static_cast<int64_t>(c.work)) << c.op;
    EXPECT_EQ(verdict.charge, verdict.work) << c.op;
  }
}

TEST(InferOutputTest, LogSoftmaxDimIsWithinTheRank) {
  const OperatorDescriptor& op = *FindOperator("LogSoftmaxBackward");
  const std::vector<TensorSpec> inputs(2, TensorSpec{F, {2, 3}});
  for (int64_t dim = -4; dim <= 3; ++dim) {
    const AttributeValues attributes = {dim};
    EXPECT_EQ(JudgeOf(op, inputs, attributes, {}).output.has_value(), dim >= -2 && dim < 2) << dim;
  }
}

std::vector<GivenAttribute> Given(const std::vector<v1::NamedAttribute>& attributes) {
  std::vector<GivenAttribute> given;
  for (const v1::NamedAttribute& attribute : attributes) {
    given.push_back({attribute.name(), &attribute.value()});
  }
  return given;
}

v1::NamedAttribute Named(const std::string& name, int64_t value) {
  v1::NamedAttribute attribute;
  attribute.set_name(name);
  attribute.mutable_value()->set_int64_value(value);
  return attribute;
}

v1::NamedAttribute Named(const std::string& name, const char* value) {
  v1::NamedAttribute attribute;
  attribute.set_name(name);
  attribute.mutable_value()->set_name(value);
  return attribute;
}

v1::NamedAttribute Named(const std::string& name, const std::vector<int64_t>& values) {
  v1::NamedAttribute attribute;
  attribute.set_name(name);
  for (const int64_t value : values)
    attribute.mutable_value()->mutable_int64_list()->add_values(value);
  return attribute;
}

TEST(CountChargeTest, StepsOfProductsAreLessThanElements) {
  struct Case {
    const char* op;
    std::vector<TensorSpec> inputs;
    int64_t work;
    int64_t charge;
  };
  constexpr int64_t k = 1024;
  const OperatorDescriptor& convolution = *FindOperator("Convolution");
  const std::vector<v1::NamedAttribute> window = {Named("stride", {1, 1}), Named("padding", {1, 1}),
                                                  Named("dilation", {1, 1}),
                                                  Named("output_padding", {0, 0})};
  const AttributeValues plain = *ResolveAttributes(convolution, Given(window));
  for (const Case& c : {
           Case{"Matmul", {{F, {2 * k, k}}, {F, {k, 2 * k}}}, 4 * k * k * k, 16 * k * k},
           Case{"BatchMatMul", {{F, {3, k, k}}, {F, {3, k, k}}}, 3 * k * k * k, 12 * k * k},
           // Its operands are larger than that.
           Case{"Matmul", {{F, {1, k}}, {F, {k, k}}}, k * k, k * k},
           Case{"Matmul", {{F, {k}}, {F, {k}}}, k, k},
           Case{"Convolution",
                {{F, {1, 64, 10, 10}}, {F, {32, 64, 3, 3}}, {F, {32}}},
                3200 * 576,
                200 * 576},
           Case{"Convolution",
                {{F, {1, 4, 10, 10}}, {F, {32, 4, 3, 3}}, {F, {32}}},
                3200 * 36,
                3200 * 9},
       }) {
    const OperatorDescriptor& op = *FindOperator(c.op);
    const Verdict verdict = JudgeOf(op, c.inputs, &op == &convolution ? plain : Defaults(op), {});
    ASSERT_TRUE(verdict.output.has_value()) << verdict.problem.text;
    EXPECT_EQ(verdict.work, c.work) << c.op;
    EXPECT_EQ(verdict.charge, c.charge) << c.op;
  }
}

struct ExtremeCase {
  const char* op;
  TensorSpec input;
  std::vector<v1::NamedAttribute> given;
  std::optional<Shape> output;  // nothing: refused
  const char* message = "";
};

// Numbers near the ends of int64 are refused or counted right, wherever their sums would overflow.
TEST(InferOutputTest, CountsWithTheLargestNumbers) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  v1::NamedAttribute ceil_mode;
  ceil_mode.set_name("ceil_mode");
  ceil_mode.mutable_value()->set_bool_value(true);
  const std::vector<ExtremeCase> cases = {
      {"ConstantPadNd", {F, {3}}, {Named("pad", {-1, 5})}, Shape{7}},
      {"ConstantPadNd", {F, {3}}, {Named("pad", {-9, 7})}, Shape{1}},
      {"ConstantPadNd", {F, {3}}, {Named("pad", {-9, 2})}, {}, "negative extent of axis 0"},
      {"ConstantPadNd", {F, {3}}, {Named("pad", {kMost, 5})}, {}, "too large an extent of axis 0"},
      {"ConstantPadNd", {F, {3}}, {Named("pad", {5, kMost})}, {}, "too large an extent of axis 0"},
      {"ConstantPadNd", {F, {0}}, {Named("pad", {kLeast, -1})}, {}, "too large an extent"},
      {"AvgPool2d",
       {F, {1, 5, 5}},
       {Named("kernel_size", {2, 2}), Named("strides", {kMost, 2}), Named("paddings", {0, 0}),
        ceil_mode},
       Shape{1, 1, 3}},
  };
  for (const ExtremeCase& c : cases) {
    const OperatorDescriptor& op = *FindOperator(c.op);
    const auto attributes = ResolveAttributes(op, Given(c.given));
    ASSERT_TRUE(attributes.ok()) << attributes.status();

    const Verdict verdict = JudgeOf(op, {c.input}, *attributes, {});

    EXPECT_EQ(verdict.output.has_value(), c.output.has_value()) << c.op << verdict.problem.text;
    if (verdict.output && c.output) {
      EXPECT_EQ(verdict.output->shape, *c.output) << c.op;
    } else {
      EXPECT_THAT(verdict.problem.text, HasSubstr(c.message)) << c.op;
    }
  }
}

struct AttributeCase {
  const char* name;
  const char* op;
  std::vector<v1::NamedAttribute> given;
  std::optional<int64_t> first;  // value of the first attribute; nothing: refused
  const char* message = "";
};

TEST(ResolveAttributesTest, TakesNumbersAndNames) {
  v1::NamedAttribute without_value;
  without_value.set_name("reduction");
  v1::NamedAttribute boolean = without_value;
  boolean.mutable_value()->set_bool_value(true);
  const std::vector<AttributeCase> cases = {
      {"Default", "KlDivBackward", {}, 1},
      {"Name", "KlDivBackward", {Named("reduction", "batchmean")}, 3},
      {"Number", "KlDivBackward", {Named("reduction", 2)}, 2},
      {"NumberWithoutMeaning", "KlDivBackward", {Named("reduction", 77)}, 77},
      {"OutOfRange", "L1LossBackward", {Named("reduction", 3)}, {}, "3 is outside [0, 2]"},
      {"UnknownName",
       "L1LossBackward",
       {Named("reduction", "batchmean")},
       {},
       "none (0), mean (1), sum (2)"},
      {"UnknownAttribute", "L1LossBackward", {Named("dim", 1)}, {}, "no such attribute"},
      {"Twice",
       "L1LossBackward",
       {Named("reduction", 1), Named("reduction", 1)},
       {},
       "given twice"},
      {"OtherType", "L1LossBackward", {boolean}, {}, "is a bool, must be an int64"},
      {"NoValue", "L1LossBackward", {without_value}, {}, "has no value"},
      {"NameWhereThereAreNone", "LogSoftmaxBackward", {Named("dim", "last")}, {}, "not a name"},
  };
  for (const AttributeCase& c : cases) {
    const auto values = ResolveAttributes(*FindOperator(c.op), Given(c.given));
    if (c.first) {
      ASSERT_TRUE(values.ok()) << c.name << ": " << values.status();
      EXPECT_EQ(std::get<int64_t>((*values)[0]), *c.first) << c.name;
    } else {
      EXPECT_EQ(values.status().code(), absl::StatusCode::kInvalidArgument) << c.name;
      EXPECT_THAT(std::string(values.status().message()), HasSubstr(c.message)) << c.name;
    }
  }
}

struct BroadcastCase {
  const char* name;
  Shape a, b;
  std::optional<Shape> common;
};

TEST(BroadcastTest, AlignsAtTheLastAxis) {
  const std::vector<BroadcastCase> cases = {
      {"Equal", {2, 3}, {2, 3}, Shape{2, 3}},
      {"ScalarStretches", {}, {2, 3}, Shape{2, 3}},
      {"OneAgainstZero", {1}, {0}, Shape{0}},
      {"ZeroAgainstTwo", {0}, {2}, std::nullopt},
      {"BothStretch", {2, 1}, {1, 3}, Shape{2, 3}},
      {"RanksDiffer", {4, 1, 3}, {2, 1}, Shape{4, 2, 3}},
  };
  for (const BroadcastCase& c : cases) {
    Shape common;
    EXPECT_EQ(Broadcast(c.a, c.b, &common), c.common.has_value()) << c.name;
    if (c.common) {
      EXPECT_EQ(common, *c.common) << c.name;
    }
    EXPECT_EQ(Broadcast(c.b, c.a, &common), c.common.has_value()) << c.name;
  }
}

TEST(CatalogTest, EveryOperatorIsDescribedCompletely) {
  for (const OperatorDescriptor* op : AllOperators()) {
    EXPECT_EQ(FindOperator(op->name), op);
    const v1::OperatorDescriptor message = ToProto(*op);
    EXPECT_NE(message.summary(), "") << op->name;
    EXPECT_NE(message.documentation(), "") << op->name;
    EXPECT_EQ(message.inputs_size(), static_cast<int>(op->inputs.size()));
    for (const auto& input : message.inputs()) {
      EXPECT_GT(input.dtypes_size(), 0) << op->name << " " << input.name();
      EXPECT_NE(input.documentation(), "") << op->name << " " << input.name();
    }
    for (const auto& attribute : message.attributes()) {
      EXPECT_NE(attribute.type(), v1::AttributeDescriptor::TYPE_UNSPECIFIED) << attribute.name();
      EXPECT_NE(attribute.documentation(), "") << attribute.name();
    }
    ASSERT_EQ(message.outputs_size(), static_cast<int>(op->outputs.size()));
    for (const auto& output : message.outputs()) {
      EXPECT_NE(output.documentation(), "") << op->name << " " << output.name();
    }
    EXPECT_EQ(op->summary.back(), '.') << op->name;
    EXPECT_FALSE(op->golden.empty()) << op->name;
  }
  EXPECT_EQ(FindOperator("kldivbackward"), nullptr);
}

}  // namespace
}  // namespace opserve::catalog
