// Windows that move over images, for pooling and its gradients.
//
// Rows of the result are tasks. A row of a gradient gathers what the windows above it pass back, in
// the order of the windows, so that no two tasks add to one element.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {

// Images with rows and columns as the last two axes.
struct Images {
  TensorRef tensor;
  AxisGroup planes;
  int64_t height = 1;
  int64_t width = 1;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

inline Images ImagesOf(const TensorRef& tensor) {
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

// `count` elements of a row from its beginning on: where they lie, or in `buffer`.
template <typename C>
const C* RowAt(const Images& images, const void* const* addresses, int64_t plane, int64_t row,
               int64_t count, C* buffer) {
  if (images.tensor.layout.dtype == kDtypeOf<C> && images.column_stride == 1) {
    return static_cast<const C*>(addresses[images.tensor.address]) +
           AxisCursor(images.planes, plane).offset() + row * images.row_stride;
  }
  LoadRow(images, addresses, plane, row, 0, count, buffer);
  return buffer;
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
inline bool HasJoinedRows(const Images& images) {
  return images.row_stride == images.width * images.column_stride;
}

// Height and width.
using Pair = std::array<int64_t, 2>;

inline Pair PairAttribute(const Call& call, size_t attribute, const Pair& absent) {
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
inline Windows WindowsOf(const Call& call, size_t first, bool has_dilation) {
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
inline int64_t CeilQuotient(int64_t a, int64_t b) { return b == 1 ? a : CeilDivide(a, b); }

// The elements of window `place` on an axis that lie in an image of `extent`: those begin, end.
inline Range ElementsOf(const Windows& windows, int axis, int64_t place, int64_t extent) {
  const int64_t start = place * windows.stride[axis] - windows.padding[axis];
  const int64_t dilation = windows.dilation[axis];
  const int64_t begin = start < 0 ? CeilQuotient(-start, dilation) : 0;
  const int64_t end = start < extent ? CeilQuotient(extent - start, dilation) : 0;
  return {begin, std::max(begin, std::min(windows.size[axis], end))};
}

// The windows, of `count`, that may reach position `place` of the image.
inline Range WindowsAt(const Windows& windows, int axis, int64_t place, int64_t count) {
  const int64_t padded = place + windows.padding[axis];
  const int64_t reach = (windows.size[axis] - 1) * windows.dilation[axis];
  const int64_t stride = windows.stride[axis];
  const int64_t begin = padded > reach ? CeilDivide(padded - reach, stride) : 0;
  return {begin, std::min(count, padded / stride + 1)};
}

// Columns of an image that are loaded at a time: few bytes may stand for a row of any length.
inline constexpr int64_t kBlockColumns = int64_t{1} << 16;

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

}  // namespace opserve::kernels
