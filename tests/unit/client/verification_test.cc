#include "client/cli/arrays/verification.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve::cli {
namespace {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
Result ResultOf(std::vector<T> elements) {
  struct Owner {
    std::vector<T> elements;
    absl::string_view bytes;
  };
  auto owner = std::make_shared<Owner>();
  owner->elements = std::move(elements);
  owner->bytes = {reinterpret_cast<const char*>(owner->elements.data()),
                  owner->elements.size() * sizeof(T)};
  return Result({.output = "out"}, kDataTypeOf<T>, {static_cast<int64_t>(owner->elements.size())},
                {&owner->bytes, 1}, owner);
}

TEST(CompareTest, ErrorsAreMeasuredAgainstTheLargestValue) {
  struct Case {
    std::vector<float> actual;
    std::vector<double> expected;
    int64_t num_wrong;
  };
  const Case kCases[] = {
      {{1, 2, 3}, {1, 2, 3}, 0},
      {{1.00001f, 2, 3}, {1, 2, 3}, 0},  // small next to 3
      {{1.0001f, 2, 3}, {1, 2, 3}, 1},   //
      {{0, 2, 3}, {1e-6, 2, 3}, 0},      // cancellation
      {{-0.0f}, {0}, 0},                 //
      {{NAN, 1}, {kNan, 1}, 0},          //
      {{NAN, 1}, {1, 1}, 1},             //
      {{1, 1}, {kNan, 1}, 1},            //
      {{INFINITY, 1}, {kInf, 1}, 0},     //
      {{-INFINITY, 1}, {kInf, 1}, 1},    //
      {{3e38f, 1}, {kInf, 1}, 1},        //
      {{1, INFINITY}, {1, 1}, 1},        //
      {{1.5e-45f}, {2.1e-45}, 0},        // next to each other
      {{0}, {3e-45}, 1},                 //
      {{}, {}, 0},
  };
  for (const Case& c : kCases) {
    const auto comparison = Compare(ResultOf(c.actual), ResultOf(c.expected));
    ASSERT_TRUE(comparison.ok());
    EXPECT_EQ(comparison->num_wrong, c.num_wrong) << testing::PrintToString(c.actual);
    EXPECT_EQ(comparison->num_elements, static_cast<int64_t>(c.actual.size()));
  }
}

TEST(CompareTest, ShapesMustBeTheSame) {
  const auto comparison = Compare(ResultOf<float>({1, 2}), ResultOf<float>({1}));
  EXPECT_EQ(comparison.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(comparison.status().message()),
              HasSubstr("out has the shape [2], that of the reference is [1]"));
}

v1::OperatorDescriptor OperatorOf(std::vector<DataType> dtypes) {
  v1::OperatorDescriptor descriptor;
  descriptor.set_name("Scale");
  for (const DataType dtype : dtypes) {
    if (descriptor.inputs().empty()) descriptor.add_inputs()->set_name("x");
    descriptor.mutable_inputs(0)->add_dtypes(dtype);
    if (descriptor.outputs().empty()) descriptor.add_outputs()->set_name("out");
    descriptor.mutable_outputs(0)->add_dtypes(dtype);
  }
  return descriptor;
}

TEST(WidenedTest, TensorsGetTheWidestDtypeOfTheOperator) {
  const std::vector<Bf16> elements = {Bf16::FromFloat(1), Bf16::FromFloat(2.5), Bf16::FromFloat(-3),
                                      Bf16::FromFloat(4)};
  const Invocation invocation{
      .operator_name = "Scale",
      .inputs = {{"x", Tensor::Of<Bf16>({2, 2}, elements).WithStrides({1, 2})}},
      .attributes = {{"mode", "mean"}},
      .output_dtypes = {{.output = "out", .dtype = kBf16}}};
  for (const DataType widest : {kDouble, kFloat}) {
    const auto widened = Widened(OperatorOf({kBf16, widest}), invocation);
    ASSERT_TRUE(widened.ok()) << widened.status();
    const auto& tensor = std::get<Tensor>(widened->inputs[0].value);
    EXPECT_EQ(tensor.dtype(), widest);
    EXPECT_EQ(tensor.storage().size(), 4 * DataTypeBytes(widest));
    EXPECT_EQ(widened->output_dtypes[0].dtype, widest);
    EXPECT_EQ(widened->attributes.size(), 1u);
    // Transposed.
    if (widest == kFloat) {
      EXPECT_EQ(reinterpret_cast<const float*>(tensor.storage().data())[1], -3);
    }
  }
}

TEST(CompareTest, IntegersMustBeEqual) {
  const auto equal =
      Compare(ResultOf<int64_t>({INT64_MAX, -1}), ResultOf<int64_t>({INT64_MAX, -1}));
  EXPECT_EQ(equal->num_wrong, 0);
  EXPECT_EQ(equal->tolerance, 0);
  const auto other =
      Compare(ResultOf<int64_t>({INT64_MAX, 3}), ResultOf<int64_t>({INT64_MAX - 1, 3}));
  EXPECT_EQ(other->num_wrong, 1);
  EXPECT_EQ(other->largest_error, 1);
  EXPECT_EQ(Compare(ResultOf<int8_t>({-128}), ResultOf<int8_t>({127}))->largest_error, 255);
  EXPECT_EQ(Compare(ResultOf<int32_t>({2}), ResultOf<double>({2}))->num_wrong, 0);
}

TEST(WidenedTest, IntegersStayAndMaskedOutputsAreThoseAskedFor) {
  v1::OperatorDescriptor descriptor = OperatorOf({kFloat, kDouble});
  v1::InputDescriptor* index = descriptor.add_inputs();
  index->set_name("index");
  index->add_dtypes(kInt64);
  v1::InputDescriptor* list = descriptor.add_inputs();
  list->set_name("list");
  list->set_list(true);
  for (const DataType dtype : {kFloat, kDouble}) list->add_dtypes(dtype);
  for (const char* name : {"grad_weight", "grad_bias", "count"}) {
    v1::OutputDescriptor* output = descriptor.add_outputs();
    output->set_name(name);
    output->set_masked(true);
    const bool is_count = name == std::string("count");
    for (const DataType dtype : {is_count ? kInt32 : kFloat, is_count ? kInt32 : kDouble}) {
      output->add_dtypes(dtype);
    }
  }
  Invocation invocation{.operator_name = "Scale"};
  invocation.inputs = {{"x", Tensor::Owning<float>({1}, {2})},
                       {"index", Tensor::Owning<int64_t>({1}, {7})},
                       {"list", std::vector<ListedTensor>{Tensor::Owning<float>({1}, {3})}}};

  const auto all = Widened(descriptor, invocation);
  invocation.masked_outputs = {"grad_bias", "count"};
  const auto some = Widened(descriptor, invocation);

  ASSERT_TRUE(all.ok() && some.ok()) << all.status() << some.status();
  EXPECT_EQ(std::get<Tensor>(some->inputs[0].value).dtype(), kDouble);
  EXPECT_EQ(std::get<Tensor>(some->inputs[1].value).dtype(), kInt64);
  const auto& tensors = std::get<std::vector<ListedTensor>>(some->inputs[2].value);
  EXPECT_EQ(std::get<Tensor>(tensors[0]).dtype(), kDouble);
  const auto names = [](const Invocation& widened) {
    std::vector<std::string> outputs;
    for (const auto& output : widened.output_dtypes) outputs.push_back(output.output);
    for (const auto& output : widened.masked_outputs) outputs.push_back(output);
    return outputs;
  };
  EXPECT_THAT(names(*all), testing::ElementsAre("out", "grad_weight", "grad_bias", "count"));
  EXPECT_THAT(names(*some), testing::ElementsAre("out", "grad_bias", "count"));
}

TEST(WidenedTest, WhatIsInTheDaemonsMemoryCannotBeWidened) {
  const Invocation invocation{.operator_name = "Scale", .inputs = {{"x", ResidentTensor{}}}};
  EXPECT_THAT(std::string(Widened(OperatorOf({kFloat}), invocation).status().message()),
              HasSubstr("input \"x\" is in the daemon's memory"));
}

}  // namespace
}  // namespace opserve::cli
