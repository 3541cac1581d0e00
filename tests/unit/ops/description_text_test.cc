#include "ops/catalog/description_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::catalog {
namespace {

// Fourteen lines: an operator with an input, an attribute and an output.
constexpr char kText[] = R"text(operator {
  name: "Scale"
  function: "aclnnScale"
  summary: "Scales."
  argument { name: "self" dtypes: "FLOAT" }
  argument { name: "factor" kind: DOUBLE default: "2" minimum: "0" }
  argument { name: "out" role: OUTPUT dtype: "like(self)" shape: "like(self)" }
  check: "rank(self, 0, 2)"
  golden {
    input: "self = FLOAT [[1, 2]]"
    attribute: "factor = 3"
    output: "out = FLOAT [[3, 6]]"
  }
}
)text";

struct MistakeCase {
  const char* name;
  const char* from;
  const char* to;
  const char* error;  // behind "pack:"
};

const MistakeCase kMistakes[] = {
    {"Grammar", "summary: \"Scales.\"", "summary: Scales.", "4: Expected string, got: Scales"},
    {"UnknownField", "summary:", "sumary:",
     "4: Message type \"opserve.description.Operator\" has no field named \"sumary\"."},
    {"ControlCharacter", "Scales.", "Sc\\033[2Jales.",
     "4: summary: has a control character or is no UTF-8"},
    {"BrokenUtf8", "Scales.", "Scales\\377.", "4: summary: has a control character or is no UTF-8"},
    {"OperatorName", "\"Scale\"", "\"Sc ale\"",
     "2: operator: name: \"Sc ale\" must be letters, digits and _, at most 64 of them"},
    {"FunctionName", "\"aclnnScale\"", "\"aclnn-Scale\"",
     "3: Scale: function: \"aclnn-Scale\" is no name of a function"},
    {"ArgumentName", "\"factor\" kind", "\"Factor\" kind",
     "6: Scale: argument: name: \"Factor\" must be small letters, digits and _, at most 64 of "
     "them"},
    {"SameArgumentName", "\"factor\" kind", "\"self\" kind",
     "6: Scale: self: two arguments have this name"},
    {"Kind", "kind: DOUBLE default", "kind: DUOBLE\ndefault",
     "6: Unknown enumeration value of \"DUOBLE\" for field \"kind\"."},
    {"KindAsNumber", "kind: DOUBLE", "kind: 77", "6: Scale: factor: kind: \"\" is none"},
    {"RoleOfAttribute", "kind: DOUBLE", "kind: DOUBLE role: OUTPUT",
     "6: Scale: factor: role OUTPUT does not go with its kind"},
    {"OptionalNumber", "kind: DOUBLE", "kind: DOUBLE optional: true",
     "6: Scale: factor: optional: no null pointer stands for an argument of its kind"},
    {"Dtype", "dtypes: \"FLOAT\"", "dtypes: \"FLOTA\"",
     "5: Scale: self: dtypes: \"FLOTA\" is no dtype or set of them"},
    {"ContiguousOutput", "role: OUTPUT", "role: OUTPUT contiguous: true",
     "7: Scale: out: contiguous: belongs to tensors of the role INPUT; others are contiguous"},
    {"ContiguousNumber", "kind: DOUBLE", "kind: DOUBLE contiguous: true",
     "6: Scale: factor: contiguous: belongs to tensors of the role INPUT; others are contiguous"},
    {"ContiguousValue", "dtypes: \"FLOAT\"", "dtypes: \"FLOAT\" contiguous: maybe",
     "5: Invalid value for boolean field \"contiguous\". Value: \"maybe\"."},
    {"DefaultOutOfBounds", "default: \"2\"", "default: \"-2\"",
     "6: Scale: factor: default: -2 is outside [0, inf]"},
    {"Bound", "minimum: \"0\"", "minimum: \"nan\"",
     "6: Scale: factor: minimum: \"nan\" is no number"},
    {"IntegerBound", "kind: DOUBLE default: \"2\" minimum: \"0\"",
     "kind: INT64 minimum: \"-1e300\"", "6: Scale: factor: minimum: -1e+300 is beyond 2^53"},
    {"Mask", "role: OUTPUT", "role: OUTPUT mask: -1", "7: Scale: out: mask: -1 is outside [0, 63]"},
    {"MaskWithoutArgument", "role: OUTPUT", "role: OUTPUT mask: 0",
     "1: Scale: out: mask: no argument has the role MASK"},
    {"UnknownRule", "shape: \"like(self)\"", "shape: \"lik(self)\"",
     "7: Scale: out: rule \"lik(self)\": there is no such rule as lik here"},
    {"NumberAsShape", "shape: \"like(self)\"", "shape: \"2\"",
     "7: Scale: out: rule \"2\": \"2\" alone is no shape"},
    {"NameAsCheck", "check: \"rank(self, 0, 2)\"", "check: \"self\"",
     "8: Scale: check: rule \"self\": \"self\" alone is no check"},
    {"GoldenShape", "[[1, 2]]", "[1, [2, 3]]", "10: Scale: golden: self: rows differ in depth"},
    {"GoldenRows", "[[1, 2]]", "[[1, 2], [3]]", "10: Scale: golden: self: rows differ in length"},
    {"GoldenRank", "[[1, 2]]", "[[[[[[[[[1]]]]]]]]]",
     "10: Scale: golden: self: has more than 8 axes"},
    {"GoldenEmptyShape", "[[1, 2]]", "empty[a]",
     "10: Scale: golden: self: \"[a]\" are no elements"},
    {"GoldenEmptyExtent", "[[1, 2]]", "empty[0, -1]",
     "10: Scale: golden: self: \"empty[0, -1]\" has an extent that is none"},
    {"GoldenNotEmpty", "[[1, 2]]", "empty[2, 2]",
     "10: Scale: golden: self: \"empty[2, 2]\" is not empty"},
    {"GoldenDtype", "self = FLOAT", "self = INT64",
     "10: Scale: golden: self: dtype INT64; it may be FLOAT"},
    {"GoldenAttribute", "factor = 3", "factor = -3",
     "11: Scale: golden: factor: -3 is outside [0, inf]"},
    {"GoldenInputMissing", "input: \"self = FLOAT [[1, 2]]\"", "",
     "9: Scale: golden: input self is missing"},
    {"GoldenRefusedByRules", "rank(self, 0, 2)", "rank(self, 3)",
     "9: Scale: golden: the rules refuse it: self: rank 2 of shape [1,2]; it must be 3"},
    {"GoldenContradictsRules", "out = FLOAT [[3, 6]]", "out = FLOAT [3, 6]",
     "9: Scale: golden: the rules give FLOAT [1,2] as out, it has FLOAT [2]"},
    {"GoldenTolerance", "attribute: \"factor = 3\"", "tolerance: inf",
     "11: Scale: golden: tolerance: \"Infinity\" must be from 0 to below 1"},
    {"TooManyAxes", "shape: \"like(self)\"", "shape: \"vector(1,1,1,1,1,1,1,1,1)\"",
     "9: Scale: golden: the rules refuse it: out: shape [1,1,1,1,1,1,1,1,1] has more than 8 axes"},
};

TEST(DescriptionTextTest, NamesLineAndProblemOfEachMistake) {
  for (const MistakeCase& c : kMistakes) {
    SCOPED_TRACE(c.name);
    const std::string text = absl::StrReplaceAll(kText, {{c.from, c.to}});
    ASSERT_NE(text, kText);
    const auto descriptions = ReadDescriptions(text, "pack");
    ASSERT_FALSE(descriptions.ok());
    EXPECT_EQ(descriptions.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(descriptions.status().message(), absl::StrCat("pack:", c.error));
  }
}

TEST(DescriptionTextTest, ReadsOperatorsWithTheirLines) {
  const std::string second =
      absl::StrReplaceAll(kText, {{"\"Scale\"", "\"Other\""}, {"aclnnScale", "aclnnOther"}});
  const auto descriptions =
      ReadDescriptions(absl::StrCat("library: \"libscale.so\"\n", kText, second), "pack");
  ASSERT_TRUE(descriptions.ok()) << descriptions.status();
  EXPECT_EQ(descriptions->library, "libscale.so");
  EXPECT_EQ(descriptions->library_line, 1);
  ASSERT_EQ(descriptions->operators.size(), 2);
  EXPECT_EQ(descriptions->operators[0].descriptor.name, "Scale");
  EXPECT_EQ(descriptions->operators[0].line, 2);
  EXPECT_EQ(descriptions->operators[1].descriptor.name, "Other");
  EXPECT_EQ(descriptions->operators[1].line, 16);
}

TEST(DescriptionTextTest, ReadsThatAnInputIsContiguous) {
  const std::string text =
      absl::StrReplaceAll(kText, {{"dtypes: \"FLOAT\"", "dtypes: \"FLOAT\" contiguous: true"}});
  const auto usual = ReadDescriptions(kText, "pack");
  const auto contiguous = ReadDescriptions(text, "pack");
  ASSERT_TRUE(contiguous.ok()) << contiguous.status();
  EXPECT_FALSE(usual->operators[0].descriptor.inputs[0].is_contiguous);
  EXPECT_TRUE(contiguous->operators[0].descriptor.inputs[0].is_contiguous);
}

TEST(DescriptionTextTest, RefusesAnOperatorThatIsDescribedTwice) {
  const auto twice = ReadDescriptions(absl::StrCat(kText, kText), "pack");
  EXPECT_EQ(twice.status().message(), "pack:15: Scale: is described twice");
  const auto function = ReadDescriptions(
      absl::StrCat(kText, absl::StrReplaceAll(kText, {{"\"Scale\"", "\"Other\""}})), "pack");
  EXPECT_EQ(function.status().message(),
            "pack:15: Other: function: aclnnScale is that of another operator");
}

// A golden case that leaves the list out does not reach the rule; calls do.
TEST(DescriptionTextTest, RefusesAListOfANegativeNumberOfTensors) {
  const std::string text = absl::StrReplaceAll(
      kText, {{"kind: DOUBLE default: \"2\" minimum: \"0\"", "kind: INT64 default: \"-1\""},
              {"role: OUTPUT", "role: OUTPUT kind: TENSOR_LIST count: \"factor\""},
              {"attribute: \"factor = 3\"", ""}});
  EXPECT_EQ(ReadDescriptions(text, "pack").status().message(),
            "pack:9: Scale: golden: the rules refuse it: out: -1 tensors; there may be from 0 to "
            "65536");
}

}  // namespace
}  // namespace opserve::catalog
