// Convolution and its gradients, as products of matrices.
//
// All of them relate a wide tensor (the input of a convolution, the result of a transposed one), a
// narrow one and the windows [narrow channels, wide channels / groups, window]. The rows of one
// factor are found in a padded copy of the wide tensor by strides alone, as windows overlap there,
// so the columns of images are never written down. For the wide tensor the narrow one is copied
// with zeros between its elements, and the windows are read backwards. Groups of one channel have
// kernels of their own (depthwise.h).
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
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

// Attributes that both functions have, one number for each spatial axis.
struct Windows {
  int spatial = 1;
  int64_t groups = 1;
  std::array<int64_t, kMaxSpatial> stride = {};
  std::array<int64_t, kMaxSpatial> padding = {};
  std::array<int64_t, kMaxSpatial> dilation = {};
};

std::array<int64_t, kMaxSpatial> SpatialAttribute(const Call& call, size_t attribute, int spatial,
                                                  int64_t absent) {
  const std::vector<int64_t> values = IntsAttribute(call, attribute);
  std::array<int64_t, kMaxSpatial> result = {};
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

// A copy of `tensor` in the workspace, if `is_copied`, with zeros before, between and behind the
// elements of its images.
struct Spread {
  TensorRef tensor;
  bool is_copied = false;
  std::vector<Piece> pieces;
  size_t bytes = 0;
};

// Element i of an image goes to `begin` + i * `step`, where this is inside of `extents`.
Spread SpreadOut(const TensorRef& tensor, int spatial,
                 const std::array<int64_t, kMaxSpatial>& begin,
                 const std::array<int64_t, kMaxSpatial>& step,
                 const std::array<int64_t, kMaxSpatial>& extents) {
  Spread spread;
  spread.tensor = tensor;
  for (int d = 0; d < spatial; ++d) {
    spread.is_copied |= begin[d] != 0 || step[d] != 1 || extents[d] > tensor.layout.shape[d + 2];
  }
  if (!spread.is_copied) return spread;
  Layout& layout = spread.tensor.layout;
  int64_t count = 1;
  for (int d = layout.rank - 1; d >= 0; --d) {
    if (d >= 2) layout.shape[d] = extents[d - 2];
    layout.strides[d] = count;
    count *= layout.shape[d];
  }
  spread.tensor.address = 0;
  spread.bytes = static_cast<size_t>(count * ElementBytes(layout.dtype));
  spread.pieces.push_back(MakeFill(spread.tensor, 0));
  Piece piece = MakePiece(tensor, TensorRef{tensor.layout, 0});
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
  spread.pieces.push_back(std::move(piece));
  for (Piece& each : spread.pieces) PreparePiece(each);
  return spread;
}

ProductOperand OperandOf(const TensorRef& tensor) {
  ProductOperand operand;
  operand.dtype = tensor.layout.dtype;
  operand.address = tensor.address;
  return operand;
}
ProductOperand OperandOf(const Spread& spread) {
  ProductOperand operand = OperandOf(spread.tensor);
  if (spread.is_copied) {
    operand.address = -1;
    operand.is_in_workspace = true;
  }
  return operand;
}

std::unique_ptr<Kernel> MakeSpreadProduct(Spread spread, const Product& product) {
  const int64_t count = product.num_batches * product.num_rows * product.num_columns *
                        std::max<int64_t>(1, product.depth);
  return MakePlannedKernel(
      count, spread.bytes,
      [pieces = std::move(spread.pieces), product](const void* const* inputs, void* const* outputs,
                                                   void* workspace, TaskRunner& runner) {
        void* const copies[] = {workspace};
        for (const Piece& piece : pieces) RunPiece(piece, inputs, copies, runner);
        RunProduct(product, inputs, outputs, workspace, runner);
      });
}

// The windows over the wide tensor, as a copy that has all that `narrow` reaches.
Spread SpreadWide(const Windows& windows, const TensorRef& wide, const Layout& weight,
                  const Layout& narrow) {
  std::array<int64_t, kMaxSpatial> extents = {};
  std::array<int64_t, kMaxSpatial> step = {};
  for (int d = 0; d < windows.spatial; ++d) {
    step[d] = 1;
    extents[d] = (narrow.shape[d + 2] - 1) * windows.stride[d] +
                 (weight.shape[d + 2] - 1) * windows.dilation[d] + 1;
  }
  return SpreadOut(wide, windows.spatial, windows.padding, step, extents);
}

// Channels of a group and places in a window, as they lie in the images of `layout`.
AxisGroup WindowOf(const Windows& windows, const Layout& layout, const Layout& weight,
                   bool is_dense = false) {
  AxisGroup group = ChannelsOf(layout, windows.groups);
  for (int d = 0; d < windows.spatial; ++d) {
    group = JoinGroups(
        group,
        OneAxis(weight.shape[d + 2], layout.strides[d + 2] * (is_dense ? 1 : windows.dilation[d])));
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
  ProductOperand operand = OperandOf(bias);
  if (!bias.is_given()) return operand;
  const int64_t channels = bias.layout.shape[0] / windows.groups;
  const int64_t stride = bias.layout.strides[0];
  operand.batches = JoinGroups(OneAxis(num_batches, 0), OneAxis(windows.groups, channels * stride));
  operand.rows = OneAxis(channels, stride);
  operand.columns = OneAxis(num_columns, 0);
  return operand;
}

// Whether each group has one channel of both tensors, in images or lines.
bool IsDepthwise(const Windows& windows, const Layout& weight) {
  return windows.spatial <= 2 && weight.shape[0] == windows.groups && weight.shape[1] == 1;
}
Plane PlaneOf(const Windows& windows, const std::array<int64_t, kMaxSpatial>& values,
              int64_t absent) {
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
  Spread spread = SpreadWide(windows, wide, weight.layout, out.layout);
  const Layout& from = spread.tensor.layout;
  const Layout& w = weight.layout;
  Product product;
  product.num_batches = out.layout.shape[0] * groups;
  product.num_rows = out.layout.shape[1] / groups;
  product.left = OperandOf(weight);
  product.left.batches = JoinGroups(OneAxis(out.layout.shape[0], 0),
                                    OneAxis(groups, w.shape[0] / groups * w.strides[0]));
  product.left.rows = OneAxis(w.shape[0] / groups, w.strides[0]);
  product.left.columns = GroupOf(w, 1, w.rank);
  product.right = OperandOf(spread);
  product.right.batches = BatchesOf(from, groups);
  product.right.rows = WindowOf(windows, from, w);
  product.right.columns = BeginsOf(windows, from, out.layout);
  product.depth = CountOf(product.right.rows);
  product.num_columns = CountOf(product.right.columns);
  product.added = BiasOf(windows, bias, out.layout.shape[0], product.num_columns);
  product.out = OperandOf(out);
  product.out.batches = BatchesOf(out.layout, groups);
  product.out.rows = ChannelsOf(out.layout, groups);
  product.out.columns = ImageOf(out.layout);
  return MakeSpreadProduct(std::move(spread), product);
}

// wide = weight backwards x the windows of narrow with zeros in between + bias
std::unique_ptr<Kernel> MakeWide(const Windows& windows, const TensorRef& narrow,
                                 const TensorRef& weight, const TensorRef& bias,
                                 const TensorRef& out) {
  const int64_t groups = windows.groups;
  const Layout& w = weight.layout;
  Windows dense = windows;
  std::array<int64_t, kMaxSpatial> begin = {};
  std::array<int64_t, kMaxSpatial> extents = {};
  int64_t last = 0;  // the windows' last element
  AxisGroup backwards = OneAxis(w.shape[0] / groups, w.strides[0]);
  for (int d = 0; d < windows.spatial; ++d) {
    const int64_t reach = (w.shape[d + 2] - 1) * windows.dilation[d];
    begin[d] = reach - windows.padding[d];
    extents[d] = out.layout.shape[d + 2] + reach;
    dense.stride[d] = 1;
    last += (w.shape[d + 2] - 1) * w.strides[d + 2];
    backwards = JoinGroups(backwards, OneAxis(w.shape[d + 2], -w.strides[d + 2]));
  }
  if (IsDepthwise(windows, w)) {
    const ZeroedImages images{narrow, PlaneOf(windows, begin, 0),
                              PlaneOf(windows, windows.stride, 1)};
    auto kernel =
        MakeDepthwise(images, DepthwiseOf(dense, w), weight, /*is_backwards=*/true, bias, out);
    if (kernel != nullptr) return kernel;
  }
  Spread spread = SpreadOut(narrow, windows.spatial, begin, windows.stride, extents);
  const Layout& from = spread.tensor.layout;
  Product product;
  product.num_batches = out.layout.shape[0] * groups;
  product.num_rows = out.layout.shape[1] / groups;
  product.left = OperandOf(weight);
  product.left.offset = last;
  product.left.batches = JoinGroups(OneAxis(out.layout.shape[0], 0),
                                    OneAxis(groups, w.shape[0] / groups * w.strides[0]));
  product.left.rows = OneAxis(w.shape[1], w.strides[1]);
  product.left.columns = backwards;
  product.right = OperandOf(spread);
  product.right.batches = BatchesOf(from, groups);
  product.right.rows = WindowOf(windows, from, w);
  product.right.columns = BeginsOf(dense, from, out.layout);
  product.depth = CountOf(product.right.rows);
  product.num_columns = CountOf(product.right.columns);
  product.added = BiasOf(windows, bias, out.layout.shape[0], product.num_columns);
  product.out = OperandOf(out);
  product.out.batches = BatchesOf(out.layout, groups);
  product.out.rows = ChannelsOf(out.layout, groups);
  product.out.columns = ImageOf(out.layout);
  return MakeSpreadProduct(std::move(spread), product);
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
  Spread spread = SpreadWide(windows, wide, out.layout, narrow.layout);
  const Layout& from = spread.tensor.layout;
  const Layout& w = out.layout;
  Product product;
  product.num_batches = groups;
  product.num_rows = w.shape[0] / groups;
  product.left = OperandOf(narrow);
  product.left.batches =
      OneAxis(groups, narrow.layout.shape[1] / groups * narrow.layout.strides[1]);
  product.left.rows = ChannelsOf(narrow.layout, groups);
  product.left.columns =
      JoinGroups(OneAxis(narrow.layout.shape[0], narrow.layout.strides[0]), ImageOf(narrow.layout));
  product.right = OperandOf(spread);
  product.right.batches = OneAxis(groups, from.shape[1] / groups * from.strides[1]);
  product.right.rows =
      JoinGroups(OneAxis(from.shape[0], from.strides[0]), BeginsOf(windows, from, narrow.layout));
  product.right.columns = WindowOf(windows, from, w);
  product.depth = CountOf(product.right.rows);
  product.num_columns = CountOf(product.right.columns);
  product.out = OperandOf(out);
  product.out.batches = OneAxis(groups, w.shape[0] / groups * w.strides[0]);
  product.out.rows = OneAxis(w.shape[0] / groups, w.strides[0]);
  product.out.columns = GroupOf(w, 1, w.rank);
  return MakeSpreadProduct(std::move(spread), product);
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
