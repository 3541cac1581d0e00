// Pooling of images and its gradients.
//
// Rows of the result are tasks. A row of a gradient gathers what the windows above it pass back, in
// the order of the windows, so that no two tasks add to one element.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// Images whose rows and columns are the last two axes.
struct Images {
  TensorRef tensor;
  AxisGroup planes;
  int64_t height = 1;
  int64_t width = 1;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

Images ImagesOf(const TensorRef& tensor) {
  const Layout& layout = tensor.layout;
  const int rank = layout.rank;
  return {tensor,
          GroupOf(layout, 0, rank - 2),
          layout.shape[rank - 2],
          layout.shape[rank - 1],
          layout.strides[rank - 2],
          layout.strides[rank - 1]};
}

template <typename C>
void LoadRow(const Images& images, const void* const* addresses, int64_t plane, int64_t row,
             int64_t column, int64_t count, C* numbers) {
  const int64_t offset = AxisCursor(images.planes, plane).offset() + row * images.row_stride +
                         column * images.column_stride;
  VisitAnyElement(images.tensor.layout.dtype, [&]<typename Element>(Element) {
    LoadRun(static_cast<const Element*>(addresses[images.tensor.address]) + offset,
            images.column_stride, count, numbers);
  });
}

template <typename C>
void LoadRow(const Images& images, const void* const* addresses, int64_t plane, int64_t row,
             C* numbers) {
  LoadRow(images, addresses, plane, row, 0, images.width, numbers);
}

// Writes `count` elements from the beginning of a row on.
template <typename C>
void StoreRow(const C* numbers, int64_t count, const Images& images, void* const* addresses,
              int64_t plane, int64_t row) {
  const int64_t offset = AxisCursor(images.planes, plane).offset() + row * images.row_stride;
  VisitAnyElement(images.tensor.layout.dtype, [&]<typename Element>(Element) {
    StoreRun(numbers, 1, count, static_cast<Element*>(addresses[images.tensor.address]) + offset,
             images.column_stride);
  });
}

template <typename C>
void StoreRow(const C* numbers, const Images& images, void* const* addresses, int64_t plane,
              int64_t row) {
  StoreRow(numbers, images.width, images, addresses, plane, row);
}

// Whether each row begins where the one before it ends.
bool HasJoinedRows(const Images& images) {
  return images.row_stride == images.width * images.column_stride;
}

// Height and width.
using Pair = std::array<int64_t, 2>;

Pair PairAttribute(const Call& call, size_t attribute, const Pair& absent) {
  const std::vector<int64_t> values = IntsAttribute(call, attribute);
  if (values.empty()) return absent;
  return {values[0], values[std::min<size_t>(1, values.size() - 1)]};
}

struct Windows {
  Pair size = {1, 1};
  Pair stride = {1, 1};
  Pair padding = {0, 0};
  Pair dilation = {1, 1};
};

// The attributes from `first` (the size) on.
Windows WindowsOf(const Call& call, size_t first, bool has_dilation) {
  Windows windows;
  windows.size = PairAttribute(call, first, {1, 1});
  windows.stride = PairAttribute(call, first + 1, windows.size);
  windows.padding = PairAttribute(call, first + 2, {0, 0});
  if (has_dilation) windows.dilation = PairAttribute(call, first + 3, {1, 1});
  return windows;
}

struct Range {
  int64_t begin;
  int64_t end;
};

// a / b, rounded up, where b mostly is 1: divisions take long.
int64_t CeilQuotient(int64_t a, int64_t b) { return b == 1 ? a : CeilDivide(a, b); }

// The elements of window `place` on an axis that lie in an image of `extent`: those begin, end.
Range ElementsOf(const Windows& windows, int axis, int64_t place, int64_t extent) {
  const int64_t start = place * windows.stride[axis] - windows.padding[axis];
  const int64_t dilation = windows.dilation[axis];
  const int64_t begin = start < 0 ? CeilQuotient(-start, dilation) : 0;
  const int64_t end = start < extent ? CeilQuotient(extent - start, dilation) : 0;
  return {begin, std::max(begin, std::min(windows.size[axis], end))};
}

// The windows, of `count`, that may reach position `place` of the image.
Range WindowsAt(const Windows& windows, int axis, int64_t place, int64_t count) {
  const int64_t padded = place + windows.padding[axis];
  const int64_t reach = (windows.size[axis] - 1) * windows.dilation[axis];
  const int64_t stride = windows.stride[axis];
  const int64_t begin = padded > reach ? CeilDivide(padded - reach, stride) : 0;
  return {begin, std::min(count, padded / stride + 1)};
}

// Columns of an image that are loaded at a time: few bytes may stand for a row of any length.
constexpr int64_t kBlockColumns = int64_t{1} << 16;

// Asks whether to stop once for each million elements or so.
class StopCheck {
 public:
  explicit StopCheck(const TaskRunner& runner) : runner_(runner) {}

  // Before the next `elements`.
  bool MustStop(int64_t elements) {
    left_ -= elements;
    if (left_ > 0) return false;
    left_ = int64_t{1} << 20;
    return runner_.MustStop();
  }

 private:
  const TaskRunner& runner_;
  int64_t left_ = 0;
};

// Calls block(begin, count) for the columns of an image, and window(x, from, to) for each window
// that has its elements from..to - 1 among them, where the windows' elements lie as `windows` says.
// False: the kernel must stop.
template <typename Block, typename Window>
bool ForEachWindow(const Windows& windows, const Images& images, int64_t num_windows,
                   StopCheck& check, const Block& block, const Window& window) {
  const int64_t dilation = windows.dilation[1];
  for (int64_t begin = 0; begin < images.width; begin += kBlockColumns) {
    const int64_t count = std::min(kBlockColumns, images.width - begin);
    if (check.MustStop(count)) return false;
    block(begin, count);
    const int64_t first = WindowsAt(windows, 1, begin, num_windows).begin;
    const int64_t end = WindowsAt(windows, 1, begin + count - 1, num_windows).end;
    for (int64_t x = first; x < end; ++x) {
      const Range all = ElementsOf(windows, 1, x, images.width);
      const int64_t left = x * windows.stride[1] - windows.padding[1];
      const int64_t from =
          begin > left ? std::max(all.begin, CeilQuotient(begin - left, dilation)) : all.begin;
      const int64_t past = begin + count - left;
      const int64_t to = past > 0 ? std::min(all.end, CeilQuotient(past, dilation)) : 0;
      if (from >= to) continue;
      if (check.MustStop(to - from)) return false;
      window(x, from, to);
    }
  }
  return true;
}

// Calls work(plane, row) for all rows of all images, in tasks of rows that cost `row_cost` each.
template <typename Work>
void ForEachRow(const Images& images, int64_t row_cost, TaskRunner& runner, const Work& work) {
  const int64_t num_rows = NumElements(images.tensor.layout) / std::max<int64_t>(1, images.width);
  const int64_t per_task = PiecesPerTask(row_cost);
  RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
    const int64_t end = std::min((task + 1) * per_task, num_rows);
    auto state = work.Begin();
    for (int64_t i = task * per_task; i < end; ++i) {
      if (runner.MustStop()) return;
      work.Row(i / images.height, i % images.height, state, runner);
    }
  });
}

// --- Means.

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

// A kernel of the rows of `written`, each of which reads as many elements as a window has for each
// of its own.
template <template <typename> typename Rows, typename Plan>
std::unique_ptr<Kernel> MakeRowKernel(const Plan& plan, const Images& written, Dtype dtype) {
  const int64_t area = plan.windows.size[0] * plan.windows.size[1];
  const int64_t cost =
      std::max(plan.images.width, plan.pooled.width) * std::min<int64_t>(area, 1024);
  return MakePlannedKernel(NumElements(plan.pooled.tensor.layout) * area, 0,
                           [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
                               TaskRunner& runner) {
                             VisitNumber(dtype, [&]<typename C>(C) {
                               if constexpr (!std::is_integral_v<C>) {
                                 ForEachRow(written, cost, runner, Rows<C>{plan, inputs, outputs});
                               }
                             });
                           });
}

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

// --- Largest elements.

struct MaximumPlan {
  Windows windows;
  Images images;
  Images pooled;
  Images indices;
};

// NaN is larger than all, and the last one's place counts.
template <typename C>
struct MaximumRows {
  const MaximumPlan& plan;
  const void* const* inputs;
  void* const* outputs;

  struct State {
    std::vector<C> row;
    std::vector<C> greatest;
    std::vector<int64_t> places;
  };
  State Begin() const {
    return {std::vector<C>(std::min(plan.images.width, kBlockColumns)),
            std::vector<C>(plan.pooled.width), std::vector<int64_t>(plan.pooled.width)};
  }

  void Row(int64_t plane, int64_t row, State& state, const TaskRunner& runner) const {
    const Windows& windows = plan.windows;
    const Images& images = plan.images;
    const Images& pooled = plan.pooled;
    std::fill(state.greatest.begin(), state.greatest.end(), -std::numeric_limits<C>::infinity());
    const Range rows = ElementsOf(windows, 0, row, images.height);
    const int64_t top = row * windows.stride[0] - windows.padding[0];
    // Where nothing is larger than the least number, the first element counts.
    for (int64_t x = 0; x < pooled.width; ++x) {
      const int64_t left = x * windows.stride[1] - windows.padding[1];
      state.places[x] = (top + rows.begin * windows.dilation[0]) * images.width + left +
                        ElementsOf(windows, 1, x, images.width).begin * windows.dilation[1];
    }
    StopCheck check(runner);
    int64_t block = 0;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const int64_t y = top + i * windows.dilation[0];
      const bool goes_on = ForEachWindow(
          windows, images, pooled.width, check,
          [&](int64_t begin, int64_t count) {
            block = begin;
            LoadRow(images, inputs, plane, y, begin, count, state.row.data());
          },
          [&](int64_t x, int64_t from, int64_t to) {
            const int64_t left = x * windows.stride[1] - windows.padding[1];
            for (int64_t j = from; j < to; ++j) {
              const int64_t place = left + j * windows.dilation[1];
              const C value = state.row[place - block];
              if (value > state.greatest[x] || value != value) {
                state.greatest[x] = value;
                state.places[x] = y * images.width + place;
              }
            }
          });
      if (!goes_on) return;
    }
    StoreRow(state.greatest.data(), pooled, outputs, plane, row);
    if (plan.indices.tensor.is_given()) {
      StoreRow(state.places.data(), plan.indices, outputs, plane, row);
    }
  }
};

// Elements of an image whose gradients are summed up at a time.
constexpr int64_t kGradientPart = 4096;

// The gradient of the rows [begin, end) of an image. Places of other rows, which no branch could
// predict, add to an element of their own.
template <typename C>
void MaximumGradient(const MaximumPlan& plan, const void* const* inputs, void* const* outputs,
                     int64_t plane, int64_t begin, int64_t end, const TaskRunner& runner) {
  const Images& images = plan.images;
  const Images& pooled = plan.pooled;
  const int64_t first = begin * images.width;
  const int64_t count = (end - begin) * images.width;
  std::vector<C> sums(count + 1);
  const int64_t last_window = WindowsAt(plan.windows, 0, end - 1, pooled.height).end;
  // Rows that follow one another in memory are read as one.
  const bool are_joined = HasJoinedRows(pooled) && HasJoinedRows(plan.indices);
  int64_t y = WindowsAt(plan.windows, 0, begin, pooled.height).begin;
  const int64_t part = kGradientPart / std::max<int64_t>(1, pooled.width);
  const int64_t rows =
      are_joined ? std::clamp<int64_t>(last_window - y, 1, std::max<int64_t>(1, part)) : 1;
  std::vector<C> row(rows * pooled.width);
  std::vector<int64_t> places(rows * pooled.width);
  StopCheck check(runner);
  for (; y < last_window; y += rows) {
    const int64_t num_places = std::min(rows, last_window - y) * pooled.width;
    if (check.MustStop(num_places)) return;
    LoadRow(pooled, inputs, plane, y, 0, num_places, row.data());
    LoadRow(plan.indices, inputs, plane, y, 0, num_places, places.data());
    for (int64_t x = 0; x < num_places; ++x) {
      const int64_t place = places[x] - first;
      sums[place >= 0 && place < count ? place : count] += row[x];
    }
  }
  if (HasJoinedRows(images)) {
    StoreRow(sums.data(), count, images, outputs, plane, begin);
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    StoreRow(sums.data() + (i - begin) * images.width, images, outputs, plane, i);
  }
}

// Attributes: size, stride, padding, dilation, ceil_mode.
std::unique_ptr<Kernel> MakeMaxPool2d(const Call& call) {
  MaximumPlan plan;
  plan.windows = WindowsOf(call, 0, true);
  plan.images = ImagesOf(InputRef(call, 0));
  plan.pooled = ImagesOf(OutputRef(call, 0));
  if (HasOutput(call, 1)) plan.indices = ImagesOf(OutputRef(call, 1));
  return MakeRowKernel<MaximumRows>(plan, plan.pooled, Input(call, 0).dtype);
}

std::unique_ptr<Kernel> MakeMaxPool2dBackward(const Call& call) {
  MaximumPlan plan;
  plan.windows = WindowsOf(call, 0, true);
  plan.images = ImagesOf(OutputRef(call, 0));
  plan.pooled = ImagesOf(InputRef(call, 0));
  plan.indices = ImagesOf(InputRef(call, 2));
  // Parts of images whose sums stay in the first-level cache.
  const int64_t height = plan.images.height;
  const int64_t part = std::clamp<int64_t>(kGradientPart / std::max<int64_t>(1, plan.images.width),
                                           1, std::max<int64_t>(1, height));
  const int64_t parts = CeilDivide(height, part);
  const int64_t count = NumElements(plan.images.tensor.layout);
  const int64_t planes = count / std::max<int64_t>(1, height * plan.images.width);
  const Dtype dtype = Input(call, 0).dtype;
  return MakePlannedKernel(
      count, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        const int64_t per_task = PiecesPerTask(part * plan.images.width);
        RunTasks(runner, CeilDivide(planes * parts, per_task), [&](int64_t task) {
          const int64_t end = std::min((task + 1) * per_task, planes * parts);
          for (int64_t i = task * per_task; i < end; ++i) {
            if (runner.MustStop()) return;
            const int64_t row = i % parts * part;
            VisitNumber(dtype, [&]<typename C>(C) {
              if constexpr (!std::is_integral_v<C>) {
                MaximumGradient<C>(plan, inputs, outputs, i / parts, row,
                                   std::min(row + part, height), runner);
              }
            });
          }
        });
      });
}

}  // namespace

std::span<const KernelEntry> PoolingKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnAvgPool2d", &MakeAvgPool2d},
      {"aclnnAvgPool2dBackward", &MakeAvgPool2dBackward},
      {"aclnnMaxPool2dWithIndices", &MakeMaxPool2d},
      {"aclnnMaxPool2dWithIndicesBackward", &MakeMaxPool2dBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
