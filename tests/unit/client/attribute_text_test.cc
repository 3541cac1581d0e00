#include "client/cli/attribute_text.h"

#include "client/cli/closest_name.h"
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
