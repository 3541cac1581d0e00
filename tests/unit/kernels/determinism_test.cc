// Equal inputs give equal bits, whoever runs the tasks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/seed.h"
#include "tests/unit/kernels/random_call.h"
#include "tests/unit/kernels/reference.h"

namespace opserve::kernels {
namespace {

// Runs the tasks on several threads, each its share of a random order.
class ShuffledTaskRunner final : public TaskRunner {
 public:
  ShuffledTaskRunner(int num_threads, uint32_t seed) : num_threads_(num_threads), random_(seed) {}

  void Run(int64_t num_tasks, void (*task)(void*, int64_t), void* context) override {
    std::vector<int64_t> order(num_tasks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    most_tasks_ = std::max(most_tasks_, num_tasks);
    std::vector<std::jthread> threads;
    for (int first = 0; first < num_threads_; ++first) {
      threads.emplace_back([&, first] {
        for (int64_t i = first; i < num_tasks; i += num_threads_) task(context, order[i]);
      });
    }
  }

  int64_t most_tasks() const { return most_tasks_; }

 private:
  const int num_threads_;
  std::mt19937 random_;
  int64_t most_tasks_ = 0;
};

struct DeterminismCase {
  const char* name;
  Operator op;
  std::vector<Shape> shapes;  // inputs, output
  bool is_first_transposed = false;
};

const DeterminismCase kCases[] = {
    {"Elementwise", Operator::kKlDiv, {{300, 1000}, {300, 1000}, {300, 1000}, {300, 1000}}},
    {"SumToScalar", Operator::kKlDiv, {{300, 1000}, {}, {300, 1000}, {}}},
    {"SumOfRows", Operator::kKlDivLog, {{3, 100'000}, {3, 1}, {3, 100'000}, {3, 1}}},
    {"SumOfColumns", Operator::kKlDivTarget, {{1000, 300}, {1000, 300}, {300}, {300}}},
    {"SumOfFewColumns", Operator::kKlDivTargetLog, {{100'000, 3}, {100'000, 3}, {3}, {3}}},
    {"SumOfManyColumns", Operator::kKlDiv, {{130, 2000}, {2000}, {130, 2000}, {2000}}},
    {"Broadcast", Operator::kL1Loss, {{500, 1}, {1, 600}, {500, 600}, {500, 600}}},
    {"Softmax", Operator::kLogSoftmax, {{1000, 300}, {1000, 300}, {1000, 300}}},
    {"SoftmaxOfTransposed", Operator::kLogSoftmax, {{1000, 300}, {1000, 300}, {1000, 300}}, true},
};

TEST(DeterminismTest, ThreadsAndOrderOfTasksDoNotMatter) {
  const uint32_t first = TestSeed(1);
  for (const DeterminismCase& c : kCases) {
    std::mt19937 random(first);
    std::vector<TestTensor> inputs;
    for (size_t i = 0; i + 1 < c.shapes.size(); ++i) {
      Layout layout = ContiguousLayout(Dtype::kFloat, c.shapes[i]);
      if (i == 0 && c.is_first_transposed) layout.strides = {1, c.shapes[0][0]};
      inputs.emplace_back(layout);
    }
    TestCall call{c.op, std::move(inputs),
                  TestTensor(ContiguousLayout(Dtype::kFloat, c.shapes.back()))};
    call.reduction = kMean;
    call.dim = 1;
    FillInputs(call, random);
    SerialTaskRunner serial;
    RunCall(call, serial);
    const std::vector<uint8_t> bits = call.out.Bytes();

    for (int num_threads : {1, 2, 3, 4}) {
      for (uint32_t seed = first; seed < first + 5; ++seed) {
        ShuffledTaskRunner runner(num_threads, seed);
        RunCall(call, runner);

        EXPECT_EQ(call.out.Bytes(), bits)
            << c.name << " threads " << num_threads << " seed " << seed;
        EXPECT_GT(runner.most_tasks(), 1) << c.name;
      }
    }
  }
}

// Runs an operator of `num_inputs` tensors that all have these values.
std::vector<float> Compute(const char* function, int num_inputs, const std::vector<float>& values) {
  const Layout layout = ContiguousLayout(Dtype::kFloat, {static_cast<int64_t>(values.size())});
  const std::vector<Tensors> tensors(num_inputs, Tensors{layout});
  const std::vector<const void*> inputs(num_inputs, values.data());
  std::vector<float> results(values.size());
  void* const outputs[] = {results.data()};
  SerialTaskRunner runner;
  MakeKernel(function, {.inputs = tensors, .outputs = {{layout}}, .attributes = {}})
      ->Run(inputs.data(), outputs, nullptr, runner);
  return results;
}

// Elements beside each other are computed as vectors, the last ones of a tile one by one.
TEST(DeterminismTest, PlacesOfElementsDoNotMatter) {
  struct {
    const char* function;
    int num_inputs;
  } const cases[] = {{"aclnnGelu", 1},    {"aclnnGeluBackward", 2}, {"aclnnSilu", 1},
                     {"aclnnSigmoid", 1}, {"aclnnSiluBackward", 2}, {"aclnnTanh", 1},
                     {"aclnnErf", 1},     {"aclnnErfc", 1},         {"aclnnLogSigmoid", 1},
                     {"aclnnExpm1", 1},   {"aclnnLog1p", 1},        {"aclnnLog2", 1},
                     {"aclnnSin", 1},     {"aclnnTan", 1},          {"aclnnAsin", 1},
                     {"aclnnAtan2", 2},   {"aclnnAtanh", 1},        {"aclnnFmodTensor", 2}};
  std::mt19937 random(TestSeed(1));
  std::uniform_real_distribution<float> uniform(-20, 20);
  std::vector<float> values(1024 + 61);
  for (float& value : values) value = uniform(random);
  for (size_t i = 0; i < values.size(); i += 3) values[i] /= 20;
  values[100] = 0x1p30f;  // beyond the fast form of a sine
  for (const auto& c : cases) {
    const std::vector<float> together = Compute(c.function, c.num_inputs, values);
    for (size_t i = 0; i < values.size(); ++i) {
      const float alone = Compute(c.function, c.num_inputs, {values[i]})[0];
      if (std::isnan(alone) && std::isnan(together[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(alone), std::bit_cast<uint32_t>(together[i]))
          << c.function << " of " << values[i] << " at " << i;
    }
  }
}

// Several runs of one kernel may overlap.
TEST(DeterminismTest, OneKernelRunsOnSeveralThreadsAtOnce) {
  const Layout full = ContiguousLayout(Dtype::kFloat, {200'000});
  const Layout scalar = ContiguousLayout(Dtype::kFloat, {});
  const auto kernel = MakeKernel("aclnnKlDivBackward", {.inputs = {{full}, {scalar}, {full}},
                                                        .outputs = {{scalar}},
                                                        .attributes = {kSum, /*log_target=*/true}});
  std::vector<float> target(200'000);
  for (size_t i = 0; i < target.size(); ++i) target[i] = -static_cast<float>(i % 17);
  const void* inputs[] = {target.data(), nullptr, target.data()};

  std::vector<float> results(4);
  {
    std::vector<std::jthread> threads;
    for (float& result : results) {
      threads.emplace_back([&] {
        std::vector<uint8_t> workspace(kernel->workspace_bytes() + 64);
        void* aligned = workspace.data();
        size_t space = workspace.size();
        std::align(64, kernel->workspace_bytes(), aligned, space);
        SerialTaskRunner runner;
        void* const outputs[] = {&result};
        kernel->Run(inputs, outputs, aligned, runner);
      });
    }
  }

  EXPECT_NE(results[0], 0);
  EXPECT_EQ(results, std::vector<float>(4, results[0]));
}

}  // namespace
}  // namespace opserve::kernels
