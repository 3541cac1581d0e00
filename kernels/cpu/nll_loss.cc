// The negative log likelihood of classes, and its gradient.
#include <algorithm>
#include <memory>
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

// The class of the sample whose target lies at `offset`, or -1 if it is ignored or there is none.
int64_t ClassAt(const Samples& samples, const void* const* inputs, int64_t offset) {
  const int64_t target =
      LoadNumber<int64_t>(samples.target.layout.dtype, inputs[samples.target.address], offset);
  const bool counts = target != samples.ignored && target >= 0 && target < samples.num_classes;
  return counts ? target : -1;
}

double WeightOf(const Samples& samples, const void* const* inputs, int64_t target) {
  if (!samples.weight.is_given()) return 1;
  return LoadNumber<double>(samples.weight.layout.dtype, inputs[samples.weight.address],
                            target * StrideOf(samples.weight.layout, 0));
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
          double sum = 0;
          double weights = 0;
          const int64_t begin = block * kBlock;
          const int64_t end = std::min(begin + kBlock, samples.count);
          AxisCursor targets(samples.target_samples, begin);
          AxisCursor scores(samples.score_samples, begin);
          for (int64_t i = begin; i < end; ++i, targets.Advance(1), scores.Advance(1)) {
            const int64_t target = ClassAt(samples, inputs, targets.offset());
            float loss = 0;
            if (target >= 0) {
              const double weight = WeightOf(samples, inputs, target);
              const double score =
                  LoadNumber<double>(samples.scores.layout.dtype, inputs[samples.scores.address],
                                     scores.offset() + target * samples.class_stride);
              loss = static_cast<float>(-weight * score);
              sum -= weight * score;
              weights += weight;
            }
            if (reduction == kReduceNone) {
              StoreNumber(loss, out.layout.dtype, outputs[out.address],
                          AxisCursor(out_samples, i).offset());
            }
          }
          sums[2 * block] = sum;
          sums[2 * block + 1] = weights;
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
          AxisCursor scores(samples.score_samples, begin);
          AxisCursor grads(grad_samples, begin);
          for (int64_t i = begin; i < end;
               ++i, targets.Advance(1), scores.Advance(1), grads.Advance(1)) {
            const int64_t target = ClassAt(samples, inputs, targets.offset());
            if (target < 0) continue;
            const double factor =
                LoadNumber<double>(grad.layout.dtype, inputs[grad.address], grads.offset()) /
                divisor;
            StoreNumber(-WeightOf(samples, inputs, target) * factor, out.layout.dtype,
                        outputs[out.address], scores.offset() + target * samples.class_stride);
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
