// Operators that only move elements.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// The part of `tensor` that begins at `begin` on `axis` and has `extent` there.
Piece CutOutput(Piece piece, const Layout& output, int axis, int64_t begin) {
  piece.to_offset += begin * StrideOf(output, axis);
  return piece;
}

std::unique_ptr<Kernel> MakeCat(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  std::vector<Piece> pieces;
  int64_t begin = 0;
  for (const TensorRef& tensor : InputRefs(call, 0)) {
    // A list may hold empty tensors of one axis whatever the rank of the others is.
    if (NumElements(tensor.layout) == 0) continue;
    TensorRef part = out;
    if (axis < part.layout.rank) part.layout.shape[axis] = tensor.layout.shape[axis];
    pieces.push_back(CutOutput(MakePiece(tensor, part), out.layout, axis, begin));
    begin += ExtentOf(tensor.layout, axis);
  }
  return MakeCopyKernel(NumElements(out.layout), std::move(pieces));
}

std::unique_ptr<Kernel> MakeStack(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), out.layout.rank);
  TensorRef part = out;
  part.layout = WithoutAxis(out.layout, axis);
  std::vector<Piece> pieces;
  int64_t begin = 0;
  for (const TensorRef& tensor : InputRefs(call, 0)) {
    pieces.push_back(CutOutput(MakePiece(tensor, part), out.layout, axis, begin++));
  }
  return MakeCopyKernel(NumElements(out.layout), std::move(pieces));
}

// Both forms have the axis behind another attribute; the extents are those of the outputs.
std::unique_ptr<Kernel> MakeSplit(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 1), self.layout.rank);
  std::vector<Piece> pieces;
  int64_t begin = 0;
  for (const TensorRef& out : OutputRefs(call, 0)) {
    Piece piece = MakePiece(self, out);
    // An extent of 1 is no broadcast here.
    if (axis < self.layout.rank) piece.axes[axis].from = self.layout.strides[axis];
    piece.from_offset = begin * StrideOf(self.layout, axis);
    pieces.push_back(std::move(piece));
    begin += ExtentOf(out.layout, axis);
  }
  return MakeCopyKernel(NumElements(self.layout), std::move(pieces));
}

std::unique_ptr<Kernel> MakePermute(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const std::vector<int64_t> dims = IntsAttribute(call, 0);
  TensorRef view = self;
  for (int d = 0; d < self.layout.rank; ++d) {
    const int from = AxisAttribute(dims[d], self.layout.rank);
    view.layout.shape[d] = self.layout.shape[from];
    view.layout.strides[d] = self.layout.strides[from];
  }
  return MakeCopyKernel(NumElements(out.layout), {MakePiece(view, out)});
}

std::unique_ptr<Kernel> MakeExpand(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  return MakeCopyKernel(NumElements(out.layout), {MakePiece(InputRef(call, 0), out)});
}

// Every repeated axis becomes two: that of the copies and that of the elements.
std::unique_ptr<Kernel> MakeRepeat(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  Piece piece = MakePiece(TensorRef{Layout{self.layout.dtype}, self.address}, out);
  piece.axes.clear();
  for (int d = 0; d < out.layout.rank; ++d) {
    const int own = d - (out.layout.rank - self.layout.rank);
    const int64_t extent = own < 0 ? 1 : self.layout.shape[own];
    const int64_t to = out.layout.strides[d];
    if (extent == 0) return nullptr;
    piece.axes.push_back({out.layout.shape[d] / extent, 0, to * extent});
    piece.axes.push_back({extent, own < 0 ? 0 : self.layout.strides[own], to});
  }
  return MakeCopyKernel(NumElements(out.layout), {std::move(piece)});
}

std::unique_ptr<Kernel> MakeSlice(const Call& call) {
  TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), self.layout.rank);
  const int64_t extent = ExtentOf(self.layout, axis);
  int64_t start = IntAttribute(call, 1);
  if (start < 0) start += extent;
  start = std::clamp<int64_t>(start, 0, extent);
  // A longer one reaches no further element, and products of it might not fit.
  const int64_t step =
      std::clamp<int64_t>(IntAttribute(call, 3, 1), 1, std::max<int64_t>(1, extent));
  const int64_t stride = StrideOf(self.layout, axis);
  // What stage one derived cannot be longer than this.
  const int64_t count =
      std::min(ExtentOf(out.layout, axis), CeilDivide(std::max<int64_t>(extent - start, 0), step));
  Piece piece = MakePiece(self, out);
  if (axis < out.layout.rank) piece.axes[axis] = {count, stride * step, out.layout.strides[axis]};
  piece.from_offset = start * stride;
  return MakeCopyKernel(NumElements(out.layout), {std::move(piece)});
}

std::unique_ptr<Kernel> MakeFlip(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  Piece piece = MakePiece(self, out);
  for (const int64_t dim : IntsAttribute(call, 0)) {
    const int axis = AxisAttribute(dim, self.layout.rank);
    if (axis >= self.layout.rank) continue;
    piece.from_offset += (self.layout.shape[axis] - 1) * piece.axes[axis].from;
    piece.axes[axis].from = -piece.axes[axis].from;
  }
  return MakeCopyKernel(NumElements(out.layout), {std::move(piece)});
}

std::unique_ptr<Kernel> MakeEye(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  Scalar one;
  one.real = 1;
  one.integer = 1;
  Piece diagonal = MakeFill(out, PatternOf(one, out.layout.dtype));
  const Layout& layout = out.layout;
  diagonal.axes = {
      {std::min(layout.shape[0], layout.shape[1]), 0, layout.strides[0] + layout.strides[1]}};
  return MakeCopyKernel(NumElements(layout), {MakeFill(out, 0), std::move(diagonal)});
}

// `pad` has the numbers of elements before and behind, the last axis first; negative ones cut off.
std::unique_ptr<Kernel> MakeConstantPadNd(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const std::vector<int64_t> pad = IntsAttribute(call, 0);
  Scalar value;
  if (const auto* scalar = std::get_if<Scalar>(&call.attributes[1])) value = *scalar;
  std::vector<Piece> pieces = {MakeFill(out, PatternOf(value, out.layout.dtype))};
  Piece piece = MakePiece(self, out);
  const int rank = self.layout.rank;
  for (int d = 0; d < rank; ++d) {
    const size_t place = 2 * static_cast<size_t>(rank - 1 - d);
    const int64_t before = place + 1 < pad.size() ? pad[place] : 0;
    const int64_t from = std::max<int64_t>(-before, 0);
    const int64_t to = std::max<int64_t>(before, 0);
    const int64_t count = std::min(self.layout.shape[d] - from, out.layout.shape[d] - to);
    piece.axes[d] = {std::max<int64_t>(count, 0), self.layout.strides[d], out.layout.strides[d]};
    piece.from_offset += from * self.layout.strides[d];
    piece.to_offset += to * out.layout.strides[d];
  }
  pieces.push_back(std::move(piece));
  return MakeCopyKernel(NumElements(out.layout), std::move(pieces));
}

int64_t Modulo(int64_t value, int64_t divisor) {
  const int64_t rest = value % divisor;
  return rest < 0 ? rest + divisor : rest;
}

// Cuts every piece where the axis wraps around.
std::vector<Piece> RollAxis(const std::vector<Piece>& pieces, int axis, int64_t shift) {
  std::vector<Piece> result;
  for (const Piece& piece : pieces) {
    const CopyAxis whole = piece.axes[axis];
    Piece front = piece;
    front.axes[axis].extent = whole.extent - shift;
    front.to_offset += shift * whole.to;
    Piece back = piece;
    back.axes[axis].extent = shift;
    back.from_offset += (whole.extent - shift) * whole.from;
    result.push_back(std::move(front));
    if (shift > 0) result.push_back(std::move(back));
  }
  return result;
}

std::unique_ptr<Kernel> MakeRoll(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const std::vector<int64_t> shifts = IntsAttribute(call, 0);
  const std::vector<int64_t> dims = IntsAttribute(call, 1);
  const int rank = out.layout.rank;
  const int64_t count = NumElements(out.layout);
  if (!dims.empty()) {
    std::vector<Piece> pieces = {MakePiece(self, out)};
    std::vector<int64_t> sums(kMaxRank);
    for (size_t i = 0; i < dims.size() && i < shifts.size(); ++i) {
      const int axis = AxisAttribute(dims[i], rank);
      if (axis >= rank) continue;
      const int64_t extent = out.layout.shape[axis];
      sums[axis] = Modulo(sums[axis] + Modulo(shifts[i], extent), extent);
    }
    for (int d = 0; d < rank; ++d) pieces = RollAxis(pieces, d, sums[d]);
    return MakeCopyKernel(count, std::move(pieces));
  }
  // Without axes the tensor is one row.
  const int64_t shift = shifts.empty() ? 0 : Modulo(shifts[0], count);
  const AxisGroup from = GroupOf(self.layout);
  const AxisGroup to = GroupOf(out.layout);
  return MakePlannedKernel(
      count, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunTasks(runner, CeilDivide(count, kTaskElements), [&](int64_t task) {
          const int64_t begin = task * kTaskElements;
          const int64_t end = std::min(begin + kTaskElements, count);
          VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
            const auto* source = static_cast<const Element*>(inputs[self.address]);
            auto* target = static_cast<Element*>(outputs[out.address]);
            AxisCursor writer(to, begin);
            for (int64_t i = begin; i < end;) {
              AxisCursor reader(from, i < shift ? i + count - shift : i - shift);
              int64_t run = std::min({reader.run(), writer.run(), end - i});
              if (i < shift) run = std::min(run, shift - i);
              for (int64_t j = 0; j < run; ++j) {
                target[writer.offset() + j * to.inner_stride()] =
                    source[reader.offset() + j * from.inner_stride()];
              }
              i += run;
              writer.Advance(run);
            }
          });
        });
      });
}

// Zeros, whose bytes are 0 in every type. (Other than a loop, memset aligns its stores: half a row
// begins anywhere in a cache line.)
template <typename Element>
void Clear(Element* begin, const Element* end) {
  std::memset(static_cast<void*>(begin), 0, (end - begin) * sizeof(Element));
}

// Row i of each matrix keeps the columns [0, i + diagonal] (lower) or [i + diagonal, end) (upper).
template <bool kLower>
std::unique_ptr<Kernel> MakeTriangle(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const int rank = out.layout.rank;
  constexpr int64_t kFar = int64_t{1} << 48;
  const int64_t diagonal = std::clamp<int64_t>(IntAttribute(call, 0), -kFar, kFar);
  const int64_t columns = out.layout.shape[rank - 1];
  const int64_t rows = out.layout.shape[rank - 2];
  const int64_t count = NumElements(out.layout);
  const AxisGroup from = GroupOf(self.layout, 0, rank - 1);
  const AxisGroup to = GroupOf(out.layout, 0, rank - 1);
  const int64_t from_stride = self.layout.strides[rank - 1];
  const int64_t to_stride = out.layout.strides[rank - 1];
  const int64_t num_rows = count / columns;
  const int64_t per_task = PiecesPerTask(columns);
  return MakePlannedKernel(
      count, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
          const int64_t begin = task * per_task;
          const int64_t end = std::min(begin + per_task, num_rows);
          VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
            AxisCursor reader(from, begin);
            AxisCursor writer(to, begin);
            int64_t row = begin % rows;
            for (int64_t i = begin; i < end; ++i, reader.Advance(1), writer.Advance(1)) {
              const auto* source =
                  static_cast<const Element*>(inputs[self.address]) + reader.offset();
              auto* target = static_cast<Element*>(outputs[out.address]) + writer.offset();
              const int64_t edge =
                  std::clamp<int64_t>(row + diagonal + (kLower ? 1 : 0), 0, columns);
              row = row + 1 == rows ? 0 : row + 1;
              const int64_t first = kLower ? 0 : edge;
              const int64_t last = kLower ? edge : columns;
              if (from_stride == 1 && to_stride == 1) {
                Clear(target, target + first);
                if (source != target) std::copy(source + first, source + last, target + first);
                Clear(target + last, target + columns);
                continue;
              }
              for (int64_t j = 0; j < first; ++j) target[j * to_stride] = Element{};
              for (int64_t j = first; j < last; ++j)
                target[j * to_stride] = source[j * from_stride];
              for (int64_t j = last; j < columns; ++j) target[j * to_stride] = Element{};
            }
          });
        });
      });
}

}  // namespace

std::span<const KernelEntry> MemoryKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnCat", &MakeCat},
      {"aclnnConstantPadNd", &MakeConstantPadNd},
      {"aclnnExpand", &MakeExpand},
      {"aclnnEye", &MakeEye},
      {"aclnnFlip", &MakeFlip},
      {"aclnnInplaceTril", &MakeTriangle<true>},
      {"aclnnInplaceTriu", &MakeTriangle<false>},
      {"aclnnPermute", &MakePermute},
      {"aclnnRepeat", &MakeRepeat},
      {"aclnnRoll", &MakeRoll},
      {"aclnnSlice", &MakeSlice},
      {"aclnnSplitTensor", &MakeSplit},
      {"aclnnSplitWithSize", &MakeSplit},
      {"aclnnStack", &MakeStack},
      {"aclnnTril", &MakeTriangle<true>},
      {"aclnnTriu", &MakeTriangle<false>},
  };
  return kEntries;
}

}  // namespace opserve::kernels
