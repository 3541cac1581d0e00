// The Ascend C kernel on emulated cores against the formula, for random shapes, dtypes, devices and
// values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/ascendc/emulation/half.h"
#include "kernels/ascendc/emulation/launch.h"
#include "kernels/ascendc/op_host/plan.h"
#include "tests/seed.h"

namespace opserve::ascendc {
namespace {

constexpr int32_t kDtypes[] = {0, 1, 27};

// A tensor's elements as bytes, and as the doubles they are.
struct Elements {
  std::vector<uint8_t> bytes;
  std::vector<double> values;
};

template <typename T>
void AppendNarrowed(float value, Elements* elements) {
  T narrow;
  emulation::Narrow(value, &narrow);
  const auto* bytes = reinterpret_cast<const uint8_t*>(&narrow);
  elements->bytes.insert(elements->bytes.end(), bytes, bytes + sizeof narrow);
  elements->values.push_back(emulation::Widen(narrow));
}

void Append(int32_t dtype, float value, Elements* elements) {
  if (dtype == 1) return AppendNarrowed<half>(value, elements);
  if (dtype == 27) return AppendNarrowed<bfloat16_t>(value, elements);
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  elements->bytes.insert(elements->bytes.end(), bytes, bytes + sizeof value);
  elements->values.push_back(value);
}

template <typename T>
T At(const std::vector<uint8_t>& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

double ValueAt(int32_t dtype, const std::vector<uint8_t>& bytes, int64_t index) {
  if (dtype == 1) return emulation::Widen(At<half>(bytes, index));
  if (dtype == 27) return emulation::Widen(At<bfloat16_t>(bytes, index));
  return At<float>(bytes, index);
}

// One call: `shape` and the other members of `problem`, dtypes, inputs.
struct RandomCall {
  Problem problem;
  int32_t dtype[kNumInputs];
  Elements inputs[kNumInputs];
  Shape common;
};

RandomCall MakeCall(std::mt19937& random) {
  const auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  RandomCall call;
  const int rank = below(static_cast<int>(kMaxRank) + 1);
  const int64_t extents[] = {1, 2, 3, 5, 17, 64, 200, 3000};
  int64_t budget = 20000;
  for (int dim = 0; dim < rank; ++dim) {
    const int64_t extent = extents[below(8)];
    call.common.push_back(extent <= budget ? extent : 1);
    budget /= call.common.back();
  }
  for (int32_t input = 0; input < kNumInputs; ++input) {
    Shape shape = call.common;
    if (input != kSelf) {  // self has all of it: else the two might not span it
      for (int64_t& extent : shape) extent = below(3) == 0 ? 1 : extent;
      while (!shape.empty() && shape.front() == 1 && below(2) == 0) shape.erase(shape.begin());
      if (below(4) == 0) shape.clear();
    }
    call.problem.shape[input] = shape;
    call.dtype[input] = kDtypes[below(3)];
    call.problem.element_bytes[input] = call.dtype[input] == 0 ? 4 : 2;
    std::uniform_real_distribution<float> uniform(0.01f, 2.0f);
    for (int64_t i = NumElements(shape); i > 0; --i) {
      Append(call.dtype[input], below(8) == 0 ? 0.0f : uniform(random), &call.inputs[input]);
    }
  }
  call.problem.reduction = below(5);
  call.problem.log_target = below(2) == 0;
  return call;
}

// Which element of a tensor of `shape` stands at `index` of the shape it is broadcast to.
int64_t BroadcastIndex(const Shape& shape, const Shape& common, int64_t index) {
  int64_t result = 0;
  int64_t stride = 1;
  for (size_t from_end = 1; from_end <= common.size(); ++from_end) {
    const int64_t extent = common[common.size() - from_end];
    const int64_t own = from_end <= shape.size() ? shape[shape.size() - from_end] : 1;
    if (own != 1) result += index % extent * stride;
    stride *= own;
    index /= extent;
  }
  return result;
}

// The result in double, and for each element the sum of its terms' parts without their signs.
void Reference(const RandomCall& call, std::vector<double>* expected,
               std::vector<double>* magnitude) {
  const double divisor = call.problem.reduction == 1 ? static_cast<double>(NumElements(call.common))
                         : call.problem.reduction == 3 && !call.common.empty()
                             ? static_cast<double>(call.common[0])
                             : 1.0;
  expected->assign(call.inputs[kTarget].values.size(), 0.0);
  magnitude->assign(expected->size(), 0.0);
  for (int64_t i = 0; i < NumElements(call.common); ++i) {
    double value[kNumInputs];
    for (int32_t input = 0; input < kNumInputs; ++input) {
      value[input] =
          call.inputs[input].values[BroadcastIndex(call.problem.shape[input], call.common, i)];
    }
    const double factor = value[kGradOutput] / divisor;
    const int64_t out = BroadcastIndex(call.problem.shape[kTarget], call.common, i);
    const double target = value[kTarget];
    if (call.problem.log_target) {
      (*expected)[out] += factor * std::exp(target) * (target - value[kSelf] + 1);
      (*magnitude)[out] +=
          std::abs(factor) * std::exp(target) * (std::abs(target) + std::abs(value[kSelf]) + 1);
    } else if (target != 0) {
      (*expected)[out] += factor * (std::log(target) - value[kSelf] + 1);
      (*magnitude)[out] +=
          std::abs(factor) * (std::abs(std::log(target)) + std::abs(value[kSelf]) + 1);
    }
  }
}

std::vector<uint8_t> RunKernel(const RandomCall& call, const Device& device, bool last_core_first) {
  Plan plan;
  std::string error;
  EXPECT_TRUE(MakePlan(call.problem, device, &plan, &error)) << error;
  const auto range = [](const std::vector<uint8_t>& bytes, bool is_writable) {
    const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
    return emulation::GlobalRange{begin, begin + bytes.size(), is_writable};
  };
  std::vector<uint8_t> output(call.inputs[kTarget].bytes.size(), 0xA5);
  emulation::Launch launch = {.num_cores = plan.num_cores,
                              .unified_buffer_bytes = device.unified_buffer_bytes,
                              .last_core_first = last_core_first,
                              .global = {range(output, true)}};
  uint8_t* addresses[kNumInputs];
  for (int32_t input = 0; input < kNumInputs; ++input) {
    launch.global.push_back(range(call.inputs[input].bytes, false));
    addresses[input] = const_cast<uint8_t*>(call.inputs[input].bytes.data());
  }
  const auto entry =
      emulation::EntryFor(call.dtype[kGradOutput], call.dtype[kSelf], call.dtype[kTarget]);
  emulation::Run(launch, [&] {
    entry(addresses[kGradOutput], addresses[kSelf], addresses[kTarget], output.data(), nullptr,
          reinterpret_cast<uint8_t*>(&plan.tiling));
  });
  return output;
}

TEST(AscendcKernelTest, ComputesTheFormulaForRandomCalls) {
  const uint32_t first = TestSeed(0);
  for (uint32_t seed = first; seed < first + 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const RandomCall call = MakeCall(random);
    const size_t unified_buffer_bytes = (20 + random() % 173) * 1024;

    const std::vector<uint8_t> output = RunKernel(call, {1, unified_buffer_bytes}, false);

    std::vector<double> expected;
    std::vector<double> magnitude;
    Reference(call, &expected, &magnitude);
    const int32_t dtype = call.dtype[kTarget];
    const double rounding = dtype == 0 ? 1e-7 : dtype == 1 ? 0x1p-11 : 0x1p-8;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double tolerance =
          rounding * std::abs(expected[i]) + 4e-6 * magnitude[i] + (dtype == 1 ? 0x1p-24 : 0);
      ASSERT_NEAR(ValueAt(dtype, output, static_cast<int64_t>(i)), expected[i], tolerance)
          << "element " << i;
    }
    for (const int64_t num_cores : {2, 7, 40}) {
      ASSERT_EQ(RunKernel(call, {num_cores, unified_buffer_bytes}, num_cores == 7), output)
          << num_cores << " cores";
    }
  }
}

TEST(AscendcKernelTest, ASumOfNothingIsZero) {
  RandomCall call;
  call.problem.shape[kSelf] = {0, 3};
  call.problem.shape[kTarget] = {1, 3};
  std::fill_n(call.dtype, kNumInputs, 0);
  Append(0, 1.0f, &call.inputs[kGradOutput]);
  for (int i = 0; i < 3; ++i) Append(0, 0.5f, &call.inputs[kTarget]);

  EXPECT_EQ(RunKernel(call, {}, false), std::vector<uint8_t>(12, 0));
}

}  // namespace
}  // namespace opserve::ascendc
