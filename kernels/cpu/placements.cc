// Operators whose elements go where classes, masks, starts or windows say.
#include <algorithm>
#include <cstdint>
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

// Attributes: number of classes and the place of their axis.
std::unique_ptr<Kernel> MakeOneHot(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef on = InputRef(call, 1);
  const TensorRef off = InputRef(call, 2);
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 1, -1), out.layout.rank);
  const AxisGroup classes = GroupOf(self.layout);
  const AxisGroup rows = GroupOf(WithoutAxis(out.layout, axis));
  const int64_t num_rows = NumElements(self.layout);
  const int64_t extent = ExtentOf(out.layout, axis);
  const int64_t stride = StrideOf(out.layout, axis);
  const int64_t per_task = PiecesPerTask(extent);
  return MakePlannedKernel(
      NumElements(out.layout), 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
          const int64_t end = std::min((task + 1) * per_task, num_rows);
          VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
            const Element mark = *static_cast<const Element*>(inputs[on.address]);
            const Element rest = *static_cast<const Element*>(inputs[off.address]);
            for (int64_t i = task * per_task; i < end; ++i) {
              const auto at = LoadNumber<int64_t>(self.layout.dtype, inputs[self.address],
                                                  AxisCursor(classes, i).offset());
              auto* first =
                  static_cast<Element*>(outputs[out.address]) + AxisCursor(rows, i).offset();
              for (int64_t j = 0; j < extent; ++j) first[j * stride] = rest;
              if (at >= 0 && at < extent) first[at * stride] = mark;
            }
          });
        });
      });
}

// Copies `self` to `out` if that is another tensor.
void CopyUnlessInPlace(const Piece& piece, const void* const* inputs, void* const* outputs,
                       TaskRunner& runner) {
  if (inputs[piece.input] != outputs[piece.output]) RunPiece(piece, inputs, outputs, runner);
}

// Elements of which it is known that enough are left to take their place.
constexpr int64_t kMaskedRun = 4096;

// Moves the next element of `from` to each masked one of `count`, and returns how many it moved.
// Has no branch, as the processor would guess one that depends on the mask wrongly; so it reads one
// element of `from` for each of `count`, at most.
template <typename Element>
int64_t MoveMasked(const uint8_t* masks, int64_t mask_stride, int64_t count, const Element* from,
                   int64_t from_stride, Element* to, int64_t to_stride) {
  int64_t moved = 0;
  for (int64_t j = 0; j < count; ++j) {
    const bool is_masked = masks[j * mask_stride] != 0;
    Element& element = to[j * to_stride];
    const Element choices[] = {element, from[moved * from_stride]};
    element = choices[is_masked];
    moved += is_masked ? 1 : 0;
  }
  return moved;
}

// One task, as the place in `source` is the number of masked elements before.
std::unique_ptr<Kernel> MakeMaskedScatter(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef mask = InputRef(call, 1);
  const TensorRef source = InputRef(call, 2);
  const TensorRef out = OutputRef(call, 0);
  Piece copy = MakePiece(self, out);
  PreparePiece(copy);
  const int64_t count = NumElements(out.layout);
  const int64_t available = NumElements(source.layout);
  const AxisGroup to = GroupOf(out.layout);
  const AxisGroup bits = GroupOf(BroadcastTo(mask.layout, out.layout));
  const AxisGroup from = GroupOf(source.layout);
  return MakePlannedKernel(
      count, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        CopyUnlessInPlace(copy, inputs, outputs, runner);
        RunTasks(runner, 1, [&](int64_t /*task*/) {
          VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
            const auto* is_masked = static_cast<const uint8_t*>(inputs[mask.address]);
            const auto* elements = static_cast<const Element*>(inputs[source.address]);
            auto* target = static_cast<Element*>(outputs[out.address]);
            if (available == 0) return;  // an empty group has no position
            AxisCursor writer(to, 0);
            AxisCursor bit(bits, 0);
            AxisCursor reader(from, 0);
            for (int64_t i = 0, taken = 0; i < count && taken < available;) {
              if (runner.MustStop()) return;
              const int64_t run = std::min({writer.run(), bit.run(), count - i, kMaskedRun});
              const int64_t room = std::min(available - taken, reader.run());
              const uint8_t* const masks = is_masked + bit.offset();
              Element* const first = target + writer.offset();
              if (run <= room) {
                const int64_t moved =
                    MoveMasked(masks, bits.inner_stride(), run, elements + reader.offset(),
                               from.inner_stride(), first, to.inner_stride());
                reader.Advance(moved);
                taken += moved;
              } else {
                for (int64_t j = 0; j < run && taken < available; ++j) {
                  if (masks[j * bits.inner_stride()] == 0) continue;
                  first[j * to.inner_stride()] = elements[reader.offset()];
                  reader.Advance(1);
                  ++taken;
                }
              }
              writer.Advance(run);
              bit.Advance(run);
              i += run;
            }
          });
        });
      });
}

// Slice b of axis 0 of `updates` goes to that of `data`, along `axis` from index b on.
std::unique_ptr<Kernel> MakeScatterUpdate(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef index = InputRef(call, 1);
  const TensorRef updates = InputRef(call, 2);
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0, -2), out.layout.rank);
  Piece copy = MakePiece(self, out);
  PreparePiece(copy);
  Piece slice = MakePiece(updates, TensorRef{updates.layout, out.address});
  slice.to_dtype = out.layout.dtype;
  for (int d = 0; d < updates.layout.rank; ++d) {
    slice.axes[d] = {d == 0 ? 1 : updates.layout.shape[d], updates.layout.strides[d],
                     out.layout.strides[d]};
  }
  PreparePiece(slice);
  const int64_t num_slices = std::min(ExtentOf(updates.layout, 0), ExtentOf(out.layout, 0));
  const int64_t room = ExtentOf(out.layout, axis) - ExtentOf(updates.layout, axis);
  const int64_t step = StrideOf(out.layout, axis);
  return MakePlannedKernel(NumElements(out.layout), 0,
                           [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
                               TaskRunner& runner) {
                             CopyUnlessInPlace(copy, inputs, outputs, runner);
                             Piece piece = slice;
                             for (int64_t i = 0; i < num_slices && !runner.MustStop(); ++i) {
                               const auto start =
                                   LoadNumber<int64_t>(index.layout.dtype, inputs[index.address],
                                                       i * StrideOf(index.layout, 0));
                               if (start < 0 || start > room) continue;
                               piece.from_offset = i * StrideOf(updates.layout, 0);
                               piece.to_offset = i * StrideOf(out.layout, 0) + start * step;
                               RunPiece(piece, inputs, outputs, runner);
                             }
                           });
}

// line[i] += element i * stride from `from` on.
template <typename C, typename Element>
void AddRun(const Element* from, int64_t stride, int64_t count, C* __restrict line) {
  if (stride == 1) {  // a loop of its own, which becomes vectors
    for (int64_t i = 0; i < count; ++i) line[i] += NumberOf<C>(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) line[i] += NumberOf<C>(from[i * stride]);
  }
}

// Every element adds up what the windows that hold it have, in the order of the windows. These add
// to a part of a row at a time, each with all its elements there.
// Attributes: shape, axis, size and step of the windows.
std::unique_ptr<Kernel> MakeUnfoldGrad(const Call& call) {
  const TensorRef grad = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 1), out.layout.rank);
  const int64_t size = IntAttribute(call, 2, 1);
  const int64_t step = std::max<int64_t>(1, IntAttribute(call, 3, 1));
  const int last = grad.layout.rank - 1;
  const int64_t num_windows = ExtentOf(grad.layout, axis);
  const int64_t window_stride = StrideOf(grad.layout, axis);
  const int64_t element_stride = StrideOf(grad.layout, last);
  const AxisGroup from = GroupOf(WithoutAxis(WithoutAxis(grad.layout, last), axis));
  const AxisGroup to = GroupOf(WithoutAxis(out.layout, axis));
  const int64_t extent = ExtentOf(out.layout, axis);
  const int64_t out_stride = StrideOf(out.layout, axis);
  const int64_t count = NumElements(out.layout);
  constexpr int64_t kMostPlaces = 4096;
  const int64_t cost = CeilDivide(size, step);  // of each place
  const int64_t part = std::clamp<int64_t>(extent, 1, std::min(kMostPlaces, PiecesPerTask(cost)));
  const int64_t parts_per_row = CeilDivide(extent, part);
  const int64_t num_parts = count / std::max<int64_t>(1, extent) * parts_per_row;
  const int64_t per_task = PiecesPerTask(part * cost);
  return MakePlannedKernel(
      count, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunTasks(runner, CeilDivide(num_parts, per_task), [&](int64_t task) {
          const int64_t end = std::min((task + 1) * per_task, num_parts);
          VisitAnyElement(grad.layout.dtype, [&]<typename Element>(Element) {
            using C = std::conditional_t<std::is_same_v<Element, double>, double, float>;
            C line[kMostPlaces];
            for (int64_t i = task * per_task; i < end; ++i) {
              const int64_t row = i / parts_per_row;
              const int64_t begin = i % parts_per_row * part;
              const int64_t num_places = std::min(part, extent - begin);
              const auto* gradients = static_cast<const Element*>(inputs[grad.address]) +
                                      AxisCursor(from, row).offset();
              std::fill_n(line, num_places, C{0});
              const int64_t behind = std::min(num_windows, (begin + num_places - 1) / step + 1);
              int64_t w = begin < size ? 0 : CeilDivide(begin - size + 1, step);
              for (; w < behind; ++w) {
                const int64_t left = w * step - begin;
                const int64_t first = std::max<int64_t>(0, -left);
                const int64_t num = std::min(size, num_places - left) - first;
                AddRun(gradients + w * window_stride + first * element_stride, element_stride, num,
                       line + left + first);
              }
              VisitAnyElement(out.layout.dtype, [&]<typename Out>(Out) {
                auto* first = static_cast<Out*>(outputs[out.address]) +
                              AxisCursor(to, row).offset() + begin * out_stride;
                StoreRun(line, 1, num_places, first, out_stride);
              });
            }
          });
        });
      });
}

// Attributes: the first and the last number. Between them the products come first, so that whole
// numbers stay exact.
std::unique_ptr<Kernel> MakeLinspace(const Call& call) {
  const TensorRef out = OutputRef(call, 0);
  const double start = RealAttribute(call, 0);
  const double end = RealAttribute(call, 1);
  const int64_t count = NumElements(out.layout);
  const int64_t stride = StrideOf(out.layout, 0);
  return MakePlannedKernel(count, 0,
                           [=](const void* const* /*inputs*/, void* const* outputs,
                               void* /*workspace*/, TaskRunner& runner) {
                             RunTasks(runner, CeilDivide(count, kTaskElements), [&](int64_t task) {
                               const int64_t behind = std::min((task + 1) * kTaskElements, count);
                               VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
                                 auto* elements = static_cast<Element*>(outputs[out.address]);
                                 for (int64_t i = task * kTaskElements; i < behind; ++i) {
                                   const auto steps = static_cast<double>(count - 1);
                                   double number = start;
                                   if (i > 0)
                                     number += static_cast<double>(i) * (end - start) / steps;
                                   if (i > 0 && i == count - 1) number = end;
                                   elements[i * stride] = ElementOf<Element>(number);
                                 }
                               });
                             });
                           });
}

}  // namespace

std::span<const KernelEntry> PlacementKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnInplaceMaskedScatter", &MakeMaskedScatter},
      {"aclnnInplaceScatterUpdate", &MakeScatterUpdate},
      {"aclnnLinspace", &MakeLinspace},
      {"aclnnOneHot", &MakeOneHot},
      {"aclnnUnfoldGrad", &MakeUnfoldGrad},
  };
  return kEntries;
}

}  // namespace opserve::kernels
