#include "kernels/cpu/arg_reduce.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/cpu/call.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// Results that are looked for at a time where the axis strides: they share cache lines.
constexpr int64_t kMostResults = 64;

// Elements between two looks whether to go on; one result cannot be cut into tasks.
constexpr int64_t kElementsPerLook = kTaskElements;

struct ArgPlan {
  Layout input;
  Layout values;  // with the input's axes, as the indices
  Layout indices;
  bool has_values = false;
  int64_t extent = 1;  // of the axis
  int64_t stride = 0;
  int64_t num_results = 1;
};

// Elements from a tensor's first one to the one at `index` of the results.
int64_t OffsetAt(const Layout& layout, const Layout& results, int64_t index) {
  int64_t offset = 0;
  for (int d = layout.rank - 1; d >= 0; --d) {
    offset += index % results.shape[d] * layout.strides[d];
    index /= results.shape[d];
  }
  return offset;
}

template <typename Element, bool kGreatest>
class ArgReduceKernel final : public Kernel {
  using T = decltype(Widened(Element{}));

 public:
  explicit ArgReduceKernel(const ArgPlan& plan) : plan_(plan) {
    results_at_once_ = plan.stride <= 1 ? 1 : kMostResults;
    results_per_task_ = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(plan.extent, 1));
  }

  size_t workspace_bytes() const override { return 0; }
  int64_t num_elements() const override { return plan_.num_results * plan_.extent; }

  void Run(const void* const* inputs, void* const* outputs, void* /*workspace*/,
           TaskRunner& runner) const override {
    const auto* source = static_cast<const Element*>(inputs[0]);
    RunTasks(runner, CeilDivide(plan_.num_results, results_per_task_), [&](int64_t task) {
      const int64_t end = std::min((task + 1) * results_per_task_, plan_.num_results);
      for (int64_t i = task * results_per_task_; i < end; i += results_at_once_) {
        if (plan_.stride == 1) {
          FindOne(source, i, outputs, runner);
        } else {
          Find(source, i, std::min(results_at_once_, end - i), outputs, runner);
        }
      }
    });
  }

 private:
  static bool IsBetter(T value, T best) {
    if (best != best) return false;
    return value != value || (kGreatest ? value > best : value < best);
  }

  // Of one result whose elements follow one another: block by block first the best value, then
  // where it is.
  void FindOne(const Element* source, int64_t result, void* const* outputs,
               const TaskRunner& runner) const {
    constexpr int64_t kBlock = 1024;
    T buffer[kBlock];
    const Element* const elements = source + OffsetAt(plan_.input, plan_.indices, result);
    T best = Widened(elements[0]);
    int64_t found = 0;
    for (int64_t begin = 0; begin < plan_.extent; begin += kBlock) {
      if (begin % kElementsPerLook == 0 && begin > 0 && runner.MustStop()) return;
      const int64_t count = std::min(kBlock, plan_.extent - begin);
      const T* values = buffer;
      if constexpr (std::is_same_v<T, Element>) {
        values = elements + begin;
      } else {
        for (int64_t i = 0; i < count; ++i) buffer[i] = Widened(elements[begin + i]);
      }
      const T best_here = BestOf(values, count);
      if (!IsBetter(best_here, best)) continue;
      best = best_here;
      found = begin;
      while (values[found - begin] != best && !(best != best && IsNan(values[found - begin]))) {
        ++found;
      }
      best = values[found - begin];  // zeros of both signs are equal
    }
    Put(best, found, result, outputs);
  }

  static bool IsNan(T value) { return value != value; }

  // NaN if there is one.
  [[gnu::flatten]] static T BestOf(const T* values, int64_t count) {
    return CombineTerms<T, 1>(
        count, values[0], [&](auto at) { return std::array{at(values)}; },
        [](auto a, auto b) { return kGreatest ? Greater(a, b) : Lesser(a, b); })[0];
  }

  void Find(const Element* source, int64_t first, int64_t count, void* const* outputs,
            const TaskRunner& runner) const {
    int64_t offsets[kMostResults];
    T best[kMostResults];
    int64_t found[kMostResults];
    for (int64_t i = 0; i < count; ++i) {
      offsets[i] = OffsetAt(plan_.input, plan_.indices, first + i);
      best[i] = Widened(source[offsets[i]]);
      found[i] = 0;
    }
    for (int64_t k = 1; k < plan_.extent; ++k) {
      if (k % kElementsPerLook == 0 && runner.MustStop()) return;
      const Element* row = source + k * plan_.stride;
      for (int64_t i = 0; i < count; ++i) {
        const T value = Widened(row[offsets[i]]);
        if (IsBetter(value, best[i])) {
          best[i] = value;
          found[i] = k;
        }
      }
    }
    for (int64_t i = 0; i < count; ++i) Put(best[i], found[i], first + i, outputs);
  }

  void Put(T best, int64_t found, int64_t result, void* const* outputs) const {
    Store(found, plan_.indices, result, outputs[plan_.has_values ? 1 : 0]);
    if (plan_.has_values) Store(best, plan_.values, result, outputs[0]);
  }

  template <typename Value>
  void Store(Value value, const Layout& layout, int64_t index, void* address) const {
    const int64_t offset = OffsetAt(layout, plan_.indices, index);
    VisitDtype(layout.dtype, [&](auto element) {
      static_cast<decltype(element)*>(address)[offset] = Converted<decltype(element)>(value);
    });
  }

  const ArgPlan plan_;
  int64_t results_at_once_;
  int64_t results_per_task_;
};

}  // namespace

std::unique_ptr<Kernel> MakeArgReduceKernel(const Call& call, uint32_t axes, bool is_greatest) {
  ArgPlan plan;
  plan.input = Input(call, 0);
  plan.has_values = HasOutput(call, 1);
  const size_t indices = plan.has_values ? 1 : 0;
  plan.indices = WithReducedAxes(Output(call, indices), plan.input.rank, axes);
  plan.values = WithReducedAxes(Output(call, 0), plan.input.rank, axes);
  plan.num_results = NumElements(plan.indices);
  for (int d = 0; d < plan.input.rank; ++d) {
    if ((axes >> d & 1) == 0) continue;
    plan.extent = plan.input.shape[d];
    plan.stride = plan.input.strides[d];
  }
  return VisitDtype(plan.input.dtype, [&](auto element) -> std::unique_ptr<Kernel> {
    using Element = decltype(element);
    if (is_greatest) return std::make_unique<ArgReduceKernel<Element, true>>(plan);
    return std::make_unique<ArgReduceKernel<Element, false>>(plan);
  });
}

}  // namespace opserve::kernels
