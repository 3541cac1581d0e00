#include "kernels/cpu/narrow_depthwise.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/transpose_plane.h"

namespace opserve::kernels {
namespace {

// Channels that are computed together.
constexpr int64_t kBlockChannels = kLanes;

// Elements of one image of the channels: those that results see, with zeros around and between; as
// they are given; the results.
struct NarrowPlan {
  explicit NarrowPlan(const DepthwiseConvolution& convolution)
      : given(PlaneAxes(convolution.images.tensor.layout).extents),
        results(PlaneAxes(convolution.out.layout).extents) {
    for (int d = 0; d < 2; ++d) {
      seen[d] = (results[d] - 1) * convolution.windows.stride[d] +
                (convolution.windows.extents[d] - 1) * convolution.windows.dilation[d] + 1;
    }
  }

  // Transposing takes squares of 8; fewer channels leave lanes empty.
  bool is_better(int64_t channels) const {
    return kLanes >= 8 && results[1] <= kLanes && given[1] <= 2 * kLanes &&
           channels >= kLanes / 2 && fits();
  }
  bool fits() const {
    constexpr int64_t kMostPlaces = kMostImageElements / kBlockChannels / 3;
    for (const Plane& plane : {seen, given, results}) {
      if (plane[1] <= 0 || plane[0] > kMostPlaces / plane[1]) return false;
    }
    return true;
  }

  Plane given;
  Plane results;
  Plane seen = {};
};

// kPlaces results of a line, one vector each, from those that the first one sees on.
template <int kPlaces>
void ConvolvePlaces(const DepthwiseWindows& windows, const NarrowPlan& plan, const float* seen,
                    const float* weights, const float* biases, float* results) {
  FloatVector sums[kPlaces];
  for (FloatVector& sum : sums) sum = Load(biases);
  const int64_t step = windows.stride[1] * kBlockChannels;
  for (int64_t i = 0; i < windows.extents[0]; ++i) {
    const float* tap = seen + i * windows.dilation[0] * plan.seen[1] * kBlockChannels;
    for (int64_t j = 0; j < windows.extents[1]; ++j) {
      const FloatVector weight = Load(weights);
      weights += kBlockChannels;
#pragma GCC unroll 7
      for (int place = 0; place < kPlaces; ++place) {
        sums[place] += weight * Load(tap + place * step);
      }
      tap += windows.dilation[1] * kBlockChannels;
    }
  }
  std::memcpy(results, sums, sizeof(sums));
}

// Blocks of channels, each of one image.
class NarrowImages {
 public:
  NarrowImages(const DepthwiseConvolution& convolution, const NarrowPlan& plan,
               const void* const* inputs, void* const* outputs)
      : convolution_(convolution), plan_(plan), inputs_(inputs), outputs_(outputs) {
    // What results see around and between the images' elements stays 0.
    std::fill_n(seen_, plan.seen[0] * plan.seen[1] * kBlockChannels, 0.0f);
  }

  void LoadWeights(int64_t channel, int64_t count) {
    const int64_t num_taps = convolution_.num_taps();
    std::fill_n(weights_, num_taps * kBlockChannels, 0.0f);
    std::fill_n(biases_, kBlockChannels, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      LoadTaps(convolution_, inputs_, channel + i, weights_ + i, kBlockChannels);
      biases_[i] = LoadBias(convolution_, inputs_, channel + i);
    }
  }

  void Run(int64_t image, int64_t channel, int64_t count) {
    LoadImages(image, channel, count);
    const DepthwiseWindows& windows = convolution_.windows;
    for (int64_t y = 0; y < plan_.results[0]; ++y) {
      const auto at = [&](int64_t x) {
        return seen_ +
               (y * windows.stride[0] * plan_.seen[1] + x * windows.stride[1]) * kBlockChannels;
      };
      float* line = vectors_ + y * plan_.results[1] * kBlockChannels;
      const int64_t width = plan_.results[1];
      int64_t x = 0;
      for (; x + 7 <= width; x += 7) Compute<7>(at(x), line + x * kBlockChannels);
      for (; x + 4 <= width; x += 4) Compute<4>(at(x), line + x * kBlockChannels);
      for (; x < width; ++x) Compute<1>(at(x), line + x * kBlockChannels);
    }
    Store(image, channel, count);
  }

 private:
  template <int kPlaces>
  void Compute(const float* seen, float* results) const {
    ConvolvePlaces<kPlaces>(convolution_.windows, plan_, seen, weights_, biases_, results);
  }

  void LoadImages(int64_t image, int64_t channel, int64_t count) {
    const ZeroedImages& images = convolution_.images;
    const Layout& layout = images.tensor.layout;
    const PlaneAxes axes(layout);
    const int64_t places = plan_.given[0] * plan_.given[1];
    VisitAnyElement(layout.dtype, [&]<typename Element>(Element) {
      const auto* elements = static_cast<const Element*>(inputs_[images.tensor.address]) +
                             image * layout.strides[0] + channel * layout.strides[1];
      for (int64_t i = 0; i < count; ++i) {
        LoadPlane(elements + i * layout.strides[1], axes, planes_ + i * places);
      }
    });
    std::fill_n(planes_ + count * places, (kBlockChannels - count) * places, 0.0f);
    TransposePlane(planes_, places, places, kBlockChannels, vectors_, kBlockChannels);
    const auto inside = [&](int d, int64_t place) { return place >= 0 && place < plan_.seen[d]; };
    for (int64_t y = 0; y < plan_.given[0]; ++y) {
      const int64_t line = images.begin[0] + y * images.step[0];
      if (!inside(0, line)) continue;
      for (int64_t x = 0; x < plan_.given[1]; ++x) {
        const int64_t place = images.begin[1] + x * images.step[1];
        if (!inside(1, place)) continue;
        std::memcpy(seen_ + (line * plan_.seen[1] + place) * kBlockChannels,
                    vectors_ + (y * plan_.given[1] + x) * kBlockChannels, sizeof(FloatVector));
      }
    }
  }

  void Store(int64_t image, int64_t channel, int64_t count) {
    const TensorRef& out = convolution_.out;
    const PlaneAxes axes(out.layout);
    const int64_t places = plan_.results[0] * plan_.results[1];
    TransposePlane(vectors_, kBlockChannels, kBlockChannels, places, planes_, places);
    VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
      auto* elements = static_cast<Element*>(outputs_[out.address]) +
                       image * out.layout.strides[0] + channel * out.layout.strides[1];
      for (int64_t i = 0; i < count; ++i, elements += out.layout.strides[1]) {
        const float* plane = planes_ + i * places;
        if (axes.are_dense()) {
          StoreRun(plane, 1, places, elements, 1);
          continue;
        }
        for (int64_t y = 0; y < axes.extents[0]; ++y) {
          StoreRun(plane + y * axes.extents[1], 1, axes.extents[1], elements + y * axes.strides[0],
                   axes.strides[1]);
        }
      }
    });
  }

  template <typename Element>
  static void LoadPlane(const Element* elements, const PlaneAxes& axes, float* plane) {
    if (axes.are_dense()) return LoadRun(elements, 1, axes.extents[0] * axes.extents[1], plane);
    for (int64_t y = 0; y < axes.extents[0]; ++y) {
      LoadRun(elements + y * axes.strides[0], axes.strides[1], axes.extents[1],
              plane + y * axes.extents[1]);
    }
  }

  const DepthwiseConvolution& convolution_;
  const NarrowPlan& plan_;
  const void* const* const inputs_;
  void* const* const outputs_;
  alignas(64) float weights_[kMostTaps * kBlockChannels];  // tap by tap
  alignas(64) float biases_[kBlockChannels];
  alignas(64) float seen_[kMostImageElements / 3];
  alignas(64) float planes_[kMostImageElements / 3];   // line by line, channel by channel
  alignas(64) float vectors_[kMostImageElements / 3];  // place by place
};

// Units are images of the first block of channels, then of the second and so on.
void ConvolveNarrow(const DepthwiseConvolution& convolution, const NarrowPlan& plan, int64_t begin,
                    int64_t end, const void* const* inputs, void* const* outputs,
                    const TaskRunner& runner) {
  const int64_t num_images = convolution.out.layout.shape[0];
  NarrowImages images(convolution, plan, inputs, outputs);
  for (int64_t unit = begin; unit < end && !runner.MustStop(); ++unit) {
    const int64_t channel = unit / num_images * kBlockChannels;
    const int64_t count = std::min(kBlockChannels, convolution.out.layout.shape[1] - channel);
    if (unit == begin || unit % num_images == 0) images.LoadWeights(channel, count);
    images.Run(unit % num_images, channel, count);
  }
}

}  // namespace

std::unique_ptr<Kernel> MakeNarrowDepthwise(const DepthwiseConvolution& convolution) {
  const Layout& out = convolution.out.layout;
  const NarrowPlan plan(convolution);
  if (!plan.is_better(out.shape[1])) return nullptr;
  const DepthwiseWindows& windows = convolution.windows;
  const int64_t products =
      plan.results[0] * plan.results[1] * windows.extents[0] * windows.extents[1];
  const int64_t blocks = CeilDivide(out.shape[1], kBlockChannels) * out.shape[0];
  const int64_t per_task = UnitsPerTask(products * kBlockChannels);
  return MakePlannedKernel(
      out.shape[0] * out.shape[1] * products, 0,
      [convolution, plan, blocks, per_task](const void* const* inputs, void* const* outputs,
                                            void* /*workspace*/, TaskRunner& runner) {
        RunTasks(runner, CeilDivide(blocks, per_task), [&](int64_t task) {
          ConvolveNarrow(convolution, plan, task * per_task,
                         std::min((task + 1) * per_task, blocks), inputs, outputs, runner);
        });
      });
}

}  // namespace opserve::kernels
