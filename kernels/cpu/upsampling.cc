// Resizing of images and its gradients.
//
// Where an element of the result lies in the image is found in float32, as PyTorch does. The first
// columns are looked up once for all rows of a task; a table of all of them would take many times
// the memory of a tensor that few bytes stand for. Rows are tasks; a row of a gradient gathers from
// the rows that took it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// An element of the result along one axis: (1 - share) * image[low] + share * image[high].
struct Tap {
  int64_t low = 0;
  int64_t high = 0;
  float share = 0;
};

// An element of an image of `extent`, from a place that is not negative.
int64_t ElementAt(float place, int64_t extent) {
  return std::clamp<int64_t>(TruncatedTo<int64_t>(place), 0, extent - 1);
}

// One axis of a result: where its elements lie in the image. Neither Tap::low nor Tap::high ever
// goes back from one element to the next.
class Axis {
 public:
  static Axis Nearest(int64_t extent, int64_t count, double scale) {
    Axis axis;
    axis.extent_ = extent;
    axis.count_ = count;
    axis.kind_ = count == extent && scale <= 0 ? Kind::kCopied : Kind::kNearest;
    axis.step_ = StepOf(extent, count, scale);
    return axis;
  }

  static Axis Linear(int64_t extent, int64_t count, double scale, bool aligns_corners) {
    Axis axis;
    axis.extent_ = extent;
    axis.count_ = count;
    axis.kind_ = aligns_corners ? Kind::kAligned : Kind::kLinear;
    axis.step_ = StepOf(extent, count, scale);
    if (aligns_corners) {
      axis.step_ =
          count > 1 ? static_cast<float>(extent - 1) / static_cast<float>(count - 1) : 0.0f;
    }
    return axis;
  }

  Tap At(int64_t i) const {
    if (kind_ == Kind::kCopied) return {i, i, 0};
    const float index = static_cast<float>(i);
    if (kind_ == Kind::kNearest) {
      const int64_t element = ElementAt(index * step_, extent_);
      return {element, element, 0};
    }
    const float place =
        kind_ == Kind::kAligned ? index * step_ : std::max((index + 0.5f) * step_ - 0.5f, 0.0f);
    Tap tap;
    tap.low = ElementAt(place, extent_);
    tap.high = std::min(tap.low + 1, extent_ - 1);
    tap.share = std::clamp(place - static_cast<float>(tap.low), 0.0f, 1.0f);
    return tap;
  }

  // The first element that takes `element` of the image or one after it, and the first that takes
  // only such after it.
  int64_t BeginOf(int64_t element) const {
    return First([&](int64_t i) { return At(i).high >= element; });
  }
  int64_t EndOf(int64_t element) const {
    return First([&](int64_t i) { return At(i).low > element; });
  }

 private:
  enum class Kind { kCopied, kNearest, kLinear, kAligned };

  static float StepOf(int64_t extent, int64_t count, double scale) {
    if (scale > 0) return static_cast<float>(1.0 / scale);
    return static_cast<float>(extent) / static_cast<float>(count);
  }

  // The first of which `holds` is true, which then is true of all after it.
  template <typename Condition>
  int64_t First(const Condition& holds) const {
    int64_t low = 0;
    int64_t high = count_;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (holds(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  int64_t extent_ = 1;
  int64_t count_ = 1;
  Kind kind_ = Kind::kCopied;
  float step_ = 1;
};

// The columns' taps in one task.
class ColumnTaps {
 public:
  // `axis` outlives it.
  ColumnTaps(const Axis& axis, int64_t width) : axis_(axis) {
    held_.reserve(std::min(width, kMostHeld));
    for (int64_t x = 0; x < std::min(width, kMostHeld); ++x) held_.push_back(axis.At(x));
    if (width <= kMostHeld) together_ = Together();
  }

  Tap At(int64_t x) const { return x < kMostHeld ? held_[x] : axis_.At(x); }

  // So many columns side by side take each element of the image; 0: not the same number, or not
  // known.
  int64_t together() const { return together_; }

 private:
  static constexpr int64_t kMostHeld = 4096;

  // Of all columns, which are held.
  int64_t Together() const {
    const auto width = static_cast<int64_t>(held_.size());
    int64_t together = 0;
    while (together < width && held_[together].low == 0) ++together;
    if (together == 0 || width % together != 0) return 0;
    for (int64_t x = 0; x < width; ++x) {
      if (held_[x].low != x / together) return 0;
    }
    return together;
  }

  const Axis& axis_;
  std::vector<Tap> held_;
  int64_t together_ = 0;
};

struct ResizePlan {
  TensorRef images;
  TensorRef resized;
  AxisGroup image_planes;
  AxisGroup resized_planes;
  Axis rows;
  Axis columns;
  bool is_nearest = false;

  int64_t height() const { return images.layout.shape[2]; }
  int64_t width() const { return images.layout.shape[3]; }
  int64_t resized_height() const { return resized.layout.shape[2]; }
  int64_t resized_width() const { return resized.layout.shape[3]; }
};

// `scales`: the attribute with the factor of the height, before that of the width; -1: none.
ResizePlan PlanResize(const Call& call, const TensorRef& images, const TensorRef& resized,
                      bool is_nearest, int scales, bool aligns_corners) {
  ResizePlan plan;
  plan.images = images;
  plan.resized = resized;
  plan.image_planes = GroupOf(images.layout, 0, 2);
  plan.resized_planes = GroupOf(resized.layout, 0, 2);
  plan.is_nearest = is_nearest;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t extent = images.layout.shape[2 + axis];
    const int64_t count = resized.layout.shape[2 + axis];
    const double scale = scales < 0 ? 0.0 : RealAttribute(call, static_cast<size_t>(scales + axis));
    (axis == 0 ? plan.rows : plan.columns) =
        is_nearest ? Axis::Nearest(extent, count, scale)
                   : Axis::Linear(extent, count, scale, aligns_corners);
  }
  return plan;
}

// Calls row(plane, row) for all planes and rows, each of `cost` elements, where each task has a
// `row` of its own from make_row(taps). `width`: of the result, to which the columns' taps belong.
template <typename MakeRow>
void ForEachRow(const Axis& columns, int64_t width, int64_t num_rows, int64_t height, int64_t cost,
                TaskRunner& runner, MakeRow make_row) {
  const int64_t per_task = PiecesPerTask(cost);
  RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
    const ColumnTaps taps(columns, width);
    auto row = make_row(taps);
    const int64_t end = std::min((task + 1) * per_task, num_rows);
    for (int64_t i = task * per_task; i < end; ++i) row(i / height, i % height);
  });
}

// Calls column(x) for all of `width` columns, unless the kernel must stop; whether it need not.
template <typename Column>
bool ForEachColumn(int64_t width, const TaskRunner& runner, const Column& column) {
  constexpr int64_t kColumnsPerLook = int64_t{1} << 16;
  for (int64_t begin = 0; begin < width; begin += kColumnsPerLook) {
    if (runner.MustStop()) return false;
    const int64_t end = std::min(begin + kColumnsPerLook, width);
    for (int64_t x = begin; x < end; ++x) column(x);
  }
  return true;
}

template <typename Element>
const Element* RowOf(const TensorRef& tensor, const AxisGroup& planes, const void* address,
                     int64_t plane, int64_t row) {
  return static_cast<const Element*>(address) + AxisCursor(planes, plane).offset() +
         row * tensor.layout.strides[2];
}

// line[x] += factor * element x * stride from `from` on.
template <typename Element, typename C>
void AddRun(const Element* from, int64_t stride, int64_t count, C factor, C* __restrict line) {
  if (stride == 1) {  // a loop of its own, which becomes vectors
    for (int64_t x = 0; x < count; ++x) line[x] += factor * NumberOf<C>(from[x]);
  } else {
    for (int64_t x = 0; x < count; ++x) line[x] += factor * NumberOf<C>(from[x * stride]);
  }
}

// Forwards: elements are copied, or four of them weighted.
std::unique_ptr<Kernel> MakeResize(const ResizePlan& plan) {
  const int64_t count = NumElements(plan.resized.layout);
  return MakePlannedKernel(
      count, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        const int64_t width = plan.resized_width();
        const int64_t from_stride = plan.images.layout.strides[3];
        const int64_t to_stride = plan.resized.layout.strides[3];
        VisitAnyElement(plan.images.layout.dtype, [&]<typename Element>(Element) {
          const auto make_row = [&](const ColumnTaps& taps) {
            return [&](int64_t plane, int64_t y) {
              const Tap row = plan.rows.At(y);
              const auto* low = RowOf<Element>(plan.images, plan.image_planes,
                                               inputs[plan.images.address], plane, row.low);
              const auto* high = RowOf<Element>(plan.images, plan.image_planes,
                                                inputs[plan.images.address], plane, row.high);
              auto* to = const_cast<Element*>(RowOf<Element>(
                  plan.resized, plan.resized_planes, outputs[plan.resized.address], plane, y));
              if (plan.is_nearest) {
                ForEachColumn(width, runner, [&](int64_t x) {
                  to[x * to_stride] = low[taps.At(x).low * from_stride];
                });
                return;
              }
              using C = std::conditional_t<std::is_same_v<Element, double>, double, float>;
              const C down = row.share;
              ForEachColumn(width, runner, [&](int64_t x) {
                const Tap column = taps.At(x);
                const C right = column.share;
                const auto between = [&](const Element* line) {
                  return (1 - right) * NumberOf<C>(line[column.low * from_stride]) +
                         right * NumberOf<C>(line[column.high * from_stride]);
                };
                to[x * to_stride] =
                    ElementOf<Element>((1 - down) * between(low) + down * between(high));
              });
            };
          };
          ForEachRow(plan.columns, width, count / width, plan.resized_height(), width, runner,
                     make_row);
        });
      });
}

// sums[x] += the elements of a line that go to it, so many side by side.
template <typename C, typename Count>
void AddTogether(const C* line, Count together, int64_t count, C* __restrict sums) {
  for (int64_t x = 0; x < count; ++x) {
    C sum = sums[x];
    for (int64_t j = 0; j < together; ++j) sum += line[x * together + j];
    sums[x] = sum;
  }
}

// The gradient of rows of images, which gather from the rows of the result that took them. Belongs
// to one task.
template <typename Element>
class GradientRows {
 public:
  // `plan` and `taps` outlive it.
  GradientRows(const ResizePlan& plan, const ColumnTaps& taps, const void* const* inputs,
               void* const* outputs, const TaskRunner& runner)
      : plan_(plan),
        taps_(taps),
        inputs_(inputs),
        outputs_(outputs),
        runner_(runner),
        sums_(plan.width()) {}

  void operator()(int64_t plane, int64_t y) {
    MoveTo(y);
    std::fill(sums_.begin(), sums_.end(), C{0});
    // The rows of the result that took a row of the image follow one another. They are
    // added up first, in parts of their columns.
    C line[kPart];
    for (int64_t begin = 0; begin < plan_.resized_width(); begin += kPart) {
      const int64_t count = std::min(kPart, plan_.resized_width() - begin);
      if (!AddRows(plane, y, begin, count, line)) return;
      AddColumns(begin, count, line);
    }
    VisitAnyElement(plan_.images.layout.dtype, [&]<typename Out>(Out) {
      auto* to = const_cast<Out*>(
          RowOf<Out>(plan_.images, plan_.image_planes, outputs_[plan_.images.address], plane, y));
      StoreRun(sums_.data(), 1, plan_.width(), to, plan_.images.layout.strides[3]);
    });
  }

 private:
  using C = std::conditional_t<std::is_same_v<Element, double>, double, float>;
  static constexpr int64_t kPart = 1024;

  // Finds the rows of the result that took row y: near those of the row before, if that was the
  // last one.
  void MoveTo(int64_t y) {
    if (y_ < 0 || y != y_ + 1) {
      first_ = plan_.rows.BeginOf(y);
      end_ = plan_.rows.EndOf(y);
    }
    const int64_t count = plan_.resized_height();
    while (first_ < count && plan_.rows.At(first_).high < y) ++first_;
    while (end_ < count && plan_.rows.At(end_).low <= y) ++end_;
    y_ = y;
  }

  // line[x] = the sum of column begin + x of these rows. False: the kernel must stop.
  bool AddRows(int64_t plane, int64_t y, int64_t begin, int64_t count, C* line) const {
    const int64_t stride = plan_.resized.layout.strides[3];
    std::fill_n(line, count, C{0});
    for (int64_t i = first_; i < end_; ++i) {
      if (runner_.MustStop()) return false;
      const Tap row = plan_.rows.At(i);
      const auto* from = RowOf<Element>(plan_.resized, plan_.resized_planes,
                                        inputs_[plan_.resized.address], plane, i) +
                         begin * stride;
      const C share = row.share;
      const C down = (row.low == y ? 1 - share : C{0}) + (row.high == y ? share : C{0});
      AddRun(from, stride, count, plan_.is_nearest ? C{1} : down, line);
    }
    return true;
  }

  // Adds column begin + x of the result, of which line[x] is the sum, to those that it took.
  void AddColumns(int64_t begin, int64_t count, const C* line) {
    const int64_t together = taps_.together();
    if (!plan_.is_nearest) {
      for (int64_t x = 0; x < count; ++x) {
        const Tap column = taps_.At(begin + x);
        const C right = column.share;
        sums_[column.low] += (1 - right) * line[x];
        sums_[column.high] += right * line[x];
      }
    } else if (together > 0 && kPart % together == 0) {
      C* const sums = sums_.data() + begin / together;
      if (together == 2) {
        AddTogether(line, std::integral_constant<int64_t, 2>(), count / 2, sums);
      } else {
        AddTogether(line, together, count / together, sums);
      }
    } else {
      // Neighbours mostly go to one element: in a register, none waits for a store.
      int64_t element = taps_.At(begin).low;
      C sum = 0;
      for (int64_t x = 0; x < count; ++x) {
        const int64_t next = taps_.At(begin + x).low;
        if (next != element) {
          sums_[element] += sum;
          element = next;
          sum = 0;
        }
        sum += line[x];
      }
      sums_[element] += sum;
    }
  }

  const ResizePlan& plan_;
  const ColumnTaps& taps_;
  const void* const* const inputs_;
  void* const* const outputs_;
  const TaskRunner& runner_;
  std::vector<C> sums_;
  int64_t y_ = -1;
  int64_t first_ = 0;
  int64_t end_ = 0;
};

// Backwards.
std::unique_ptr<Kernel> MakeResizeGradient(const ResizePlan& plan) {
  const int64_t count = NumElements(plan.images.layout);
  const int64_t cost =
      plan.width() + plan.resized_width() * CeilDivide(plan.resized_height(), plan.height());
  return MakePlannedKernel(
      std::max(count, NumElements(plan.resized.layout)), 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        VisitAnyElement(plan.resized.layout.dtype, [&]<typename Element>(Element) {
          ForEachRow(plan.columns, plan.resized_width(), count / plan.width(), plan.height(), cost,
                     runner, [&](const ColumnTaps& taps) {
                       return GradientRows<Element>(plan, taps, inputs, outputs, runner);
                     });
        });
      });
}

// Attributes: output_size, then the factors for V2.
template <int kScales>
std::unique_ptr<Kernel> MakeNearest(const Call& call) {
  return MakeResize(PlanResize(call, InputRef(call, 0), OutputRef(call, 0), true, kScales, false));
}
// Attributes: output_size, input_size, factors.
std::unique_ptr<Kernel> MakeNearestBackward(const Call& call) {
  return MakeResizeGradient(
      PlanResize(call, OutputRef(call, 0), InputRef(call, 0), true, 2, false));
}
// Attributes: output_size, align_corners, factors.
std::unique_ptr<Kernel> MakeBilinear(const Call& call) {
  return MakeResize(
      PlanResize(call, InputRef(call, 0), OutputRef(call, 0), false, 2, BoolAttribute(call, 1)));
}
// Attributes: output_size, input_size, align_corners, factors.
std::unique_ptr<Kernel> MakeBilinearBackward(const Call& call) {
  return MakeResizeGradient(
      PlanResize(call, OutputRef(call, 0), InputRef(call, 0), false, 3, BoolAttribute(call, 2)));
}

}  // namespace

std::span<const KernelEntry> UpsamplingKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnUpsampleBilinear2d", &MakeBilinear},
      {"aclnnUpsampleBilinear2dBackward", &MakeBilinearBackward},
      {"aclnnUpsampleNearest2d", &MakeNearest<-1>},
      {"aclnnUpsampleNearest2dBackward", &MakeNearestBackward},
      {"aclnnUpsampleNearest2dV2", &MakeNearest<1>},
  };
  return kEntries;
}

}  // namespace opserve::kernels
