// Cross entropy of logits with classes or distributions, and the margin loss of several classes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/exponentials.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/sequence.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

int64_t ReductionOf(std::string_view text) {
  if (text == "none") return kReduceNone;
  return text == "sum" ? kReduceSum : kReduceMean;
}

// A row of a matrix, as floats.
void LoadRow(const TensorRef& matrix, const void* const* addresses, int64_t row, float* numbers) {
  const Layout& layout = matrix.layout;
  const int last = layout.rank - 1;
  const int64_t offset = last > 0 ? row * layout.strides[0] : 0;
  VisitAnyElement(layout.dtype, [&]<typename Element>(Element) {
    LoadRun(static_cast<const Element*>(addresses[matrix.address]) + offset, layout.strides[last],
            layout.shape[last], numbers);
  });
}
void StoreRow(const float* numbers, const TensorRef& matrix, void* const* addresses, int64_t row) {
  const Layout& layout = matrix.layout;
  const int last = layout.rank - 1;
  const int64_t offset = last > 0 ? row * layout.strides[0] : 0;
  VisitAnyElement(layout.dtype, [&]<typename Element>(Element) {
    StoreRun(numbers, 1, layout.shape[last],
             static_cast<Element*>(addresses[matrix.address]) + offset, layout.strides[last]);
  });
}

// Classes of samples, and what they weigh.
struct Targets {
  TensorRef target;
  TensorRef weight;
  int64_t count = 0;
  int64_t num_classes = 0;
  int64_t ignored = 0;

  // -1 if the sample counts for nothing.
  int64_t ClassOf(const void* const* inputs, int64_t sample) const {
    const int64_t at = LoadNumber<int64_t>(target.layout.dtype, inputs[target.address],
                                           sample * StrideOf(target.layout, 0));
    return at != ignored && at >= 0 && at < num_classes ? at : -1;
  }
  double WeightOf(const void* const* inputs, int64_t at) const {
    if (!weight.is_given()) return 1;
    return LoadNumber<double>(weight.layout.dtype, inputs[weight.address],
                              at * StrideOf(weight.layout, 0));
  }
};

Targets TargetsOf(const TensorRef& target, const TensorRef& weight, const Layout& scores,
                  int64_t ignored) {
  return {target, weight, scores.shape[0], scores.shape[1], ignored};
}

// Adds up `sum(begin, end)` of blocks of samples in the order of the blocks.
template <typename Sum>
double SumOfBlocks(int64_t count, int64_t block, double* sums, TaskRunner& runner, Sum sum) {
  const int64_t num_blocks = CeilDivide(count, block);
  RunTasks(runner, num_blocks,
           [&](int64_t i) { sums[i] = sum(i * block, std::min((i + 1) * block, count)); });
  double total = 0;
  for (int64_t i = 0; i < num_blocks; ++i) total += sums[i];
  return total;
}

constexpr int64_t kSamples = 4096;

double TotalWeight(const Targets& targets, const void* const* inputs, double* sums,
                   TaskRunner& runner) {
  return SumOfBlocks(targets.count, kSamples, sums, runner, [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = targets.ClassOf(inputs, i);
      if (at >= 0) sum += targets.WeightOf(inputs, at);
    }
    return sum;
  });
}

// The loss with smoothed labels from the log-probabilities. Tensors of this step: these, target and
// weight.
std::unique_ptr<Kernel> MakeSmoothedStep(const Call& call, int64_t reduction, int64_t ignored,
                                         double smoothing) {
  const TensorRef scores = InputRef(call, 0);
  const Targets targets = TargetsOf(InputRef(call, 1), InputRef(call, 2), scores.layout, ignored);
  const TensorRef out = OutputRef(call, 0);
  const int64_t block = std::min(kSamples, PiecesPerTask(targets.num_classes));
  const int64_t num_sums = CeilDivide(std::max<int64_t>(targets.count, 1), block);
  return MakePlannedKernel(
      NumElements(scores.layout), static_cast<size_t>(num_sums) * sizeof(double),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        auto* sums = static_cast<double*>(workspace);
        const auto score = [&](int64_t sample, int64_t at) {
          return LoadNumber<double>(
              scores.layout.dtype, inputs[scores.address],
              sample * scores.layout.strides[0] + at * scores.layout.strides[1]);
        };
        double total =
            SumOfBlocks(targets.count, block, sums, runner, [&](int64_t begin, int64_t end) {
              double sum = 0;
              for (int64_t i = begin; i < end; ++i) {
                const int64_t at = targets.ClassOf(inputs, i);
                double loss = 0;
                if (at >= 0) {
                  double all = 0;
                  for (int64_t c = 0; c < targets.num_classes; ++c) {
                    all -= targets.WeightOf(inputs, c) * score(i, c);
                  }
                  loss = smoothing / static_cast<double>(targets.num_classes) * all -
                         (1 - smoothing) * targets.WeightOf(inputs, at) * score(i, at);
                }
                sum += loss;
                if (reduction == kReduceNone) {
                  StoreNumber(loss, out.layout.dtype, outputs[out.address],
                              i * StrideOf(out.layout, 0));
                }
              }
              return sum;
            });
        if (reduction == kReduceNone) return;
        if (reduction == kReduceMean) total /= TotalWeight(targets, inputs, sums, runner);
        StoreNumber(total, out.layout.dtype, outputs[out.address], 0);
      });
}

// Attributes: reduction, ignore_index, label_smoothing.
std::unique_ptr<Kernel> MakeCrossEntropyLoss(const Call& call) {
  const Layout& logits = Input(call, 0);
  const Layout& scores = Output(call, 1);
  Sequence sequence(call);
  const Call softmax = {{{logits}}, {{scores}}, {int64_t{1}}};
  sequence.Add(MakeKernel("aclnnLogSoftmax", softmax), {sequence.Input(0)}, {sequence.Output(1)});
  const Tensors weight = HasInput(call, 2) ? call.inputs[2] : Tensors{};
  std::vector<Place> places = {sequence.Output(1), sequence.Input(1)};
  if (!weight.empty()) places.push_back(sequence.Input(2));
  const int64_t reduction = ReductionOf(TextAttribute(call, 0));
  const int64_t ignored = IntAttribute(call, 1, -100);
  const double smoothing = RealAttribute(call, 2);
  const Call loss = {{{scores}, call.inputs[1], weight}, {call.outputs[0]}, {reduction, ignored}};
  sequence.Add(smoothing > 0 ? MakeSmoothedStep(loss, reduction, ignored, smoothing)
                             : MakeKernel("aclnnNLLLoss", loss),
               places, {sequence.Output(0)});
  return sequence.Finish();
}

// Attributes: reduction, ignore_index.
std::unique_ptr<Kernel> MakeCrossEntropyLossGrad(const Call& call) {
  const TensorRef grad = InputRef(call, 0);
  const TensorRef scores = InputRef(call, 1);
  const TensorRef out = OutputRef(call, 0);
  const Targets targets =
      TargetsOf(InputRef(call, 2), InputRef(call, 3), scores.layout, IntAttribute(call, 1, -100));
  const int64_t reduction = ReductionOf(TextAttribute(call, 0));
  const int64_t num_sums = CeilDivide(targets.count, kSamples);
  const int64_t per_task = PiecesPerTask(targets.num_classes);
  const int64_t grad_stride = reduction == kReduceNone ? StrideOf(grad.layout, 0) : 0;
  return MakePlannedKernel(
      NumElements(out.layout), static_cast<size_t>(num_sums) * sizeof(double),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        double divisor = 1;
        if (reduction == kReduceMean) {
          divisor = TotalWeight(targets, inputs, static_cast<double*>(workspace), runner);
        }
        RunTasks(runner, CeilDivide(targets.count, per_task), [&](int64_t task) {
          const int64_t end = std::min((task + 1) * per_task, targets.count);
          std::vector<float> row(targets.num_classes);
          for (int64_t i = task * per_task; i < end; ++i) {
            const int64_t at = targets.ClassOf(inputs, i);
            if (at < 0) {
              std::fill(row.begin(), row.end(), 0.0f);
            } else {
              LoadRow(scores, inputs, i, row.data());
              const auto factor = static_cast<float>(
                  LoadNumber<double>(grad.layout.dtype, inputs[grad.address], i * grad_stride) *
                  targets.WeightOf(inputs, at) / divisor);
              const float own = Expm1(row[at]) * factor;
              for (float& number : row) number = Exp(number) * factor;
              row[at] = own;
            }
            StoreRow(row.data(), out, outputs, i);
          }
        });
      });
}

// Inputs: logits and labels. numbers: the greatest logit and 1 / the sum of the exponentials.
// Outputs: the gradient, and of each row the loss.
struct SoftmaxCrossEntropyFormula {
  static constexpr int kPasses = 2;
  static constexpr uint32_t Uses(int pass) { return pass == 0 ? 1 : 3; }

  template <typename C>
  static void Begin(Row<C>& row, const RowParameters& /*parameters*/) {
    row.numbers[0] = -std::numeric_limits<C>::infinity();
  }
  template <typename C>
  [[gnu::flatten]] static void Reduce(int pass, const C* const* in, int64_t count,
                                      const RowParameters& /*parameters*/, Row<C>& row) {
    const C* logits = in[0];
    const C* labels = in[1];
    const C greatest = row.numbers[0];
    if (pass == 0) {
      row.numbers[0] = MaximumOf(count, greatest, [&](auto at) { return at(logits); });
      return;
    }
    const auto sums = SumsOf<C, 3>(count, [&](auto at) {
      const auto below = at(logits) - greatest;
      return std::array{Exp(below), at(labels), at(labels) * below};
    });
    for (size_t k = 0; k < sums.size(); ++k) row.sums[k] += sums[k];
  }
  template <typename C>
  static void EndPass(int pass, int64_t /*columns*/, const RowParameters& /*parameters*/,
                      Row<C>& row) {
    if (pass == 0) return;
    row.numbers[1] = static_cast<C>(1 / row.sums[0]);
    row.outputs[0] = static_cast<C>(std::log(row.sums[0]) * row.sums[1] - row.sums[2]);
  }
  template <typename C>
  static void Compute(const C* const* in, int64_t count, const RowParameters& /*parameters*/,
                      const Row<C>& row, C* const* outputs) {
    const C* logits = in[0];
    const C* labels = in[1];
    const C greatest = row.numbers[0];
    const C factor = row.numbers[1];
    C* __restrict out = outputs[0];
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      out[i] = Exp(logits[i] - greatest) * factor - labels[i];
    }
  }
};

std::unique_ptr<Kernel> MakeSoftmaxCrossEntropy(const Call& call) {
  const TensorRef logits = InputRef(call, 0);
  RowsPlan plan;
  plan.num_rows = logits.layout.shape[0];
  plan.num_columns = logits.layout.shape[1];
  plan.num_elements = std::max(plan.num_rows, plan.num_rows * plan.num_columns);
  plan.inputs = {SplitAt(logits, 1), SplitAt(InputRef(call, 1), 1)};
  plan.outputs = {SplitAt(OutputRef(call, 1), 1)};
  plan.row_outputs = {SplitAt(OutputRef(call, 0), 1)};
  return MakeRowsKernel<SoftmaxCrossEntropyFormula>(std::move(plan));
}

// The sum of base + number where that is above 0.
double SumOfMargins(float base, const std::vector<float>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  double sum = 0;
  for (int64_t begin = 0; begin < count; begin += kTileElements) {
    const float* const some = numbers.data() + begin;
    sum += SumOf<float>(std::min(kTileElements, count - begin), [&](auto at) {
      const auto margin = base + at(some);
      return GreaterOr(margin, decltype(at(some)){});
    });
  }
  return sum;
}

// Attribute: reduction.
std::unique_ptr<Kernel> MakeMultilabelMarginLoss(const Call& call) {
  const TensorRef scores = InputRef(call, 0);
  const TensorRef target = InputRef(call, 1);
  const TensorRef out = OutputRef(call, 0);
  const TensorRef marks = OutputRef(call, 1);
  const int rank = scores.layout.rank;
  const int64_t rows = rank > 1 ? scores.layout.shape[0] : 1;
  const int64_t columns = scores.layout.shape[rank - 1];
  const int64_t reduction = IntAttribute(call, 0, kReduceMean);
  const int64_t block = PiecesPerTask(columns * std::min<int64_t>(columns, 16));
  const int64_t num_sums = CeilDivide(std::max<int64_t>(rows, 1), block);
  return MakePlannedKernel(
      rows * columns, static_cast<size_t>(num_sums) * sizeof(double),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        const int64_t target_row = rank > 1 ? target.layout.strides[0] : 0;
        const int64_t target_step = target.layout.strides[rank - 1];
        double total = SumOfBlocks(
            rows, block, static_cast<double*>(workspace), runner, [&](int64_t begin, int64_t end) {
              std::vector<float> row(columns);
              std::vector<float> is_target(columns);
              std::vector<float> others(columns);  // the row, its targets far below
              std::vector<int64_t> classes;
              double block_sum = 0;
              for (int64_t i = begin; i < end; ++i) {
                LoadRow(scores, inputs, i, row.data());
                std::fill(is_target.begin(), is_target.end(), 0.0f);
                others = row;
                classes.clear();
                for (int64_t j = 0; j < columns; ++j) {
                  const auto at = LoadNumber<int64_t>(target.layout.dtype, inputs[target.address],
                                                      i * target_row + j * target_step);
                  if (at == -1) break;
                  if (at < 0 || at >= columns) continue;
                  classes.push_back(at);
                  is_target[at] = 1;
                  others[at] = -std::numeric_limits<float>::infinity();
                }
                double sum = 0;
                for (const int64_t at : classes) {
                  if (runner.MustStop()) return 0.0;
                  sum += SumOfMargins(1 - row[at], others);
                }
                sum /= static_cast<double>(columns);
                block_sum += sum;
                if (reduction == kReduceNone) {
                  StoreNumber(sum, out.layout.dtype, outputs[out.address],
                              i * StrideOf(out.layout, 0));
                }
                if (marks.is_given()) StoreRow(is_target.data(), marks, outputs, i);
              }
              return block_sum;
            });
        if (reduction == kReduceNone) return;
        if (reduction == kReduceMean) total /= static_cast<double>(rows);
        StoreNumber(total, out.layout.dtype, outputs[out.address], 0);
      });
}

}  // namespace

std::span<const KernelEntry> CrossEntropyKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnCrossEntropyLoss", &MakeCrossEntropyLoss},
      {"aclnnCrossEntropyLossGrad", &MakeCrossEntropyLossGrad},
      {"aclnnMultilabelMarginLoss", &MakeMultilabelMarginLoss},
      {"aclnnSoftmaxCrossEntropyWithLogits", &MakeSoftmaxCrossEntropy},
  };
  return kEntries;
}

}  // namespace opserve::kernels
