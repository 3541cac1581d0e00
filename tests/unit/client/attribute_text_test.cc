#include "client/cli/arrays/attribute_text.h"

#include "client/cli/arrays/closest_name.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::HasSubstr;

v1::AttributeDescriptor Attribute(const std::string& text) {
  v1::AttributeDescriptor attribute;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &attribute));
  return attribute;
}

const char kReduction[] = R"(
  name: "reduction" type: TYPE_INT64 default_value { int64_value: 1 }
  names { name: "none" value: 0 } names { name: "mean" value: 1 } maximum: 9)";
const char kDim[] = R"(name: "dim" type: TYPE_INT64 default_value { int64_value: -1 })";
const char kFlag[] = R"(name: "log" type: TYPE_BOOL default_value { bool_value: true })";
const char kBeta[] = R"(name: "beta" type: TYPE_DOUBLE default_value { double_value: 0.5 })";

const char kMode[] = R"(name: "mode" type: TYPE_TEXT texts: "a" texts: "b")";
const char kText[] = R"(name: "equation" type: TYPE_TEXT default_value { text_value: "ij" })";
const char kDtype[] = R"(name: "dtype" type: TYPE_DTYPE dtypes: DATA_TYPE_BF16
  dtypes: DATA_TYPE_INT64 default_value { dtype_value: DATA_TYPE_BF16 })";
const char kAnyDtype[] = R"(name: "dtype" type: TYPE_DTYPE)";
const char kScalar[] = R"(name: "alpha" type: TYPE_SCALAR lowest: -2 highest: 9
  default_value { scalar_value { dtype: DATA_TYPE_FLOAT double_value: 1.5 } })";
const char kInts[] = R"(name: "dims" type: TYPE_INT64S minimum: -2 maximum: 1
  default_value { int64_list { values: 0 values: -1 } })";
const char kBools[] = R"(name: "mask" type: TYPE_BOOLS
  default_value { bool_list { values: true values: false } })";
const char kDoubles[] = R"(name: "scales" type: TYPE_DOUBLES lowest: 0
  default_value { double_list { values: 1 values: 0.5 } })";
const char kBounded[] = R"(name: "eps" type: TYPE_DOUBLE lowest: 0 highest: 1)";

TEST(ParseAttributeTest, AcceptsEachKindOfValue) {
  using Ints = std::vector<int64_t>;
  using Bools = std::vector<bool>;
  using Doubles = std::vector<double>;
  struct Case {
    const char* attribute;
    const char* text;
    AttributeValue value;
  };
  const Case kCases[] = {
      {kMode, "b", Text{"b"}},
      {kText, "ij,jk->ik", Text{"ij,jk->ik"}},
      {kDtype, "bf16", kBf16},
      {kDtype, "bfloat16", kBf16},
      {kDtype, "INT64", kInt64},
      {kAnyDtype, "bool", kBool},
      {kScalar, "2", int64_t{2}},
      {kScalar, "-0.5", -0.5},
      {kScalar, "true", true},
      {kScalar, "2:int32", Scalar{kInt32, int64_t{2}}},
      {kScalar, "2.5:FLOAT", Scalar{kFloat, 2.5}},
      {kScalar, "true:BOOL", Scalar{kBool, int64_t{1}}},
      {kInts, "[1,-2]", Ints{1, -2}},
      {kInts, " [ 0 , 1 ] ", Ints{0, 1}},
      {kInts, "1", Ints{1}},
      {kInts, "[]", Ints{}},
      {kBools, "[true,false,1]", Bools{true, false, true}},
      {kDoubles, "0.5,1e3", Doubles{0.5, 1000}},
      {kDoubles, "[2]", Doubles{2}},
      {kBounded, "1", 1.0},
  };
  for (const Case& c : kCases) {
    const auto parsed = ParseAttribute(Attribute(c.attribute), c.text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_TRUE(parsed->value == c.value) << c.attribute << ": " << c.text;
  }
}

TEST(ParseAttributeTest, RefusesWhatIsOfAnotherKind) {
  struct Case {
    const char* attribute;
    const char* text;
    const char* complaint;
  };
  const Case kCases[] = {
      {kMode, "c", "\"c\" is not a, b"},
      {kDtype, "FLOAT", "\"FLOAT\" is not BF16, INT64"},
      {kAnyDtype, "int4", "is not FLOAT, FLOAT16, BF16, DOUBLE, INT8"},
      {kScalar, "x", "is not a number, true or false, or NUMBER:DTYPE from -2 up to 9"},
      {kScalar, "2:int4", "NUMBER:DTYPE"},
      {kScalar, "2:", "NUMBER:DTYPE"},
      {kScalar, "10", "up to 9"},
      {kScalar, "nan", "up to 9"},
      {kInts, "[1,2]", "is not a list of integers such as [1,2] from -2 up to 1"},
      {kInts, "[1", "a list of integers"},
      {kInts, "1]", "a list of integers"},
      {kInts, "[1,]", "a list of integers"},
      {kInts, "[0.5]", "a list of integers"},
      {kInts, "", "a list of integers"},
      {kBools, "[maybe]", "is not a list such as [true,false]"},
      {kDoubles, "[-1]", "is not a list of numbers such as [1,0.5] from 0"},
      {kBounded, "1.5", "is not a number from 0 up to 1"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = ParseAttribute(Attribute(c.attribute), c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(status.message(), HasSubstr(c.complaint)) << c.text;
  }
}

TEST(DescribeDefaultTest, WritesEachKindAsItIsRead) {
  EXPECT_EQ(DescribeDefault(Attribute(kText)), "ij");
  EXPECT_EQ(DescribeDefault(Attribute(kDtype)), "BF16");
  EXPECT_EQ(DescribeDefault(Attribute(kScalar)), "1.5:FLOAT");
  EXPECT_EQ(DescribeDefault(Attribute(kInts)), "[0,-1]");
  EXPECT_EQ(DescribeDefault(Attribute(kBools)), "[true,false]");
  EXPECT_EQ(DescribeDefault(Attribute(kDoubles)), "[1,0.5]");
  for (const char* text : {kText, kDtype, kScalar, kInts, kBools, kDoubles}) {
    const auto attribute = Attribute(text);
    EXPECT_TRUE(ParseAttribute(attribute, DescribeDefault(attribute)).ok()) << text;
  }
}

TEST(ParseAttributeTest, AcceptsWhatItsTypeAllows) {
  struct Case {
    const char* attribute;
    const char* text;
    AttributeValue value;
  };
  const Case kCases[] = {
      {kReduction, "mean", "mean"}, {kReduction, "1", int64_t{1}}, {kReduction, "9", int64_t{9}},
      {kDim, "-3", int64_t{-3}},    {kFlag, "true", true},         {kFlag, "false", false},
      {kFlag, "0", false},          {kBeta, "1e-3", 1e-3},         {kBeta, "2", 2.0},
  };
  for (const Case& c : kCases) {
    const auto parsed = ParseAttribute(Attribute(c.attribute), c.text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->value, c.value) << c.text;
    EXPECT_EQ(parsed->name, Attribute(c.attribute).name());
  }
}

TEST(ParseAttributeTest, RefusesTheRestAndListsTheChoices) {
  struct Case {
    const char* attribute;
    const char* text;
    const char* complaint;
  };
  const Case kCases[] = {
      {kReduction, "avg", "\"avg\" is not none (0), mean (1) or an integer up to 9"},
      {kReduction, "10", "up to 9"},
      {kReduction, "1.0", "an integer"},
      {kReduction, "", "an integer"},
      {kDim, "99999999999999999999", "an integer"},
      {kFlag, "maybe", "true or false"},
      {kBeta, "x", "a number"},
      {R"(name: "new")", "1", "of a type that this client knows"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = ParseAttribute(Attribute(c.attribute), c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(status.message(), HasSubstr(c.complaint));
  }
}

TEST(DescribeDefaultTest, NamesTheNumberIfItHasAName) {
  EXPECT_EQ(DescribeDefault(Attribute(kReduction)), "mean (1)");
  EXPECT_EQ(DescribeDefault(Attribute(kDim)), "-1");
  EXPECT_EQ(DescribeDefault(Attribute(kFlag)), "true");
  EXPECT_EQ(DescribeDefault(Attribute(kBeta)), "0.5");
  EXPECT_EQ(DescribeDefault(Attribute("")), "none");
}

TEST(ClosestNameTest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"KlDivBackward", "KlDivTargetBackward", "L1LossBackward"};
  struct Case {
    const char* wanted;
    const char* closest;
  };
  const Case kCases[] = {{"KlDivBackwrd", "KlDivBackward"},
                         {"kldivbackward", "KlDivBackward"},
                         {"KlDivTargetBackwards", "KlDivTargetBackward"},
                         {"LossBackward", "L1LossBackward"},
                         {"MatMul", ""},
                         {"", ""}};
  for (const Case& c : kCases) EXPECT_EQ(ClosestName(c.wanted, names), c.closest) << c.wanted;
  EXPECT_EQ(ClosestName("x", {}), "");
  EXPECT_EQ(UnknownName("operator", "KlDivBackwrd", names),
            "unknown operator \"KlDivBackwrd\"; did you mean KlDivBackward?");
  EXPECT_THAT(UnknownName("operator", "MatMul", names), HasSubstr("known: KlDivBackward, KlDiv"));
}

}  // namespace
}  // namespace opserve::cli
