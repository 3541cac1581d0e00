#include "client/cli/bench/bench_arguments.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

v1::OperatorDescriptor Descriptor() {
  v1::OperatorDescriptor descriptor;
  descriptor.set_name("Op");
  for (const char* name : {"grad", "self"}) {
    v1::InputDescriptor* input = descriptor.add_inputs();
    input->set_name(name);
    for (const DataType dtype : {kFloat, kFloat16, kBf16}) input->add_dtypes(dtype);
  }
  descriptor.mutable_inputs(1)->add_dtypes(kDouble);
  v1::AttributeDescriptor* dim = descriptor.add_attributes();
  dim->set_name("dim");
  dim->set_type(v1::AttributeDescriptor::TYPE_INT64);
  return descriptor;
}

const Tensor& InputOf(const Invocation& invocation, size_t i) {
  return std::get<Tensor>(invocation.inputs[i].value);
}

template <typename T>
std::vector<float> ValuesOf(const Tensor& tensor) {
  std::vector<float> values;
  const auto* elements = reinterpret_cast<const T*>(tensor.storage().data());
  for (size_t i = 0; i < tensor.storage().size() / sizeof(T); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      values.push_back(static_cast<float>(elements[i]));
    } else {
      values.push_back(elements[i].ToFloat());
    }
  }
  return values;
}

TEST(BenchInvocationTest, GivesAllInputsOneShapeAndType) {
  const auto invocation = BuildBenchInvocation(Descriptor(), {});

  ASSERT_TRUE(invocation.ok()) << invocation.status();
  EXPECT_EQ(invocation->operator_name, "Op");
  ASSERT_EQ(invocation->inputs.size(), 2u);
  EXPECT_EQ(invocation->inputs[1].name, "self");
  EXPECT_THAT(InputOf(*invocation, 0).shape(), ElementsAre(256, 1024));
  EXPECT_EQ(InputOf(*invocation, 0).dtype(), kFloat);
  EXPECT_EQ(InputOf(*invocation, 0).storage().size(), 4u * 256 * 1024);
  EXPECT_THAT(invocation->attributes, IsEmpty());
}

TEST(BenchInvocationTest, NamedInputsHaveTheirOwn) {
  BenchArguments arguments;
  arguments.shapes = {"3,4", "grad=scalar"};
  arguments.dtypes = {"self=double", "BF16"};
  arguments.attributes = {"dim=-1"};

  const auto invocation = BuildBenchInvocation(Descriptor(), arguments);

  ASSERT_TRUE(invocation.ok()) << invocation.status();
  EXPECT_THAT(InputOf(*invocation, 0).shape(), IsEmpty());
  EXPECT_EQ(InputOf(*invocation, 0).dtype(), kBf16);
  EXPECT_EQ(InputOf(*invocation, 0).storage().size(), 2u);
  EXPECT_THAT(InputOf(*invocation, 1).shape(), ElementsAre(3, 4));
  EXPECT_EQ(InputOf(*invocation, 1).dtype(), kDouble);
  EXPECT_EQ(std::get<int64_t>(invocation->attributes[0].value), -1);
}

TEST(BenchInvocationTest, ValuesAreHarmlessAndTheSameEachTime) {
  struct Case {
    const char* dtype;
    std::vector<float> (*values)(const Tensor&);
  };
  for (const Case& c : {Case{"FLOAT", &ValuesOf<float>}, Case{"FLOAT16", &ValuesOf<Float16>},
                        Case{"BF16", &ValuesOf<Bf16>}, Case{"self=DOUBLE", &ValuesOf<double>}}) {
    BenchArguments arguments;
    arguments.shapes = {"100"};
    arguments.dtypes = {c.dtype};
    const auto one = BuildBenchInvocation(Descriptor(), arguments);
    const auto other = BuildBenchInvocation(Descriptor(), arguments);
    ASSERT_TRUE(one.ok() && other.ok()) << one.status();

    const std::vector<float> values = c.values(InputOf(*one, 1));

    EXPECT_THAT(values, Each(AllOf(Ge(0.25f), Le(1.0f)))) << c.dtype;
    EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.9f);
    EXPECT_EQ(values, c.values(InputOf(*other, 1)));
  }
}

TEST(BenchInvocationTest, ListsHaveTwoTensorsAndOptionalInputsAreLeftOut) {
  v1::OperatorDescriptor descriptor = Descriptor();
  v1::InputDescriptor* list = descriptor.add_inputs();
  list->set_name("tensors");
  list->set_list(true);
  list->add_dtypes(kInt64);
  v1::InputDescriptor* optional = descriptor.add_inputs();
  optional->set_name("weight");
  optional->set_optional(true);
  optional->add_dtypes(kBool);
  BenchArguments arguments;
  arguments.shapes = {"5"};
  EXPECT_EQ(BuildBenchInvocation(descriptor, arguments)->inputs.size(), 3u);
  arguments.shapes = {"5", "weight=2"};

  const auto invocation = BuildBenchInvocation(descriptor, arguments);

  ASSERT_TRUE(invocation.ok()) << invocation.status();
  const std::vector<BenchTensor> tensors = TensorsOf(invocation->inputs);
  std::vector<std::string> names;
  for (const BenchTensor& tensor : tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("grad", "self", "tensors.0", "tensors.1", "weight"));
  EXPECT_EQ(tensors[2].tensor.dtype(), kInt64);
  EXPECT_EQ(tensors[2].tensor.storage().size(), 40u);
  EXPECT_EQ(tensors[4].tensor.dtype(), kBool);
  EXPECT_EQ(tensors[4].tensor.storage().size(), 2u);
}

TEST(BenchInvocationTest, MistakesAreExplained) {
  struct Case {
    std::vector<std::string> shapes;
    std::vector<std::string> dtypes;
    std::vector<std::string> attributes;
    const char* error;
  };
  const Case kCases[] = {
      {{"0"}, {}, {}, "--shape \"0\": expected up to 8 extents, each at least 1"},
      {{"3,-4"}, {}, {}, "--shape \"3,-4\""},
      {{"3x4"}, {}, {}, "such as 256,1024, or scalar"},
      {{"3,"}, {}, {}, "--shape \"3,\""},
      {{"1,1,1,1,1,1,1,1,1"}, {}, {}, "up to 8 extents"},
      {{"9223372036854775807,9223372036854775807"}, {}, {}, "do not fit a message"},
      {{"16384,16385"}, {}, {}, "inputs of more than 2 GiB do not fit a message"},
      {{"3", "4"}, {}, {}, "--shape is given twice"},
      {{"self=3", "self=4"}, {}, {}, "--shape of input \"self\" is given twice"},
      {{"slef=3"}, {}, {}, "--shape \"slef=3\": unknown input \"slef\"; did you mean self?"},
      {{"self="}, {}, {}, "--shape \"self=\": expected [NAME=]VALUE"},
      {{}, {"INT4"}, {}, "--dtype \"INT4\" is not FLOAT, FLOAT16, BF16, DOUBLE, INT8"},
      {{}, {"DOUBLE"}, {}, "input \"grad\" takes FLOAT, FLOAT16, BF16, not DOUBLE"},
      {{}, {}, {"dmi=1"}, "unknown attribute \"dmi\"; known: dim"},
  };
  for (const Case& c : kCases) {
    BenchArguments arguments;
    arguments.shapes = c.shapes;
    arguments.dtypes = c.dtypes;
    arguments.attributes = c.attributes;
    const absl::Status status = BuildBenchInvocation(Descriptor(), arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.error;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
}

TEST(BenchFlagsTest, AreRead) {
  BenchArguments arguments;
  EXPECT_THAT(ConcurrencyOf(arguments), ElementsAre(1));
  EXPECT_EQ(ReadRate("0.5", &arguments.rate), "");
  EXPECT_EQ(arguments.rate, 0.5);
  EXPECT_THAT(ConcurrencyOf(arguments), ElementsAre(64));
  EXPECT_EQ(ReadConcurrency("1,4,1024", &arguments.concurrency), "");
  EXPECT_THAT(ConcurrencyOf(arguments), ElementsAre(1, 4, 1024));
  EXPECT_EQ(ReadTransport("session", &arguments.transport), "");
  EXPECT_EQ(arguments.transport, BenchTransport::kSession);
  EXPECT_EQ(ReadTransport("shm", &arguments.transport), "");
  EXPECT_EQ(arguments.transport, BenchTransport::kSharedMemory);
  EXPECT_EQ(ReadWarmup("0", &arguments.warmup), "");
  EXPECT_EQ(arguments.warmup, absl::ZeroDuration());
  EXPECT_EQ(ReadDuration("2m", &arguments.duration), "");
  EXPECT_EQ(arguments.duration, absl::Minutes(2));
}

TEST(BenchFlagsTest, MistakesAreExplained) {
  BenchArguments arguments;
  for (const char* text : {"0", "1,0", "-1", "1025", "1,,2", "two", ""}) {
    EXPECT_THAT(ReadConcurrency(text, &arguments.concurrency),
                HasSubstr("is not a number from 1 to 1024, or several such as 1,4,16"))
        << text;
  }
  for (const char* text : {"0", "-5", "nan", "inf", "1000001", "fast"}) {
    EXPECT_THAT(ReadRate(text, &arguments.rate),
                HasSubstr("is not a number of requests per second above 0 and up to 1000000"))
        << text;
  }
  EXPECT_EQ(ReadTransport("tcp", &arguments.transport), "\"tcp\" is not unary, session or shm");
  EXPECT_THAT(ReadDuration("0s", &arguments.duration), HasSubstr("is not a time"));
  for (const char* text : {"1us", "25h", "inf"}) {
    EXPECT_THAT(ReadDuration(text, &arguments.duration), HasSubstr("is not between 1ms and 24h"));
    EXPECT_THAT(ReadWarmup(text, &arguments.warmup), HasSubstr("is not between 1ms and 24h"));
  }
}

}  // namespace
}  // namespace opserve::cli
