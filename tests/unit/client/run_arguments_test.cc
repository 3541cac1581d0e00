#include "client/cli/arrays/run_arguments.h"

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::OperatorDescriptor Descriptor() {
  v1::OperatorDescriptor descriptor;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(
        name: "Mix"
        inputs { name: "x" }
        inputs { name: "weight" optional: true }
        inputs { name: "tensors" list: true }
        attributes { name: "dims" type: TYPE_INT64S required: true }
        outputs { name: "out" }
        outputs { name: "grad_weight" masked: true }
        outputs { name: "grad_bias" masked: true }
        outputs { name: "parts" list: true })",
      &descriptor));
  return descriptor;
}

// What is enough for Mix.
RunArguments Enough() {
  RunArguments arguments;
  arguments.inputs = {"x=random:2", "tensors.0=random:3"};
  arguments.attributes = {"dims=[1]"};
  return arguments;
}

const Tensor& TensorOf(const NamedInput& input) { return std::get<Tensor>(input.value); }

TEST(RunInputsTest, OptionalOnesMayBeLeftOut) {
  RunArguments arguments = Enough();
  const auto without = BuildInvocation(Descriptor(), arguments);
  arguments.inputs.push_back("weight=random:4");
  const auto with = BuildInvocation(Descriptor(), arguments);

  ASSERT_TRUE(without.ok() && with.ok()) << without.status() << with.status();
  EXPECT_EQ(without->inputs.size(), 2u);
  ASSERT_EQ(with->inputs.size(), 3u);
  EXPECT_EQ(with->inputs[2].name, "weight");
}

TEST(RunInputsTest, TensorsOfAListAreGatheredInTheirOrder) {
  RunArguments arguments = Enough();
  arguments.inputs = {"tensors.2=random:5", "tensors.0=random:3", "x=random:2",
                      "tensors.1=tensor:5f1c"};

  const auto invocation = BuildInvocation(Descriptor(), arguments);

  ASSERT_TRUE(invocation.ok()) << invocation.status();
  ASSERT_EQ(invocation->inputs.size(), 2u);
  EXPECT_EQ(invocation->inputs[0].name, "tensors");
  const auto& list = std::get<std::vector<ListedTensor>>(invocation->inputs[0].value);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_THAT(std::get<Tensor>(list[0]).shape(), ElementsAre(3));
  EXPECT_EQ(std::get<ResidentTensor>(list[1]).handle, "\x5f\x1c");
  EXPECT_THAT(std::get<Tensor>(list[2]).shape(), ElementsAre(5));
}

TEST(RunInputsTest, RandomTensorsOfAListDiffer) {
  RunArguments arguments = Enough();
  arguments.inputs = {"x=random:8", "tensors.0=random:8", "tensors.1=random:8"};

  const auto invocation = BuildInvocation(Descriptor(), arguments);

  ASSERT_TRUE(invocation.ok()) << invocation.status();
  const auto bytes = [](const Tensor& tensor) {
    return std::string(reinterpret_cast<const char*>(tensor.storage().data()),
                       tensor.storage().size());
  };
  const auto& list = std::get<std::vector<ListedTensor>>(invocation->inputs[1].value);
  const std::set<std::string> all = {bytes(TensorOf(invocation->inputs[0])),
                                     bytes(std::get<Tensor>(list[0])),
                                     bytes(std::get<Tensor>(list[1]))};
  EXPECT_EQ(all.size(), 3u);
}

// The elements of the input "x" if it is given as `text`.
template <typename T>
std::set<T> ElementsOf(const std::string& text) {
  RunArguments arguments = Enough();
  arguments.inputs[0] = "x=" + text;
  const auto invocation = BuildInvocation(Descriptor(), arguments);
  EXPECT_TRUE(invocation.ok()) << invocation.status();
  if (!invocation.ok()) return {};
  const Tensor& tensor = TensorOf(invocation->inputs[0]);
  EXPECT_EQ(tensor.dtype(), kDataTypeOf<T>) << text;
  const auto* first = reinterpret_cast<const T*>(tensor.storage().data());
  return std::set<T>(first, first + tensor.storage().size() / sizeof(T));
}

TEST(RunInputsTest, RandomIntegersAreThoseOfTheRange) {
  EXPECT_THAT(ElementsOf<int64_t>("random:ints(0,4):10,20"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ElementsOf<int8_t>("random:ints(-2,1):200:INT8"), ElementsAre(-2, -1, 0));
  EXPECT_THAT(ElementsOf<float>("random:ints(5,7):50:float"), ElementsAre(5, 6));
  EXPECT_THAT(ElementsOf<bool>("random:ints(0,2):50:BOOL"), ElementsAre(false, true));
  EXPECT_THAT(ElementsOf<uint8_t>("random:ints(255,256):scalar:UINT8"), ElementsAre(255));
  EXPECT_THAT(ElementsOf<int32_t>("random:50:INT32"), ElementsAre(0, 1));
  EXPECT_THAT(ElementsOf<bool>("random:50:bool"), ElementsAre(false, true));
}

TEST(RunArgumentsTest, MistakesAreExplained) {
  struct Case {
    std::vector<std::string> inputs;
    const char* complaint;
  };
  const std::string x = "x=random:2";
  const std::string first = "tensors.0=random:2";
  const Case kCases[] = {
      {{first}, "\"x\" is missing; Mix takes x, [weight], tensors.0, tensors.1, ..."},
      {{x}, "input \"tensors\" is missing"},
      {{x, "tensors.1=random:2"}, "input \"tensors\" has a tensor 1, but not all before it"},
      {{x, first, "tensors.4294967295=random:2"}, "has a tensor 4294967295, but not all"},
      {{x, first, first}, "input \"tensors.0\" is given twice"},
      {{x, "tensors=random:2"}, "unknown input \"tensors\"; did you mean tensors.0?"},
      {{x, "tensors.01=random:2"}, "unknown input \"tensors.01\""},
      {{"x.0=random:2", first}, "unknown input \"x.0\""},
      {{"x=random:ints(0,300):2:UINT8", first}, "UINT8 does not hold all of these integers"},
      {{"x=random:ints(0,3):2:BOOL", first}, "BOOL does not hold all of these integers"},
      {{"x=random:ints(3,3):2", first}, "expected (LOW,HIGH)"},
      {{"x=random:ints(3):2", first}, "expected (LOW,HIGH)"},
      {{"x=random:ints(0,3)", first}, "expected up to 8 extents"},
  };
  for (const Case& c : kCases) {
    RunArguments arguments = Enough();
    arguments.inputs = c.inputs;
    const absl::Status status = BuildInvocation(Descriptor(), arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.complaint;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.complaint));
  }
  RunArguments arguments = Enough();
  arguments.attributes.clear();
  EXPECT_THAT(std::string(BuildInvocation(Descriptor(), arguments).status().message()),
              HasSubstr("attribute \"dims\" is missing; it is a list of integers"));
}

TEST(RunOutputsTest, MaskedOnesAreAskedFor) {
  RunArguments arguments = Enough();
  EXPECT_THAT(BuildInvocation(Descriptor(), arguments)->masked_outputs, IsEmpty());
  arguments.wanted_outputs = {"grad_bias"};
  EXPECT_THAT(BuildInvocation(Descriptor(), arguments)->masked_outputs, ElementsAre("grad_bias"));
  arguments.wanted_outputs = {};
  arguments.output_dtypes = {"grad_weight=BF16"};
  EXPECT_THAT(BuildInvocation(Descriptor(), arguments)->masked_outputs,
              ElementsAre("grad_weight", "grad_bias"));
  arguments.output_dtypes = {"BF16"};
  EXPECT_THAT(BuildInvocation(Descriptor(), arguments)->masked_outputs, IsEmpty());
  arguments.wanted_outputs = {"out"};
  EXPECT_THAT(std::string(BuildInvocation(Descriptor(), arguments).status().message()),
              HasSubstr("--want \"out\" is not grad_weight, grad_bias"));
}

TEST(RunOutputsTest, TensorsOfAListHaveFilesOfTheirOwn) {
  RunArguments arguments = Enough();
  arguments.outputs = {"first.npy", "parts.1=one.npy", "grad_bias=bias.npy"};

  const auto files = BuildOutputFiles(Descriptor(), arguments);

  ASSERT_TRUE(files.ok()) << files.status();
  std::vector<std::string> outputs;
  for (const OutputFile& file : *files) outputs.push_back(file.output + ":" + file.path);
  EXPECT_THAT(outputs, ElementsAre("out:first.npy", "parts.1:one.npy", "grad_bias:bias.npy"));
}

}  // namespace
}  // namespace opserve::cli
