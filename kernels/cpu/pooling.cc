// Pooling of images by means, and its gradient.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/pooling.h"
#include "kernels/cpu/registry.h"

namespace opserve::kernels {
namespace {

struct MeanPlan {
  Windows windows;
  Images images;  // those that are pooled, or their gradient
  Images pooled;
  bool counts_padding = true;
  int64_t divisor = 0;  // 0: that of each window

  // Elements of a window along an axis that the divisor counts, of the image and its padding.
  double ExtentAt(int axis, int64_t place) const {
    const int64_t extent = axis == 0 ? images.height : images.width;
    const int64_t start = place * windows.stride[axis] - windows.padding[axis];
    const int64_t end = std::min(start + windows.size[axis], extent + windows.padding[axis]);
    const int64_t first = counts_padding ? start : std::max<int64_t>(start, 0);
    const int64_t last = counts_padding ? end : std::min(end, extent);
    return static_cast<double>(std::max<int64_t>(last - first, 0));
  }
  // Those of all windows of a row.
  std::vector<double> RowExtents() const {
    std::vector<double> extents(pooled.width);
    for (int64_t x = 0; x < pooled.width; ++x) extents[x] = ExtentAt(1, x);
    return extents;
  }
};

// sums[x] /= the divisor of window (row, x); 0 of windows without elements.
template <typename C>
void DivideRow(const MeanPlan& plan, int64_t row, const std::vector<double>& extents,
               std::vector<C>& sums) {
  const double height = plan.ExtentAt(0, row);
  for (size_t x = 0; x < sums.size(); ++x) {
    const C divisor =
        static_cast<C>(plan.divisor != 0 ? static_cast<double>(plan.divisor) : height * extents[x]);
    const C mean = sums[x] / divisor;
    sums[x] = divisor == 0 ? C{0} : mean;
  }
}

template <typename C>
struct MeanRows {
  const MeanPlan& plan;
  const void* const* inputs;
  void* const* outputs;

  struct State {
    std::vector<C> line;     // of the image
    std::vector<C> columns;  // sums of the windows' lines
    std::vector<C> sums;
    std::vector<double> extents;
  };
  State Begin() const {
    const int64_t most = std::min(plan.images.width, kBlockColumns);
    return {std::vector<C>(most), std::vector<C>(most), std::vector<C>(plan.pooled.width),
            plan.RowExtents()};
  }

  void Row(int64_t plane, int64_t row, State& state, const TaskRunner& runner) const {
    const Windows& windows = plan.windows;
    const Images& images = plan.images;
    const Images& pooled = plan.pooled;
    std::fill(state.sums.begin(), state.sums.end(), C{0});
    const Range rows = ElementsOf(windows, 0, row, images.height);
    const int64_t top = row * windows.stride[0] - windows.padding[0];
    StopCheck check(runner);
    int64_t block = 0;
    bool stops = false;
    const bool goes_on = ForEachWindow(
        windows, images, pooled.width, check,
        [&](int64_t begin, int64_t count) {
          block = begin;
          std::fill_n(state.columns.begin(), count, C{0});
          for (int64_t i = rows.begin; i < rows.end && !stops; ++i) {
            stops = check.MustStop(count);
            LoadRow(images, inputs, plane, top + i, begin, count, state.line.data());
            for (int64_t x = 0; x < count; ++x) state.columns[x] += state.line[x];
          }
        },
        [&](int64_t x, int64_t from, int64_t to) {
          const C* left = state.columns.data() + x * windows.stride[1] - windows.padding[1] - block;
          C sum = 0;
          for (int64_t j = from; j < to; ++j) sum += left[j];
          state.sums[x] += sum;
        });
    if (!goes_on || stops) return;
    DivideRow(plan, row, state.extents, state.sums);
    StoreRow(state.sums.data(), pooled, outputs, plane, row);
  }
};

template <typename C>
struct MeanGradientRows {
  const MeanPlan& plan;
  const void* const* inputs;
  void* const* outputs;

  struct State {
    std::vector<C> row;
    std::vector<C> parts;  // what windows pass back to each of their columns
    std::vector<C> sums;
    std::vector<double> extents;
  };
  State Begin() const {
    return {std::vector<C>(plan.pooled.width), std::vector<C>(plan.pooled.width),
            std::vector<C>(plan.images.width), plan.RowExtents()};
  }

  void Row(int64_t plane, int64_t row, State& state, const TaskRunner& runner) const {
    const Windows& windows = plan.windows;
    const Images& images = plan.images;
    const Images& pooled = plan.pooled;
    std::fill(state.parts.begin(), state.parts.end(), C{0});
    const Range places = WindowsAt(windows, 0, row, pooled.height);
    StopCheck check(runner);
    for (int64_t y = places.begin; y < places.end; ++y) {
      if (check.MustStop(pooled.width)) return;
      LoadRow(pooled, inputs, plane, y, state.row.data());
      DivideRow(plan, y, state.extents, state.row);
      for (int64_t x = 0; x < pooled.width; ++x) state.parts[x] += state.row[x];
    }
    // Element j of each window in turn, the last ones first: so the windows above one
    // element of the image are taken in their order, and no sum waits for its neighbour's.
    std::fill(state.sums.begin(), state.sums.end(), C{0});
    const int64_t stride = windows.stride[1];
    const int64_t padding = windows.padding[1];
    const int64_t first = std::max<int64_t>(0, padding - (pooled.width - 1) * stride);
    const int64_t last = std::min(windows.size[1], images.width + padding) - 1;
    for (int64_t j = last; j >= first; --j) {
      if (check.MustStop(pooled.width)) return;
      const int64_t begin = j < padding ? CeilDivide(padding - j, stride) : 0;
      const int64_t end = std::min(pooled.width, (images.width - 1 + padding - j) / stride + 1);
      const int64_t shift = j - padding;
      C* const sums = state.sums.data();
      for (int64_t x = begin; x < end; ++x) sums[x * stride + shift] += state.parts[x];
    }
    StoreRow(state.sums.data(), images, outputs, plane, row);
  }
};

// Attributes: size, strides, paddings, ceil_mode, count_include_pad, divisor_override.
MeanPlan PlanMean(const Call& call, const TensorRef& images, const TensorRef& pooled) {
  MeanPlan plan;
  plan.windows = WindowsOf(call, 0, false);
  plan.images = ImagesOf(images);
  plan.pooled = ImagesOf(pooled);
  plan.counts_padding = BoolAttribute(call, 4, true);
  plan.divisor = IntAttribute(call, 5);
  return plan;
}

std::unique_ptr<Kernel> MakeAvgPool2d(const Call& call) {
  const MeanPlan plan = PlanMean(call, InputRef(call, 0), OutputRef(call, 0));
  return MakeRowKernel<MeanRows>(plan, plan.pooled, Input(call, 0).dtype);
}

std::unique_ptr<Kernel> MakeAvgPool2dBackward(const Call& call) {
  const MeanPlan plan = PlanMean(call, OutputRef(call, 0), InputRef(call, 0));
  return MakeRowKernel<MeanGradientRows>(plan, plan.images, Input(call, 0).dtype);
}

}  // namespace

std::span<const KernelEntry> PoolingKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnAvgPool2d", &MakeAvgPool2d},
      {"aclnnAvgPool2dBackward", &MakeAvgPool2dBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
