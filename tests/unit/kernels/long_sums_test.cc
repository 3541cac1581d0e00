// Sums and rows so long that they are cut up, or left unfinished.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/kernels/reference.h"

namespace opserve::kernels {
namespace {

// Lets some tasks run, then none.
class StoppingRunner final : public TaskRunner {
 public:
  void Run(int64_t num_tasks, void (*task)(void* context, int64_t index), void* context) override {
    for (int64_t i = 0; i < num_tasks && !MustStop(); ++i) task(context, i);
  }
  bool MustStop() const override { return ++asked_ > 3; }

 private:
  mutable int asked_ = 0;
};

// A float tensor of 1024 columns that stands for `rows` rows, or of one row.
TestTensor Repeated(int64_t rows) {
  Layout layout = ContiguousLayout(Dtype::kFloat, {rows, 1024});
  if (rows > 1) layout.strides[0] = 0;
  return TestTensor(layout);
}

TEST(LongSumsTest, PartialSumsAreFoldedBeforeTheLastTask) {
  // More chunks of 64 rows than one task adds up.
  constexpr int64_t kRows = 70000;
  std::vector<TestTensor> inputs;
  inputs.push_back(Repeated(kRows));  // grad_output
  inputs.push_back(Repeated(1));      // self
  inputs.push_back(Repeated(kRows));  // target
  for (int64_t i = 0; i < 1024; ++i) {
    inputs[0].Set(i, 1);
    inputs[1].Set(i, 0);
    inputs[2].Set(i, static_cast<double>(i % 7));
  }
  const TestCall call{Operator::kKlDiv, std::move(inputs),
                      TestTensor(ContiguousLayout(Dtype::kFloat, {1, 1024}))};
  EXPECT_EQ(MakeKernel(call)->num_elements(), kRows * 1024);
  SerialTaskRunner runner;
  RunCall(call, runner);
  // All sums on the way are exact in float.
  for (int64_t i = 0; i < 1024; ++i)
    EXPECT_EQ(call.out.Get(i), -double(kRows) * double(i % 7)) << i;
}

TEST(LongSumsTest, ALongRowIsLeftUnfinishedWhenItMustStop) {
  constexpr int64_t kColumns = 1 << 20;
  std::vector<TestTensor> inputs;
  for (int i = 0; i < 2; ++i) {
    inputs.emplace_back(ContiguousLayout(Dtype::kFloat, {1, kColumns}));
    inputs.back().Fill([] { return 0; });
  }
  const TestCall call{Operator::kLogSoftmax, std::move(inputs),
                      TestTensor(ContiguousLayout(Dtype::kFloat, {1, kColumns})), kSum, /*dim=*/1};
  StoppingRunner stops;
  RunCall(call, stops);
  EXPECT_NE(call.out.Get(kColumns - 1), 0) << "NaN, as before: nothing was written";
  SerialTaskRunner runner;
  RunCall(call, runner);
  EXPECT_EQ(call.out.Get(kColumns - 1), 0);
}

}  // namespace
}  // namespace opserve::kernels
