// What kernels that are planned as functions are made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

using RunFunction = std::function<void(const void* const* inputs, void* const* outputs,
                                       void* workspace, TaskRunner& runner)>;

// A kernel that runs `run`, which captures the plan by value.
inline std::unique_ptr<Kernel> MakePlannedKernel(int64_t num_elements, size_t workspace_bytes,
                                                 RunFunction run) {
  class PlannedKernel final : public Kernel {
   public:
    PlannedKernel(int64_t num_elements, size_t workspace_bytes, RunFunction run)
        : num_elements_(num_elements), workspace_bytes_(workspace_bytes), run_(std::move(run)) {}
    size_t workspace_bytes() const override { return workspace_bytes_; }
    int64_t num_elements() const override { return num_elements_; }
    void Run(const void* const* inputs, void* const* outputs, void* workspace,
             TaskRunner& runner) const override {
      run_(inputs, outputs, workspace, runner);
    }

   private:
    const int64_t num_elements_;
    const size_t workspace_bytes_;
    const RunFunction run_;
  };
  return std::make_unique<PlannedKernel>(num_elements, workspace_bytes, std::move(run));
}

// A tensor of a call: its layout and the place of its address among those given to Run.
struct TensorRef {
  Layout layout;
  int address = -1;  // -1: left out

  bool is_given() const { return address >= 0; }
};

inline std::vector<TensorRef> RefsOf(const std::vector<Tensors>& arguments, size_t argument) {
  std::vector<TensorRef> refs;
  int address = 0;
  for (size_t i = 0; i < argument && i < arguments.size(); ++i) {
    address += static_cast<int>(arguments[i].size());
  }
  if (argument < arguments.size()) {
    for (const Layout& layout : arguments[argument]) refs.push_back({layout, address++});
  }
  return refs;
}
inline std::vector<TensorRef> InputRefs(const Call& call, size_t argument) {
  return RefsOf(call.inputs, argument);
}
inline std::vector<TensorRef> OutputRefs(const Call& call, size_t argument) {
  return RefsOf(call.outputs, argument);
}
inline TensorRef InputRef(const Call& call, size_t argument) {
  const std::vector<TensorRef> refs = InputRefs(call, argument);
  return refs.empty() ? TensorRef{} : refs.front();
}
inline TensorRef OutputRef(const Call& call, size_t argument) {
  const std::vector<TensorRef> refs = OutputRefs(call, argument);
  return refs.empty() ? TensorRef{} : refs.front();
}

// `layout` seen with another shape and strides 0 where it is broadcast to it.
inline Layout BroadcastTo(const Layout& layout, const Layout& shape) {
  Layout result = shape;
  result.dtype = layout.dtype;
  for (int d = 0; d < shape.rank; ++d) {
    const int own = d - (shape.rank - layout.rank);
    result.strides[d] = own >= 0 && layout.shape[own] != 1 ? layout.strides[own] : 0;
  }
  return result;
}

// The axes [begin, end) of a layout as one, neighbours merged.
inline AxisGroup GroupOf(const Layout& layout, int begin, int end) {
  AxisGroup group;
  int last = -1;
  for (int d = begin; d < end; ++d) {
    const int64_t extent = layout.shape[d];
    const int64_t stride = layout.strides[d];
    if (extent == 1) continue;
    if (last >= 0 && group.strides[last] == stride * extent) {
      group.extents[last] *= extent;
    } else {
      group.extents[++last] = extent;
    }
    group.strides[last] = stride;
  }
  group.rank = std::max(last + 1, 1);
  return group;
}
inline AxisGroup GroupOf(const Layout& layout) { return GroupOf(layout, 0, layout.rank); }

// `layout` without axis `axis`.
inline Layout WithoutAxis(Layout layout, int axis) {
  if (axis >= layout.rank) return layout;
  std::move(layout.shape.begin() + axis + 1, layout.shape.end(), layout.shape.begin() + axis);
  std::move(layout.strides.begin() + axis + 1, layout.strides.end(), layout.strides.begin() + axis);
  --layout.rank;
  return layout;
}

inline int64_t ExtentOf(const Layout& layout, int axis) {
  return axis < layout.rank ? layout.shape[axis] : 1;
}
inline int64_t StrideOf(const Layout& layout, int axis) {
  return axis < layout.rank ? layout.strides[axis] : 0;
}

// The axes of both groups, those of `inner` last.
inline AxisGroup JoinGroups(AxisGroup outer, const AxisGroup& inner) {
  for (int d = 0; d < inner.rank; ++d) {
    const int last = outer.rank - 1;
    const int64_t extent = inner.extents[d];
    if (extent == 1) continue;
    if (outer.extents[last] == 1) {
      outer.extents[last] = extent;
    } else if (outer.strides[last] == inner.strides[d] * extent) {
      outer.extents[last] *= extent;
    } else {
      outer.extents[outer.rank++] = extent;
    }
    outer.strides[outer.rank - 1] = inner.strides[d];
  }
  return outer;
}
inline AxisGroup OneAxis(int64_t extent, int64_t stride) {
  AxisGroup group;
  group.extents[0] = extent;
  group.strides[0] = extent == 1 ? 0 : stride;
  return group;
}

// A kernel that runs others, one after the other. Null ones are left out.
inline std::unique_ptr<Kernel> MakeSequence(std::vector<std::unique_ptr<Kernel>> kernels) {
  std::erase(kernels, nullptr);
  if (kernels.empty()) return nullptr;
  if (kernels.size() == 1) return std::move(kernels.front());
  int64_t num_elements = 0;
  size_t workspace_bytes = 0;
  for (const auto& kernel : kernels) {
    num_elements = std::max(num_elements, kernel->num_elements());
    workspace_bytes = std::max(workspace_bytes, kernel->workspace_bytes());
  }
  const std::vector<std::shared_ptr<const Kernel>> shared(std::make_move_iterator(kernels.begin()),
                                                          std::make_move_iterator(kernels.end()));
  return MakePlannedKernel(num_elements, workspace_bytes,
                           [shared](const void* const* inputs, void* const* outputs,
                                    void* workspace, TaskRunner& runner) {
                             for (const auto& kernel : shared) {
                               kernel->Run(inputs, outputs, workspace, runner);
                             }
                           });
}

// Tasks of about kTaskElements elements: how many of `count` pieces one takes.
inline int64_t PiecesPerTask(int64_t piece_elements) {
  return std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, piece_elements));
}

}  // namespace opserve::kernels
