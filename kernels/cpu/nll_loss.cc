// The negative log likelihood of classes, and its gradient.
#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>

#include "kernels/cpu/call.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// Samples of a task, and of a partial sum.
constexpr int64_t kBlock = 4096;

// Every sample has a score for each class: (N, C), (C) or (N, C, H, W).
struct Samples {
  TensorRef scores;
  TensorRef target;
  TensorRef weight;
  AxisGroup score_samples;
  AxisGroup target_samples;
  int64_t count = 1;
  int64_t num_classes = 1;
  int64_t class_stride = 0;
  int64_t ignored = 0;
};

Samples SamplesOf(const TensorRef& scores, const TensorRef& target, const TensorRef& weight,
                  int64_t ignored) {
  const int axis = scores.layout.rank > 1 ? 1 : 0;
  Samples samples;
  samples.scores = scores;
  samples.target = target;
  samples.weight = weight;
  samples.score_samples = GroupOf(WithoutAxis(scores.layout, axis));
  samples.target_samples = GroupOf(target.layout);
  samples.count = NumElements(WithoutAxis(scores.layout, axis));
  samples.num_classes = ExtentOf(scores.layout, axis);
  samples.class_stride = StrideOf(scores.layout, axis);
  samples.ignored = ignored;
  return samples;
}

// Samples that are read together.
constexpr int64_t kChunk = 256;

constexpr int64_t kPartialSums = 8;

// Calls visit(first, offset, count) for runs of `count` positions from the cursor on, which move on
// it by that many: position `first` + i of these lies i strides behind the offset.
template <typename Visitor>
void VisitRuns(AxisCursor& cursor, int64_t count, Visitor visit) {
  for (int64_t first = 0; first < count;) {
    const int64_t run = std::min(cursor.run(), count - first);
    visit(first, cursor.offset(), run);
    cursor.Advance(run);
    first += run;
  }
}

// The classes of some samples: -1 where it is ignored or there is none, with weight 0.
struct Classes {
  int64_t indices[kChunk];
  double weights[kChunk];
};

void ReadClasses(const Samples& samples, const void* const* inputs, AxisCursor& targets,
                 int64_t count, Classes& classes) {
  VisitAnyElement(samples.target.layout.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(inputs[samples.target.address]);
    VisitRuns(targets, count, [&](int64_t first, int64_t offset, int64_t run) {
      LoadRun(elements + offset, samples.target_samples.inner_stride(), run,
              classes.indices + first);
    });
  });
  // Without branches: which samples count may be anything.
  const auto counts = [&](int64_t target) {
    return (target != samples.ignored) & (target >= 0) & (target < samples.num_classes);
  };
  if (!samples.weight.is_given() || samples.num_classes == 0) {
    for (int64_t i = 0; i < count; ++i) {
      const bool is_counted = counts(classes.indices[i]);
      classes.weights[i] = is_counted ? 1 : 0;
      classes.indices[i] = is_counted ? classes.indices[i] : -1;
    }
    return;
  }
  const int64_t stride = StrideOf(samples.weight.layout, 0);
  VisitAnyElement(samples.weight.layout.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(inputs[samples.weight.address]);
    for (int64_t i = 0; i < count; ++i) {
      const bool is_counted = counts(classes.indices[i]);
      const double weight =
          NumberOf<double>(elements[is_counted ? classes.indices[i] * stride : 0]);
      classes.weights[i] = is_counted ? weight : 0;
      classes.indices[i] = is_counted ? classes.indices[i] : -1;
    }
  });
}

// The scores of the samples' classes, 0 where there is none.
void ReadScores(const Samples& samples, const void* const* inputs, AxisCursor& cursor,
                int64_t count, const Classes& classes, double* scores) {
  if (samples.num_classes == 0) {
    std::fill_n(scores, count, 0.0);
    return;
  }
  const int64_t stride = samples.score_samples.inner_stride();
  VisitAnyElement(samples.scores.layout.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(inputs[samples.scores.address]);
    VisitRuns(cursor, count, [&](int64_t first, int64_t offset, int64_t run) {
      for (int64_t i = 0; i < run; ++i) {
        const int64_t target = classes.indices[first + i];
        const int64_t place = target < 0 ? 0 : target * samples.class_stride;
        const double score = NumberOf<double>(elements[offset + i * stride + place]);
        scores[first + i] = target < 0 ? 0 : score;
      }
    });
  });
}

// For the mean the sum is divided by the sum of the weights.
std::unique_ptr<Kernel> MakeNllLoss(const Call& call) {
  const Samples samples =
      SamplesOf(InputRef(call, 0), InputRef(call, 1), InputRef(call, 2), IntAttribute(call, 1));
  const int64_t reduction = IntAttribute(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const TensorRef total = OutputRef(call, 1);
  const AxisGroup out_samples = GroupOf(out.layout);
  const int64_t num_blocks = CeilDivide(samples.count, kBlock);
  return MakePlannedKernel(
      samples.count, static_cast<size_t>(num_blocks) * 2 * sizeof(double),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        auto* sums = static_cast<double*>(workspace);
        RunTasks(runner, num_blocks, [&](int64_t block) {
          // Several, which do not wait for one another.
          double sum[kPartialSums] = {};
          double weights[kPartialSums] = {};
          const int64_t begin = block * kBlock;
          const int64_t end = std::min(begin + kBlock, samples.count);
          AxisCursor targets(samples.target_samples, begin);
          AxisCursor cursor(samples.score_samples, begin);
          AxisCursor losses(out_samples, reduction == kReduceNone ? begin : 0);
          Classes classes;
          double scores[kChunk];
          for (int64_t i = begin; i < end; i += kChunk) {
            const int64_t count = std::min(kChunk, end - i);
            ReadClasses(samples, inputs, targets, count, classes);
            ReadScores(samples, inputs, cursor, count, classes, scores);
            for (int64_t j = 0; j < count; ++j) {
              sum[j % kPartialSums] -= classes.weights[j] * scores[j];
              weights[j % kPartialSums] += classes.weights[j];
            }
            if (reduction != kReduceNone) continue;
            for (int64_t j = 0; j < count; ++j, losses.Advance(1)) {
              const double loss = classes.indices[j] < 0 ? 0 : -classes.weights[j] * scores[j];
              StoreNumber(static_cast<float>(loss), out.layout.dtype, outputs[out.address],
                          losses.offset());
            }
          }
          sums[2 * block] = std::accumulate(std::begin(sum), std::end(sum), 0.0);
          sums[2 * block + 1] = std::accumulate(std::begin(weights), std::end(weights), 0.0);
        });
        double sum = 0;
        double weights = 0;
        for (int64_t i = 0; i < num_blocks; ++i) {
          sum += sums[2 * i];
          weights += sums[2 * i + 1];
        }
        if (reduction == kReduceMean) sum /= weights;
        if (reduction != kReduceNone) {
          StoreNumber(sum, out.layout.dtype, outputs[out.address], 0);
        }
        if (total.is_given()) {
          StoreNumber(reduction == kReduceNone ? 0.0 : weights, total.layout.dtype,
                      outputs[total.address], 0);
        }
      });
}

std::unique_ptr<Kernel> MakeNllLossBackward(const Call& call) {
  const TensorRef grad = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const TensorRef total = InputRef(call, 4);
  const Samples samples =
      SamplesOf(out, InputRef(call, 2), InputRef(call, 3), IntAttribute(call, 1));
  const int64_t reduction = IntAttribute(call, 0);
  Piece zeros = MakeFill(out, 0);
  PreparePiece(zeros);
  const bool is_single = NumElements(grad.layout) == 1;
  const AxisGroup grad_samples = is_single ? OneAxis(samples.count, 0) : GroupOf(grad.layout);
  return MakePlannedKernel(
      NumElements(out.layout), 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunPiece(zeros, inputs, outputs, runner);
        double divisor = 1;
        if (reduction == kReduceMean && total.is_given()) {
          divisor = LoadNumber<double>(total.layout.dtype, inputs[total.address], 0);
        }
        RunTasks(runner, CeilDivide(samples.count, kBlock), [&](int64_t block) {
          const int64_t begin = block * kBlock;
          const int64_t end = std::min(begin + kBlock, samples.count);
          AxisCursor targets(samples.target_samples, begin);
          AxisCursor places(samples.score_samples, begin);
          AxisCursor grads(grad_samples, begin);
          Classes classes;
          double factors[kChunk];
          for (int64_t i = begin; i < end; i += kChunk) {
            const int64_t count = std::min(kChunk, end - i);
            ReadClasses(samples, inputs, targets, count, classes);
            VisitAnyElement(grad.layout.dtype, [&]<typename Element>(Element) {
              const auto* elements = static_cast<const Element*>(inputs[grad.address]);
              VisitRuns(grads, count, [&](int64_t first, int64_t offset, int64_t run) {
                LoadRun(elements + offset, grad_samples.inner_stride(), run, factors + first);
              });
            });
            VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
              auto* elements = static_cast<Element*>(outputs[out.address]);
              const int64_t stride = samples.score_samples.inner_stride();
              VisitRuns(places, count, [&](int64_t first, int64_t offset, int64_t run) {
                for (int64_t j = 0; j < run; ++j) {
                  const int64_t target = classes.indices[first + j];
                  if (target < 0) continue;
                  elements[offset + j * stride + target * samples.class_stride] =
                      ElementOf<Element>(-classes.weights[first + j] *
                                         (factors[first + j] / divisor));
                }
              });
            });
          }
        });
      });
}

}  // namespace

std::span<const KernelEntry> NllLossKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnNLLLoss", &MakeNllLoss},
      {"aclnnNLLLoss2d", &MakeNllLoss},
      {"aclnnNLLLoss2dBackward", &MakeNllLossBackward},
      {"aclnnNLLLossBackward", &MakeNllLossBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
