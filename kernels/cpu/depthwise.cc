#include "kernels/cpu/depthwise.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/depthwise_plan.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/narrow_depthwise.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// Vectors of a strip of results, in one line or several: reading it goes beyond the line.
constexpr int64_t kMostVectors = 4;
// Vectors whose sums are float.
constexpr int64_t kBlockVectors = 32;

bool IsSinglePrecision(const TensorRef& tensor) {
  return !tensor.is_given() ||
         (IsFloating(tensor.layout.dtype) && tensor.layout.dtype != Dtype::kDouble);
}

// How lines of images lie in memory: each in as many parts as a window steps, so that the elements
// that neighbouring results see are neighbours.
struct LinePlan {
  LinePlan(const DepthwiseWindows& windows, const Plane& results, int64_t result_lines)
      : parts(windows.stride[1]),
        part_elements((results[1] - 1) +
                      (windows.extents[1] - 1) * windows.dilation[1] / windows.stride[1] + 2 +
                      kMostVectors / result_lines * kLanes),
        lines(std::bit_ceil<uint64_t>((windows.extents[0] - 1) * windows.dilation[0] + 1 +
                                      (result_lines - 1) * windows.stride[0])) {}

  int64_t line_elements() const { return parts * part_elements; }
  bool fits() const {
    return parts <= kMostImageElements && part_elements <= kMostImageElements &&
           lines <= kMostImageElements && line_elements() <= kMostImageElements / lines;
  }

  int64_t parts;
  int64_t part_elements;
  int64_t lines;  // at least those that are seen at a time; a power of two
};

// The lines of one image, read as they are needed.
class Lines {
 public:
  // Elements of images always go to the same places of a line, so all others stay zero.
  Lines(const ZeroedImages& images, const LinePlan& plan, float* memory)
      : images_(images), axes_(images.tensor.layout), plan_(plan), memory_(memory) {
    std::fill_n(memory, plan.lines * plan.line_elements(), 0.0f);
  }

  // Begins with another image; `address`: its first element.
  void Begin(const void* address) {
    address_ = address;
    loaded_ = 0;
  }

  // Loads all lines before `end` that are not there; those of the last plan_.lines stay.
  void LoadUntil(int64_t end) {
    for (int64_t y = std::max(loaded_, end - plan_.lines); y < end; ++y) LoadLine(y);
    loaded_ = std::max(loaded_, end);
  }

  const float* Line(int64_t y) const { return memory_ + Place(y); }

 private:
  int64_t Place(int64_t y) const { return (y & (plan_.lines - 1)) * plan_.line_elements(); }

  void LoadLine(int64_t y) {
    float* line = memory_ + Place(y);
    const int64_t place = y - images_.begin[0];
    const int64_t step = images_.step[0];
    if (place < 0 || place % step != 0 || place / step >= axes_.extents[0]) {
      std::fill_n(line, plan_.line_elements(), 0.0f);
      return;
    }
    VisitAnyElement(images_.tensor.layout.dtype, [&]<typename Element>(Element) {
      const auto* elements =
          static_cast<const Element*>(address_) + place / step * axes_.strides[0];
      for (int64_t part = 0; part < plan_.parts; ++part) LoadPart(elements, part, line);
    });
  }

  // The elements whose places are `part` more than a multiple of the parts. Either there is one
  // part, or one step.
  template <typename Element>
  void LoadPart(const Element* elements, int64_t part, float* line) {
    const int64_t begin = images_.begin[1];
    const int64_t step = images_.step[1];
    const int64_t parts = plan_.parts;
    // The first element at a place that is not negative, and of this part.
    int64_t first = begin < 0 ? CeilDivide(-begin, step) : 0;
    if (parts > 1) first += ((part - begin - first) % parts + parts) % parts;
    const int64_t place = (begin + first * step) / parts;
    const int64_t room = CeilDivide(plan_.part_elements - place, step);
    const int64_t count = std::min(CeilDivide(axes_.extents[1] - first, parts), room);
    if (count <= 0) return;
    const int64_t stride = axes_.strides[1];
    LoadRun(elements + first * stride, stride * parts, count,
            line + part * plan_.part_elements + place, step);
  }

  const ZeroedImages& images_;
  const PlaneAxes axes_;
  const LinePlan& plan_;
  float* const memory_;
  const void* address_ = nullptr;
  int64_t loaded_ = 0;  // lines before it were loaded
};

// Where an element of a window is in the line of the first place's part 0.
int64_t TapOffset(const DepthwiseWindows& windows, const LinePlan& plan, int64_t x) {
  const int64_t place = x * windows.dilation[1];
  return place % plan.parts * plan.part_elements + place / plan.parts;
}

template <typename Pointer>
Pointer AddressOf(const TensorRef& tensor, Pointer const* addresses, int64_t offset) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(addresses[tensor.address]) + offset * ElementBytes(tensor.layout.dtype);
}

// kRows lines of results, kVectors vectors of each, from line y and place x on.
template <int kRows, int kVectors>
void ConvolveStrip(const DepthwiseConvolution& convolution, const Lines& lines, const int64_t* taps,
                   const float* weights, float bias, int64_t y, int64_t x, float* results,
                   int64_t pitch) {
  const DepthwiseWindows& windows = convolution.windows;
  FloatVector sums[kRows][kVectors];
  for (auto& row : sums) {
    for (FloatVector& sum : row) sum = FloatVector{} + bias;
  }
  for (int64_t i = 0; i < windows.extents[0]; ++i) {
    const float* seen[kRows];
    for (int row = 0; row < kRows; ++row) {
      seen[row] = lines.Line((y + row) * windows.stride[0] + i * windows.dilation[0]) + x;
    }
    for (int64_t j = 0; j < windows.extents[1]; ++j) {
      const float weight = *weights++;
      const int64_t tap = taps[j];
#pragma GCC unroll 4
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
        for (int k = 0; k < kVectors; ++k) {
          sums[row][k] += weight * Load(seen[row] + tap + k * kLanes);
        }
      }
    }
  }
  for (int row = 0; row < kRows; ++row) {
    std::memcpy(results + row * pitch, sums[row], sizeof(sums[row]));
  }
}

// One image of one channel.
template <int kRows, int kVectors>
void ConvolveImage(const DepthwiseConvolution& convolution, Lines& lines, const int64_t* taps,
                   const float* weights, float bias, void* out, const TaskRunner& runner) {
  constexpr int64_t kWidth = kVectors * kLanes;
  const DepthwiseWindows& windows = convolution.windows;
  const PlaneAxes axes(convolution.out.layout);
  const int64_t reach = (windows.extents[0] - 1) * windows.dilation[0] + 1;
  float results[kRows * kWidth];
  for (int64_t y = 0; y < axes.extents[0]; y += kRows) {
    if (runner.MustStop()) return;
    lines.LoadUntil((y + kRows - 1) * windows.stride[0] + reach);
    const int64_t num_rows = std::min<int64_t>(kRows, axes.extents[0] - y);
    for (int64_t x = 0; x < axes.extents[1]; x += kWidth) {
      ConvolveStrip<kRows, kVectors>(convolution, lines, taps, weights, bias, y, x, results,
                                     kWidth);
      const int64_t count = std::min(kWidth, axes.extents[1] - x);
      VisitAnyElement(convolution.out.layout.dtype, [&]<typename Element>(Element) {
        auto* elements = static_cast<Element*>(out) + x * axes.strides[1];
        for (int64_t row = 0; row < num_rows; ++row) {
          StoreRun(results + row * kWidth, 1, count, elements + (y + row) * axes.strides[0],
                   axes.strides[1]);
        }
      });
    }
  }
}

// Strips are wide where results are, and high where they are narrow: there is always enough to
// compute at a time.
int64_t RowsOfStrip(int64_t width) { return width > 2 * kLanes ? 1 : width > kLanes ? 2 : 4; }

void ConvolveImages(const DepthwiseConvolution& convolution, const LinePlan& plan, int64_t begin,
                    int64_t end, const void* const* inputs, void* const* outputs,
                    const TaskRunner& runner) {
  alignas(64) float memory[kMostImageElements];
  float weights[kMostTaps];
  int64_t taps[kMostTaps];
  const DepthwiseWindows& windows = convolution.windows;
  const Layout& from = convolution.images.tensor.layout;
  const Layout& to = convolution.out.layout;
  for (int64_t j = 0; j < windows.extents[1]; ++j) taps[j] = TapOffset(windows, plan, j);
  Lines lines(convolution.images, plan, memory);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t image = unit / to.shape[1];
    const int64_t channel = unit % to.shape[1];
    LoadTaps(convolution, inputs, channel, weights, 1);
    const float bias = LoadBias(convolution, inputs, channel);
    lines.Begin(AddressOf(convolution.images.tensor, inputs,
                          image * from.strides[0] + channel * from.strides[1]));
    void* out =
        AddressOf(convolution.out, outputs, image * to.strides[0] + channel * to.strides[1]);
    switch (RowsOfStrip(to.shape[to.rank - 1])) {
      case 1:
        ConvolveImage<1, 4>(convolution, lines, taps, weights, bias, out, runner);
        break;
      case 2:
        ConvolveImage<2, 2>(convolution, lines, taps, weights, bias, out, runner);
        break;
      default:
        ConvolveImage<4, 1>(convolution, lines, taps, weights, bias, out, runner);
    }
  }
}

// sums[j] += the products of `gradient` and what it sees at the offsets taps[j], for kTaps of them;
// of the last vector only the places in `mask`.
template <int kTaps>
void AddLine(const float* gradient, const float* seen, const int64_t* taps, int64_t num_vectors,
             const IntVector& mask, FloatVector* sums) {
  FloatVector parts[kTaps];
  for (int j = 0; j < kTaps; ++j) parts[j] = sums[j];
  for (int64_t k = 0; k < num_vectors - 1; ++k) {
    const FloatVector factor = Load(gradient + k * kLanes);
#pragma GCC unroll 4
    for (int j = 0; j < kTaps; ++j) parts[j] += factor * Load(seen + taps[j] + k * kLanes);
  }
  // Where there is no gradient an infinity may be seen.
  const int64_t last = (num_vectors - 1) * kLanes;
  const FloatVector factor = Load(gradient + last);
  for (int j = 0; j < kTaps; ++j) {
    const auto bits = std::bit_cast<IntVector>(Load(seen + taps[j] + last)) & mask;
    parts[j] += factor * std::bit_cast<FloatVector>(bits);
  }
  for (int j = 0; j < kTaps; ++j) sums[j] = parts[j];
}

void AddTaps(const float* gradient, const float* seen, const int64_t* taps, int64_t num_taps,
             int64_t num_vectors, const IntVector& mask, FloatVector* sums) {
  int64_t j = 0;
  for (; j + 4 <= num_taps; j += 4) {
    AddLine<4>(gradient, seen, taps + j, num_vectors, mask, sums + j);
  }
  switch (num_taps - j) {
    case 3:
      return AddLine<3>(gradient, seen, taps + j, num_vectors, mask, sums + j);
    case 2:
      return AddLine<2>(gradient, seen, taps + j, num_vectors, mask, sums + j);
    case 1:
      return AddLine<1>(gradient, seen, taps + j, num_vectors, mask, sums + j);
    default:
      return;
  }
}

struct WeightGradient {
  ZeroedImages images;
  DepthwiseWindows windows;
  TensorRef gradient;
  TensorRef out;
};

// The weights' gradients of one channel.
void SumChannel(const WeightGradient& plan, const LinePlan& line_plan, int64_t channel,
                const void* const* inputs, void* const* outputs, const TaskRunner& runner,
                float* memory) {
  typedef double DoubleVector __attribute__((vector_size(2 * sizeof(FloatVector))));
  const DepthwiseWindows& windows = plan.windows;
  const Layout& from = plan.images.tensor.layout;
  const Layout& gradient = plan.gradient.layout;
  const PlaneAxes axes(gradient);
  const int64_t num_taps = windows.extents[0] * windows.extents[1];
  const int64_t num_vectors = CeilDivide(axes.extents[1], kLanes);
  int64_t taps[kMostTaps];
  for (int64_t j = 0; j < windows.extents[1]; ++j) taps[j] = TapOffset(windows, line_plan, j);
  const IntVector all = IntVector{} - 1;
  IntVector mask;
  for (int i = 0; i < kLanes; ++i)
    mask[i] = (num_vectors - 1) * kLanes + i < axes.extents[1] ? -1 : 0;
  FloatVector sums[kMostTaps] = {};
  DoubleVector totals[kMostTaps] = {};
  int64_t vectors = 0;  // whose products are in `sums`
  const auto add_up = [&] {
    for (int64_t tap = 0; tap < num_taps; ++tap) {
      totals[tap] += __builtin_convertvector(sums[tap], DoubleVector);
      sums[tap] = FloatVector{};
    }
    vectors = 0;
  };
  float* const line = memory;  // of the gradient, with zeros behind
  std::fill_n(line, num_vectors * kLanes, 0.0f);
  Lines lines(plan.images, line_plan, memory + num_vectors * kLanes);
  for (int64_t image = 0; image < gradient.shape[0]; ++image) {
    lines.Begin(
        AddressOf(plan.images.tensor, inputs, image * from.strides[0] + channel * from.strides[1]));
    for (int64_t y = 0; y < axes.extents[0]; ++y) {
      if (runner.MustStop()) return;
      VisitAnyElement(gradient.dtype, [&]<typename Element>(Element) {
        const auto* elements = static_cast<const Element*>(inputs[plan.gradient.address]);
        LoadRun(elements + image * gradient.strides[0] + channel * gradient.strides[1] +
                    y * axes.strides[0],
                axes.strides[1], axes.extents[1], line);
      });
      const int64_t first = y * windows.stride[0];
      lines.LoadUntil(first + (windows.extents[0] - 1) * windows.dilation[0] + 1);
      for (int64_t begin = 0; begin < num_vectors; begin += kBlockVectors) {
        const int64_t count = std::min(kBlockVectors, num_vectors - begin);
        const int64_t x = begin * kLanes;
        for (int64_t i = 0; i < windows.extents[0]; ++i) {
          AddTaps(line + x, lines.Line(first + i * windows.dilation[0]) + x, taps,
                  windows.extents[1], count, begin + count == num_vectors ? mask : all,
                  sums + i * windows.extents[1]);
        }
        vectors += count;
        if (vectors >= kBlockVectors) add_up();
      }
    }
  }
  add_up();
  const PlaneAxes to(plan.out.layout);
  for (int64_t tap = 0; tap < num_taps; ++tap) {
    double total = 0;
    for (int i = 0; i < kLanes; ++i) total += totals[tap][i];
    StoreNumber(static_cast<float>(total), plan.out.layout.dtype, outputs[plan.out.address],
                channel * plan.out.layout.strides[0] + tap / windows.extents[1] * to.strides[0] +
                    tap % windows.extents[1] * to.strides[1]);
  }
}

}  // namespace

std::unique_ptr<Kernel> MakeDepthwise(const ZeroedImages& images, const DepthwiseWindows& windows,
                                      const TensorRef& weight, bool is_backwards,
                                      const TensorRef& bias, const TensorRef& out) {
  const PlaneAxes results(out.layout);
  const int64_t num_taps = windows.extents[0] * windows.extents[1];
  const LinePlan plan(windows, results.extents, RowsOfStrip(results.extents[1]));
  if (num_taps == 0 || num_taps > kMostTaps || !plan.fits()) return nullptr;
  for (const TensorRef& tensor : {images.tensor, weight, bias, out}) {
    if (!IsSinglePrecision(tensor)) return nullptr;
  }
  const DepthwiseConvolution convolution{images, windows, weight, is_backwards, bias, out};
  const int64_t units = out.layout.shape[0] * out.layout.shape[1];
  const int64_t places = results.extents[0] * results.extents[1];
  if (auto kernel = MakeNarrowDepthwise(convolution); kernel != nullptr) return kernel;
  const int64_t per_task = UnitsPerTask(places * num_taps);
  return MakePlannedKernel(
      units * places * num_taps, 0,
      [convolution, plan, units, per_task](const void* const* inputs, void* const* outputs,
                                           void* /*workspace*/, TaskRunner& runner) {
        RunTasks(runner, CeilDivide(units, per_task), [&](int64_t task) {
          ConvolveImages(convolution, plan, task * per_task, std::min((task + 1) * per_task, units),
                         inputs, outputs, runner);
        });
      });
}

std::unique_ptr<Kernel> MakeDepthwiseWeight(const ZeroedImages& images,
                                            const DepthwiseWindows& windows,
                                            const TensorRef& gradient, const TensorRef& out) {
  const PlaneAxes places(gradient.layout);
  const int64_t num_taps = windows.extents[0] * windows.extents[1];
  const LinePlan plan(windows, places.extents, /*result_lines=*/1);
  if (num_taps == 0 || num_taps > kMostTaps || !plan.fits()) return nullptr;
  for (const TensorRef& tensor : {images.tensor, gradient, out}) {
    if (!IsSinglePrecision(tensor)) return nullptr;
  }
  const WeightGradient sums{images, windows, gradient, out};
  const int64_t channels = out.layout.shape[0];
  const int64_t products =
      gradient.layout.shape[0] * places.extents[0] * places.extents[1] * num_taps;
  const int64_t per_task = UnitsPerTask(products);
  return MakePlannedKernel(
      channels * products, 0,
      [sums, plan, channels, per_task](const void* const* inputs, void* const* outputs,
                                       void* /*workspace*/, TaskRunner& runner) {
        RunTasks(runner, CeilDivide(channels, per_task), [&](int64_t task) {
          // The line of the gradient is no longer than one of the images.
          alignas(64) float memory[2 * kMostImageElements];
          for (int64_t c = task * per_task; c < std::min((task + 1) * per_task, channels); ++c) {
            SumChannel(sums, plan, c, inputs, outputs, runner, memory);
          }
        });
      });
}

}  // namespace opserve::kernels
