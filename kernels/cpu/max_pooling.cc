// Pooling of images by their largest elements, and its gradient.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/pooling.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

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
    const int64_t first_line = (top + rows.begin * windows.dilation[0]) * images.width;
    for (int64_t x = 0; x < pooled.width; ++x) {
      const int64_t left = x * windows.stride[1] - windows.padding[1];
      const int64_t outside =
          left < 0 ? CeilQuotient(-left, windows.dilation[1]) * windows.dilation[1] : 0;
      state.places[x] = first_line + left + outside;
    }
    StopCheck check(runner);
    const bool is_narrow = images.width <= kBlockColumns && windows.size[1] <= pooled.width;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const int64_t y = top + i * windows.dilation[0];
      const bool goes_on =
          is_narrow ? AddLine(plane, y, state, check) : AddWideLine(plane, y, state, check);
      if (!goes_on) return;
    }
    StoreRow(state.greatest.data(), pooled, outputs, plane, row);
    if (plan.indices.tensor.is_given()) {
      StoreRow(state.places.data(), plan.indices, outputs, plane, row);
    }
  }

 private:
  // Compares line y of the image with the windows' greatest elements so far: element j of each
  // window in turn, so that no window waits for its own last element. False: the kernel must stop.
  bool AddLine(int64_t plane, int64_t y, State& state, StopCheck& check) const {
    const Windows& windows = plan.windows;
    const int64_t width = plan.images.width;
    if (check.MustStop(width)) return false;
    const C* const line = RowAt(plan.images, inputs, plane, y, width, state.row.data());
    C* const greatest = state.greatest.data();
    int64_t* const places = state.places.data();
    const int64_t stride = windows.stride[1];
    for (int64_t j = 0; j < windows.size[1]; ++j) {
      if (check.MustStop(plan.pooled.width)) return false;
      const int64_t shift = j * windows.dilation[1] - windows.padding[1];
      if (shift >= width) break;
      const int64_t begin = shift < 0 ? CeilQuotient(-shift, stride) : 0;
      const int64_t end = std::min(plan.pooled.width, (width - 1 - shift) / stride + 1);
      const auto compare = [&](auto step) {
        OPSERVE_INDEPENDENT_ITERATIONS
        for (int64_t x = begin; x < end; ++x) {
          const int64_t place = x * step + shift;
          const C value = line[place];
          const bool is_next = value > greatest[x] || value != value;
          greatest[x] = is_next ? value : greatest[x];
          places[x] = is_next ? y * width + place : places[x];
        }
      };
      if (stride == 1) {
        compare(std::integral_constant<int64_t, 1>());
      } else if (stride == 2) {
        compare(std::integral_constant<int64_t, 2>());
      } else {
        compare(stride);
      }
    }
    return true;
  }

  // The same of windows that are wider than there are of them, or of a line that is read in blocks.
  bool AddWideLine(int64_t plane, int64_t y, State& state, StopCheck& check) const {
    const Windows& windows = plan.windows;
    const Images& images = plan.images;
    int64_t block = 0;
    return ForEachWindow(
        windows, images, plan.pooled.width, check,
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
  }
};

// Elements of an image whose gradients are summed up at a time.
constexpr int64_t kGradientPart = 4096;

// Gradients of parts of images. Belongs to one task.
template <typename C>
class MaximumGradient {
 public:
  MaximumGradient(const MaximumPlan& plan, const void* const* inputs, void* const* outputs)
      : plan_(plan), inputs_(inputs), outputs_(outputs) {}

  // That of the rows [begin, end). Places of other rows, which no branch could predict, add to an
  // element of their own.
  void Run(int64_t plane, int64_t begin, int64_t end, const TaskRunner& runner) {
    const Images& images = plan_.images;
    const Images& pooled = plan_.pooled;
    const int64_t count = (end - begin) * images.width;
    const bool is_direct = images.tensor.layout.dtype == kDtypeOf<C> && images.column_stride == 1 &&
                           HasJoinedRows(images);
    if (!is_direct) sums_.resize(count);
    C* const sums = is_direct
                        ? static_cast<C*>(outputs_[images.tensor.address]) +
                              AxisCursor(images.planes, plane).offset() + begin * images.row_stride
                        : sums_.data();
    std::fill_n(sums, count, C{0});
    const int64_t last_window = WindowsAt(plan_.windows, 0, end - 1, pooled.height).end;
    // Rows that follow one another in memory are read as one.
    const bool are_joined = HasJoinedRows(pooled) && HasJoinedRows(plan_.indices);
    int64_t y = WindowsAt(plan_.windows, 0, begin, pooled.height).begin;
    const int64_t part = kGradientPart / std::max<int64_t>(1, pooled.width);
    const int64_t rows =
        are_joined ? std::clamp<int64_t>(last_window - y, 1, std::max<int64_t>(1, part)) : 1;
    StopCheck check(runner);
    for (; y < last_window; y += rows) {
      const int64_t num_places = std::min(rows, last_window - y) * pooled.width;
      if (check.MustStop(num_places)) return;
      AddRow(plane, y, num_places, begin * images.width, count, sums);
    }
    if (is_direct) return;
    if (HasJoinedRows(images)) {
      StoreRow(sums, count, images, outputs_, plane, begin);
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      StoreRow(sums + (i - begin) * images.width, images, outputs_, plane, i);
    }
  }

 private:
  // Adds the gradients of `num_places` windows from row y on to the elements first + [0, count).
  void AddRow(int64_t plane, int64_t y, int64_t num_places, int64_t first, int64_t count,
              C* __restrict sums) {
    row_.resize(num_places);
    const C* const row = RowAt(plan_.pooled, inputs_, plane, y, num_places, row_.data());
    const Images& indices = plan_.indices;
    const int64_t stride = indices.column_stride;
    const int64_t offset = AxisCursor(indices.planes, plane).offset() + y * indices.row_stride;
    VisitAnyElement(indices.tensor.layout.dtype, [&]<typename Element>(Element) {
      const auto* places = static_cast<const Element*>(inputs_[indices.tensor.address]) + offset;
      C outside = 0;
      for (int64_t x = 0; x < num_places; ++x) {
        // Unsigned, so that one comparison tells.
        const auto place = static_cast<uint64_t>(NumberOf<int64_t>(places[x * stride])) -
                           static_cast<uint64_t>(first);
        C* const sum = place < static_cast<uint64_t>(count) ? sums + place : &outside;
        *sum += row[x];
      }
    });
  }

  const MaximumPlan& plan_;
  const void* const* const inputs_;
  void* const* const outputs_;
  std::vector<C> sums_;
  std::vector<C> row_;
};

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
  // Parts of images that are small enough for their sums to stay in the first-level cache.
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
          VisitNumber(dtype, [&]<typename C>(C) {
            if constexpr (!std::is_integral_v<C>) {
              MaximumGradient<C> gradient(plan, inputs, outputs);
              for (int64_t i = task * per_task; i < end; ++i) {
                if (runner.MustStop()) return;
                const int64_t row = i % parts * part;
                gradient.Run(i / parts, row, std::min(row + part, height), runner);
              }
            }
          });
        });
      });
}

}  // namespace

std::span<const KernelEntry> MaxPoolingKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnMaxPool2dWithIndices", &MakeMaxPool2d},
      {"aclnnMaxPool2dWithIndicesBackward", &MakeMaxPool2dBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
