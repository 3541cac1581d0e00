// Convolution and its gradients, as products of matrices.
//
// All of them relate a wide tensor (the input of a convolution, the result of a transposed one), a
// narrow one and the windows [narrow channels, wide channels / groups, window]. The rows of one
// factor are found in a padded copy of the wide tensor by strides alone, as windows overlap there,
// so the columns of images are never written down. For the wide tensor the windows are read
// backwards over a padded copy of the narrow one. Where windows step by more than one, elements of
// the wide tensor whose places have the same remainder are a product of their own: each sees
// the part of the windows that reaches it. Groups of one channel have kernels of their own
// (depthwise.h).
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/depthwise.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/registry.h"

namespace opserve::kernels {
namespace {

constexpr int kMaxSpatial = 3;

// A number for each spatial axis.
using Numbers = std::array<int64_t, kMaxSpatial>;

// Attributes that both functions have.
struct Windows {
  int spatial = 1;
  int64_t groups = 1;
  Numbers stride = {};
  Numbers padding = {};
  Numbers dilation = {};
};

Numbers SpatialAttribute(const Call& call, size_t attribute, int spatial, int64_t absent) {
  const std::vector<int64_t> values = IntsAttribute(call, attribute);
  Numbers result = {};
  for (int d = 0; d < spatial; ++d) {
    result[d] = values.empty() ? absent : values[std::min<size_t>(d, values.size() - 1)];
  }
  return result;
}

// The attributes from `first` (stride) on.
Windows WindowsOf(const Call& call, size_t first, int rank) {
  Windows windows;
  windows.spatial = std::min(rank - 2, kMaxSpatial);
  windows.stride = SpatialAttribute(call, first, windows.spatial, 1);
  windows.padding = SpatialAttribute(call, first + 1, windows.spatial, 0);
  windows.dilation = SpatialAttribute(call, first + 2, windows.spatial, 1);
  windows.groups = std::max<int64_t>(1, IntAttribute(call, first + 5, 1));
  return windows;
}

// A tensor of images and how its channels are split: [N, groups, channels of a group, spatial
// axes].
AxisGroup BatchesOf(const Layout& layout, int64_t groups) {
  return JoinGroups(OneAxis(layout.shape[0], layout.strides[0]),
                    OneAxis(groups, layout.shape[1] / groups * layout.strides[1]));
}
AxisGroup ChannelsOf(const Layout& layout, int64_t groups) {
  return OneAxis(layout.shape[1] / groups, layout.strides[1]);
}
AxisGroup ImageOf(const Layout& layout) { return GroupOf(layout, 2, layout.rank); }

// A tensor and where a product finds it.
struct Source {
  Layout layout;
  ProductOperand operand;
};

Source SourceOf(const TensorRef& tensor) {
  Source source{tensor.layout, {}};
  source.operand.dtype = tensor.layout.dtype;
  source.operand.address = tensor.address;
  return source;
}

// What a kernel copies to its workspace before it multiplies.
struct Copies {
  std::vector<Piece> pieces;
  size_t bytes = 0;
};

// The tensor itself, or a copy with zeros around and between the elements of its images, such that
// element i of an image is at begin + i * step and the images have at least `extents`. Half types
// become float there, so that each element is converted once.
Source SpreadOut(const TensorRef& tensor, int spatial, const Numbers& begin, const Numbers& step,
                 const Numbers& extents, Copies& copies) {
  Source copy = SourceOf(tensor);
  bool is_copied = false;
  for (int d = 0; d < spatial; ++d) {
    is_copied |= begin[d] != 0 || step[d] != 1 || extents[d] > tensor.layout.shape[d + 2];
    copy.layout.shape[d + 2] = extents[d];
  }
  if (!is_copied) return SourceOf(tensor);
  Layout& layout = copy.layout;
  if (layout.dtype == Dtype::kFloat16 || layout.dtype == Dtype::kBfloat16) {
    layout.dtype = Dtype::kFloat;
  }
  int64_t count = 1;
  for (int d = layout.rank - 1; d >= 0; --d) {
    layout.strides[d] = count;
    count *= layout.shape[d];
  }
  copy.operand.dtype = layout.dtype;
  copy.operand.is_in_workspace = true;
  constexpr int64_t kAlignment = 64;
  copies.bytes = CeilDivide(count * ElementBytes(layout.dtype), kAlignment) * kAlignment;
  copies.pieces.push_back(MakeFill(TensorRef{layout, 0}, 0));
  Piece piece = MakePiece(tensor, TensorRef{layout, 0});
  for (int d = 0; d < layout.rank; ++d) {
    CopyAxis& axis = piece.axes[d];
    axis = {tensor.layout.shape[d], tensor.layout.strides[d], layout.strides[d]};
    if (d < 2) continue;
    const int64_t first = begin[d - 2] < 0 ? CeilDivide(-begin[d - 2], step[d - 2]) : 0;
    const int64_t place = begin[d - 2] + first * step[d - 2];
    const int64_t room = CeilDivide(std::max<int64_t>(extents[d - 2] - place, 0), step[d - 2]);
    axis.extent = std::clamp<int64_t>(axis.extent - first, 0, room);
    if (axis.extent == 0) continue;
    piece.from_offset += first * axis.from;
    piece.to_offset += place * axis.to;
    axis.to *= step[d - 2];
  }
  copies.pieces.push_back(std::move(piece));
  for (Piece& each : copies.pieces) PreparePiece(each);
  return copy;
}

std::unique_ptr<Kernel> MakeProducts(Copies copies, std::vector<Product> products) {
  int64_t count = 0;
  for (const Product& product : products) {
    count += product.num_batches * product.num_rows * product.num_columns *
             std::max<int64_t>(1, product.depth);
  }
  // Products run one after the other, behind the copies.
  size_t bytes = 0;
  for (Product& product : products) {
    product.workspace_begin = copies.bytes;
    bytes = std::max(bytes, WorkspaceBytesOf(product));
  }
  const size_t workspace_bytes = copies.bytes + bytes;
  return MakePlannedKernel(
      count, workspace_bytes,
      [copies = std::move(copies), products = std::move(products)](
          const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        void* const targets[] = {workspace};
        for (const Piece& piece : copies.pieces) RunPiece(piece, inputs, targets, runner);
        for (const Product& product : products) {
          RunProduct(product, inputs, outputs, workspace, runner);
        }
      });
}

// The windows over the wide tensor, as a copy that has all that `narrow` reaches.
Source PadWide(const Windows& windows, const TensorRef& wide, const Layout& weight,
               const Layout& narrow, Copies& copies) {
  Numbers extents = {};
  for (int d = 0; d < windows.spatial; ++d) {
    extents[d] = (narrow.shape[d + 2] - 1) * windows.stride[d] +
                 (weight.shape[d + 2] - 1) * windows.dilation[d] + 1;
  }
  return SpreadOut(wide, windows.spatial, windows.padding, {1, 1, 1}, extents, copies);
}

// Channels of a group and places in a window, as they lie in the images of `layout`.
AxisGroup WindowOf(const Windows& windows, const Layout& layout, const Layout& weight) {
  AxisGroup group = ChannelsOf(layout, windows.groups);
  for (int d = 0; d < windows.spatial; ++d) {
    group = JoinGroups(group,
                       OneAxis(weight.shape[d + 2], layout.strides[d + 2] * windows.dilation[d]));
  }
  return group;
}
// Where the windows begin.
AxisGroup BeginsOf(const Windows& windows, const Layout& layout, const Layout& narrow) {
  AxisGroup group;
  group.extents[0] = 1;
  group.strides[0] = 0;
  group.rank = 1;
  for (int d = 0; d < windows.spatial; ++d) {
    group =
        JoinGroups(group, OneAxis(narrow.shape[d + 2], layout.strides[d + 2] * windows.stride[d]));
  }
  return group;
}

int64_t CountOf(const AxisGroup& group) {
  int64_t count = 1;
  for (int d = 0; d < group.rank; ++d) count *= group.extents[d];
  return count;
}

ProductOperand BiasOf(const Windows& windows, const TensorRef& bias, int64_t num_batches,
                      int64_t num_columns) {
  ProductOperand operand = SourceOf(bias).operand;
  if (!bias.is_given()) return operand;
  const int64_t channels = bias.layout.shape[0] / windows.groups;
  const int64_t stride = bias.layout.strides[0];
  operand.batches = JoinGroups(OneAxis(num_batches, 0), OneAxis(windows.groups, channels * stride));
  operand.rows = OneAxis(channels, stride);
  operand.columns = OneAxis(num_columns, 0);
  return operand;
}

// A product of the weights and what they see in `source`, a matrix for each image and group. Left
// out: the left factor's rows and columns, the right one's, the result's columns, and how many
// there are.
Product ProductOf(int64_t groups, const TensorRef& weight, const Source& source,
                  const TensorRef& out) {
  const Layout& w = weight.layout;
  Product product;
  product.num_batches = out.layout.shape[0] * groups;
  product.num_rows = out.layout.shape[1] / groups;
  product.left = SourceOf(weight).operand;
  product.left.batches = JoinGroups(OneAxis(out.layout.shape[0], 0),
                                    OneAxis(groups, w.shape[0] / groups * w.strides[0]));
  product.right = source.operand;
  product.right.batches = BatchesOf(source.layout, groups);
  product.out = SourceOf(out).operand;
  product.out.batches = BatchesOf(out.layout, groups);
  product.out.rows = ChannelsOf(out.layout, groups);
  return product;
}

// Lets images without groups be one: small ones fill tiles together, and share packed weights.
void JoinImages(Product& product) {
  for (ProductOperand* operand : {&product.right, &product.added, &product.out}) {
    operand->columns = JoinGroups(operand->batches, operand->columns);
    operand->batches = {};
  }
  product.num_columns *= product.num_batches;
  product.num_batches = 1;
}

// Whether each group has one channel of both tensors, in images or lines.
bool IsDepthwise(const Windows& windows, const Layout& weight) {
  return windows.spatial <= 2 && weight.shape[0] == windows.groups && weight.shape[1] == 1;
}
Plane PlaneOf(const Windows& windows, const Numbers& values, int64_t absent) {
  if (windows.spatial == 1) return {absent, values[0]};
  return {values[0], values[1]};
}
DepthwiseWindows DepthwiseOf(const Windows& windows, const Layout& weight) {
  const int last = weight.rank - 1;
  return {.extents = {windows.spatial == 1 ? 1 : weight.shape[2], weight.shape[last]},
          .stride = PlaneOf(windows, windows.stride, 1),
          .dilation = PlaneOf(windows, windows.dilation, 1)};
}

// narrow = weight x the windows of wide + bias
std::unique_ptr<Kernel> MakeNarrow(const Windows& windows, const TensorRef& wide,
                                   const TensorRef& weight, const TensorRef& bias,
                                   const TensorRef& out) {
  if (IsDepthwise(windows, weight.layout)) {
    const ZeroedImages images{wide, PlaneOf(windows, windows.padding, 0)};
    auto kernel = MakeDepthwise(images, DepthwiseOf(windows, weight.layout), weight,
                                /*is_backwards=*/false, bias, out);
    if (kernel != nullptr) return kernel;
  }
  const int64_t groups = windows.groups;
  Copies copies;
  const Source source = PadWide(windows, wide, weight.layout, out.layout, copies);
  const Layout& from = source.layout;
  const Layout& w = weight.layout;
  Product product = ProductOf(groups, weight, source, out);
  product.left.rows = OneAxis(w.shape[0] / groups, w.strides[0]);
  product.left.columns = GroupOf(w, 1, w.rank);
  product.right.rows = WindowOf(windows, from, w);
  product.right.columns = BeginsOf(windows, from, out.layout);
  product.depth = CountOf(product.right.rows);
  product.num_columns = CountOf(product.right.columns);
  product.added = BiasOf(windows, bias, out.layout.shape[0], product.num_columns);
  product.out.columns = ImageOf(out.layout);
  if (groups == 1) JoinImages(product);
  return MakeProducts(std::move(copies), {product});
}

// Phases of a convolution, at most: more are one, with zeros between the narrow tensor's elements.
constexpr int64_t kMostPhases = 64;

// Elements of the wide tensor, along one axis, whose places have the same remainder when they are
// divided by the windows' stride: element i of them, at place remainder + i * stride, sees for
// element first + j * step of the window the element base + i - j * reach of the narrow tensor.
struct Phase {
  int64_t remainder = 0;
  int64_t count = 0;
  int64_t first = 0;
  int64_t taps = 0;  // elements of the window that reach them
  int64_t step = 1;
  int64_t base = 0;
  int64_t reach = 0;
};

std::vector<Phase> PhasesOf(int64_t extent, int64_t window, int64_t stride, int64_t padding,
                            int64_t dilation) {
  const int64_t common = std::gcd(stride, dilation);
  std::vector<Phase> phases;
  for (int64_t remainder = 0; remainder < std::min(stride, extent); ++remainder) {
    Phase phase;
    phase.remainder = remainder;
    phase.count = CeilDivide(extent - remainder, stride);
    phase.step = stride / common;
    phase.reach = dilation / common;
    // Elements of the window whose places recur have one of the first few.
    for (int64_t k = std::min(window, phase.step); k-- > 0;) {
      const int64_t place = remainder + padding - k * dilation;
      if (place % stride != 0) continue;
      phase.first = k;
      phase.base = place / stride;
      phase.taps = CeilDivide(window - k, phase.step);
    }
    phases.push_back(phase);
  }
  return phases;
}

// wide = weight backwards x the windows of narrow + bias
std::unique_ptr<Kernel> MakeWide(const Windows& windows, const TensorRef& narrow,
                                 const TensorRef& weight, const TensorRef& bias,
                                 const TensorRef& out) {
  const int64_t groups = windows.groups;
  const Layout& w = weight.layout;
  if (IsDepthwise(windows, w)) {
    Windows dense = windows;
    Numbers begin = {};
    for (int d = 0; d < windows.spatial; ++d) {
      begin[d] = (w.shape[d + 2] - 1) * windows.dilation[d] - windows.padding[d];
      dense.stride[d] = 1;
    }
    const ZeroedImages images{narrow, PlaneOf(windows, begin, 0),
                              PlaneOf(windows, windows.stride, 1)};
    auto kernel =
        MakeDepthwise(images, DepthwiseOf(dense, w), weight, /*is_backwards=*/true, bias, out);
    if (kernel != nullptr) return kernel;
  }
  double num_phases = 1;
  for (int d = 0; d < windows.spatial; ++d) {
    num_phases *= static_cast<double>(std::min(windows.stride[d], out.layout.shape[d + 2]));
  }
  const bool is_spread = num_phases > kMostPhases;
  const Numbers stride = is_spread ? Numbers{1, 1, 1} : windows.stride;
  const Numbers step = is_spread ? windows.stride : Numbers{1, 1, 1};
  // The copy of the narrow tensor begins with the first element that any phase sees.
  std::array<std::vector<Phase>, kMaxSpatial> axes = {};
  Numbers begin = {};
  Numbers extents = {};
  for (int d = 0; d < windows.spatial; ++d) {
    axes[d] = PhasesOf(out.layout.shape[d + 2], w.shape[d + 2], stride[d], windows.padding[d],
                       windows.dilation[d]);
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    for (const Phase& phase : axes[d]) {
      if (phase.taps == 0) continue;
      low = std::min(low, phase.base - (phase.taps - 1) * phase.reach);
      high = std::max(high, phase.base + phase.count);
    }
    if (low > high) low = high = 0;  // none sees anything
    begin[d] = -low;
    extents[d] = high - low;
  }
  Copies copies;
  const Source source = SpreadOut(narrow, windows.spatial, begin, step, extents, copies);
  const Layout& from = source.layout;
  std::vector<Product> products;
  const auto add = [&](const std::array<Phase, kMaxSpatial>& phases) {
    Product product = ProductOf(groups, weight, source, out);
    product.left.rows = OneAxis(w.shape[1], w.strides[1]);
    product.left.columns = OneAxis(w.shape[0] / groups, w.strides[0]);
    product.right.rows = ChannelsOf(from, groups);
    AxisGroup seen;
    AxisGroup places;
    for (int d = 0; d < windows.spatial; ++d) {
      const Phase& phase = phases[d];
      const int64_t seen_stride = from.strides[d + 2];
      const int64_t tap_stride = w.strides[d + 2];
      const int64_t place_stride = out.layout.strides[d + 2];
      product.left.columns =
          JoinGroups(product.left.columns, OneAxis(phase.taps, -phase.step * tap_stride));
      product.left.offset += (phase.first + (phase.taps - 1) * phase.step) * tap_stride;
      product.right.rows =
          JoinGroups(product.right.rows, OneAxis(phase.taps, phase.reach * seen_stride));
      product.right.offset +=
          (begin[d] + phase.base - (phase.taps - 1) * phase.reach) * seen_stride;
      seen = JoinGroups(seen, OneAxis(phase.count, seen_stride));
      product.out.offset += phase.remainder * place_stride;
      places = JoinGroups(places, OneAxis(phase.count, stride[d] * place_stride));
    }
    product.right.columns = seen;
    product.out.columns = places;
    product.depth = CountOf(product.right.rows);
    product.num_columns = CountOf(places);
    product.added = BiasOf(windows, bias, out.layout.shape[0], product.num_columns);
    if (groups == 1) JoinImages(product);
    products.push_back(product);
  };
  // Axes that are not there have one phase.
  for (int d = windows.spatial; d < kMaxSpatial; ++d) axes[d] = {Phase{}};
  for (const Phase& first : axes[0]) {
    for (const Phase& second : axes[1]) {
      for (const Phase& third : axes[2]) add({first, second, third});
    }
  }
  return MakeProducts(std::move(copies), std::move(products));
}

// The gradient of the windows: narrow x the windows of wide, along batches and places.
std::unique_ptr<Kernel> MakeWeight(const Windows& windows, const TensorRef& wide,
                                   const TensorRef& narrow, const TensorRef& out) {
  if (IsDepthwise(windows, out.layout)) {
    const ZeroedImages images{wide, PlaneOf(windows, windows.padding, 0)};
    auto kernel = MakeDepthwiseWeight(images, DepthwiseOf(windows, out.layout), narrow, out);
    if (kernel != nullptr) return kernel;
  }
  const int64_t groups = windows.groups;
  Copies copies;
  const Source source = PadWide(windows, wide, out.layout, narrow.layout, copies);
  const Layout& from = source.layout;
  const Layout& w = out.layout;
  Product product;
  product.num_batches = groups;
  product.num_rows = w.shape[0] / groups;
  product.left = SourceOf(narrow).operand;
  product.left.batches =
      OneAxis(groups, narrow.layout.shape[1] / groups * narrow.layout.strides[1]);
  product.left.rows = ChannelsOf(narrow.layout, groups);
  product.left.columns =
      JoinGroups(OneAxis(narrow.layout.shape[0], narrow.layout.strides[0]), ImageOf(narrow.layout));
  product.right = source.operand;
  product.right.batches = OneAxis(groups, from.shape[1] / groups * from.strides[1]);
  product.right.rows =
      JoinGroups(OneAxis(from.shape[0], from.strides[0]), BeginsOf(windows, from, narrow.layout));
  product.right.columns = WindowOf(windows, from, w);
  product.depth = CountOf(product.right.rows);
  product.num_columns = CountOf(product.right.columns);
  product.out = SourceOf(out).operand;
  product.out.batches = OneAxis(groups, w.shape[0] / groups * w.strides[0]);
  product.out.rows = OneAxis(w.shape[0] / groups, w.strides[0]);
  product.out.columns = GroupOf(w, 1, w.rank);
  return MakeProducts(std::move(copies), {product});
}

// Attributes: stride, padding, dilation, transposed, output_padding, groups, cube_math_type.
std::unique_ptr<Kernel> MakeConvolution(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const Windows windows = WindowsOf(call, 0, out.layout.rank);
  const auto make = BoolAttribute(call, 3) ? &MakeWide : &MakeNarrow;
  return make(windows, InputRef(call, 0), InputRef(call, 1), InputRef(call, 2), out);
}

// The sums of all channels, by the kernel of sums.
std::unique_ptr<Kernel> MakeBias(const TensorRef& gradient, const TensorRef& out) {
  Call sum;
  sum.inputs = {{gradient.layout}};
  sum.outputs = {{out.layout}};
  std::vector<int64_t> axes = {0};
  for (int d = 2; d < gradient.layout.rank; ++d) axes.push_back(d);
  sum.attributes = {axes, false, out.layout.dtype};
  std::shared_ptr<const Kernel> kernel = MakeKernel("aclnnReduceSum", sum);
  if (kernel == nullptr) return nullptr;
  return MakePlannedKernel(
      kernel->num_elements(), kernel->workspace_bytes(),
      [kernel, from = gradient.address, to = out.address](
          const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        kernel->Run(inputs + from, outputs + to, workspace, runner);
      });
}

// Attributes: bias_sizes, then as above with output_mask before cube_math_type.
std::unique_ptr<Kernel> MakeConvolutionBackward(const Call& call) {
  const TensorRef gradient = InputRef(call, 0);
  const TensorRef input = InputRef(call, 1);
  const TensorRef weight = InputRef(call, 2);
  const Windows windows = WindowsOf(call, 1, input.layout.rank);
  const bool is_transposed = BoolAttribute(call, 4);
  const auto is_wanted = [](const TensorRef& out) {
    return out.is_given() && NumElements(out.layout) > 0;
  };
  const TensorRef grad_input = OutputRef(call, 0);
  const TensorRef grad_weight = OutputRef(call, 1);
  const TensorRef grad_bias = OutputRef(call, 2);
  std::vector<std::unique_ptr<Kernel>> kernels;
  if (is_wanted(grad_input)) {
    const auto make = is_transposed ? &MakeNarrow : &MakeWide;
    kernels.push_back(make(windows, gradient, weight, TensorRef{}, grad_input));
  }
  if (is_wanted(grad_weight)) {
    kernels.push_back(is_transposed ? MakeWeight(windows, gradient, input, grad_weight)
                                    : MakeWeight(windows, input, gradient, grad_weight));
  }
  if (is_wanted(grad_bias)) kernels.push_back(MakeBias(gradient, grad_bias));
  return MakeSequence(std::move(kernels));
}

}  // namespace

std::span<const KernelEntry> ConvolutionKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnConvolution", &MakeConvolution},
      {"aclnnConvolutionBackward", &MakeConvolutionBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
