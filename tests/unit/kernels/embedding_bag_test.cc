// Bags of rows, whatever indices and offsets are, against their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "tests/unit/kernels/test_tensor.h"

namespace opserve::kernels {
namespace {

struct Case {
  std::string name;
  Shape weight;
  std::vector<double> indices;
  std::vector<double> offsets;
  int64_t mode = 0;
  bool has_end = false;
  int64_t padding = -1;
  bool has_factors = false;
  Dtype dtype = Dtype::kFloat;
};

// Runs the tasks from the last to the first.
class BackwardRunner final : public TaskRunner {
 public:
  void Run(int64_t num_tasks, void (*task)(void* context, int64_t index), void* context) override {
    for (int64_t i = num_tasks; i-- > 0;) task(context, i);
  }
};

class Bags {
 public:
  explicit Bags(const Case& one) : case_(one), random_(7) {
    num_indices_ = static_cast<int64_t>(one.indices.size());
    num_bags_ = static_cast<int64_t>(one.offsets.size()) - (one.has_end ? 1 : 0);
    Add(&inputs_, one.dtype, one.weight, true);
    Add(&inputs_, Dtype::kInt32, {num_indices_}, true);
    Add(&inputs_, Dtype::kInt64, {static_cast<int64_t>(one.offsets.size())}, true);
    if (one.has_factors) Add(&inputs_, one.dtype, {num_indices_}, true);
    // Small whole numbers, so that all sums are exact.
    std::uniform_int_distribution<int> numbers(-3, 3);
    inputs_[0].Fill([&] { return numbers(random_); });
    for (int64_t i = 0; i < num_indices_; ++i) inputs_[1].Set(i, one.indices[i]);
    for (size_t i = 0; i < one.offsets.size(); ++i) inputs_[2].Set(i, one.offsets[i]);
    if (one.has_factors) inputs_[3].Fill([&] { return numbers(random_); });
    const Shape rows = {num_bags_, one.weight[1]};
    Add(&outputs_, one.dtype, rows, false);
    Add(&outputs_, Dtype::kInt64, {num_indices_}, false);
    Add(&outputs_, Dtype::kInt64, {num_bags_}, false);
    Add(&outputs_, Dtype::kInt64, one.mode < 2 ? Shape{num_bags_} : rows, false);
  }

  void Run(TaskRunner& runner) {
    Call call;
    call.inputs.resize(4);
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      call.inputs[i] = {inputs_[i].layout()};
      inputs.push_back(inputs_[i].address());
    }
    for (const TestTensor& tensor : outputs_) {
      call.outputs.push_back({tensor.layout()});
      outputs.push_back(tensor.address());
    }
    call.attributes = {false, case_.mode, false, case_.has_end, case_.padding};
    const auto kernel = MakeKernel("aclnnEmbeddingBag", call);
    ASSERT_NE(kernel, nullptr);
    std::vector<uint64_t> workspace(kernel->workspace_bytes() / 8);
    kernel->Run(inputs.data(), outputs.data(), workspace.data(), runner);
  }

  void Check() const {
    for (const TestTensor& tensor : outputs_) EXPECT_TRUE(tensor.GuardsAreUntouched());
    int64_t end = 0;
    for (int64_t bag = 0; bag < num_bags_; ++bag) {
      const int64_t begin = bag == 0 ? 0 : end;
      end = EndOf(bag, begin);
      for (int64_t i = begin; i < end; ++i) EXPECT_EQ(outputs_[1].Get(i), bag) << i;
      CheckBag(bag, begin, end);
    }
    for (int64_t i = end; i < num_indices_; ++i) EXPECT_EQ(outputs_[1].Get(i), num_bags_) << i;
  }

 private:
  // An offset that falls, or lies outside, counts as the nearest that does not.
  int64_t EndOf(int64_t bag, int64_t begin) const {
    if (bag + 1 == static_cast<int64_t>(case_.offsets.size())) return num_indices_;
    return std::clamp(static_cast<int64_t>(case_.offsets[bag + 1]), begin, num_indices_);
  }

  void CheckBag(int64_t bag, int64_t begin, int64_t end) const {
    const int64_t columns = case_.weight[1];
    std::vector<int64_t> rows;
    for (int64_t i = begin; i < end; ++i) {
      const auto index = static_cast<int64_t>(case_.indices[i]);
      if (index >= 0 && index < case_.weight[0] && index != case_.padding) rows.push_back(i);
    }
    const auto size = static_cast<double>(rows.size());
    EXPECT_EQ(outputs_[2].Get(bag), size);
    if (case_.mode < 2) {
      EXPECT_EQ(outputs_[3].Get(bag), size);
    }
    for (int64_t column = 0; column < columns; ++column) {
      double result = 0;
      double at = 0;
      for (const int64_t i : rows) {
        const auto index = static_cast<int64_t>(case_.indices[i]);
        const double element = inputs_[0].Get(index * columns + column);
        if (case_.mode < 2) {
          result += element * (case_.has_factors ? inputs_[3].Get(i) : 1);
        } else if (i == rows.front() || element > result) {
          result = element;
          at = static_cast<double>(index);
        }
      }
      if (case_.mode == 1 && size > 0) result /= size;
      const int64_t place = bag * columns + column;
      EXPECT_NEAR(outputs_[0].Get(place), result, case_.mode == 1 ? 1e-2 : 0) << place;
      if (case_.mode == 2) {
        EXPECT_EQ(outputs_[3].Get(place), at) << place;
      }
    }
  }

  void Add(std::vector<TestTensor>* tensors, Dtype dtype, const Shape& shape, bool may_repeat) {
    // Repeated elements would take several of the values that are set.
    may_repeat = may_repeat && tensors->empty();
    tensors->emplace_back(RandomLayout(dtype, shape, may_repeat, random_), 3);
  }

  const Case case_;
  std::mt19937 random_;
  int64_t num_indices_ = 0;
  int64_t num_bags_ = 0;
  std::vector<TestTensor> inputs_;
  std::vector<TestTensor> outputs_;
};

std::vector<double> Numbers(int64_t count, int limit, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> numbers(0, limit - 1);
  std::vector<double> result(count);
  for (double& one : result) one = numbers(random);
  return result;
}

std::vector<double> Steps(int64_t end, int64_t step) {
  std::vector<double> result;
  for (int64_t i = 0; i < end; i += step) result.push_back(static_cast<double>(i));
  return result;
}

std::vector<Case> Cases() {
  const std::vector<double> indices = {4, 0, 2, 2, 1, 3, 0};
  const std::vector<double> wild = {4, -1, 99, 2, -2147483648.0, 2147483647, 0};
  std::vector<Case> cases;
  for (const int64_t mode : {0, 1, 2}) {
    for (const Dtype dtype : {Dtype::kFloat, Dtype::kFloat16, Dtype::kBfloat16}) {
      cases.push_back({"bags", {5, 3}, indices, {0, 3, 3, 5}, mode, false, -1, false, dtype});
    }
    cases.push_back({"padding", {5, 3}, indices, {0, 2, 4}, mode, false, 2});
    cases.push_back({"end", {5, 3}, indices, {0, 3, 7}, mode, true});
    cases.push_back({"end before the last index", {5, 3}, indices, {0, 3, 5}, mode, true});
    cases.push_back({"an end alone", {5, 3}, indices, {4}, mode, true});
    cases.push_back({"indices outside", {5, 3}, wild, {0, 3, 5}, mode});
    cases.push_back({"offsets that fall", {5, 3}, indices, {0, 6, 2, 7, 1}, mode});
    cases.push_back({"offsets that fall to an end", {5, 3}, indices, {0, 6, 2}, mode, true});
    cases.push_back({"offsets outside", {5, 3}, indices, {3, -5e18, 5e18, 2}, mode});
    cases.push_back({"no indices", {5, 3}, {}, {0, 0}, mode});
    cases.push_back({"no rows", {0, 3}, indices, {0, 3}, mode});
    cases.push_back({"no columns", {5, 0}, indices, {0, 3}, mode});
    cases.push_back({"many columns", {9, 700}, Numbers(600, 9, 1), {0, 7, 590}, mode});
    cases.push_back({"columns in parts", {3, 70000}, Numbers(40, 3, 2), {0, 1}, mode});
    cases.push_back({"bags in parts", {50, 40}, Numbers(9000, 50, 3), Steps(9000, 3), mode});
  }
  cases.push_back({"factors", {5, 3}, indices, {0, 3, 3, 5}, 0, false, 2, true});
  cases.push_back({"factors", {5, 3}, indices, {0, 3}, 0, false, -1, true, Dtype::kBfloat16});
  return cases;
}

TEST(EmbeddingBagTest, BagsAreThoseOfTheDefinition) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name + " in mode " + std::to_string(one.mode));
    Bags bags(one);
    SerialTaskRunner forward;
    bags.Run(forward);
    bags.Check();
    Bags others(one);
    BackwardRunner backward;
    others.Run(backward);
    others.Check();
  }
}

}  // namespace
}  // namespace opserve::kernels
