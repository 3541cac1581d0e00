#include "kernels/cpu/unscale.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// to[i] = from[i] * factor, for elements that are `stride` apart. Returns whether any of `from` is
// infinite or NaN.
template <typename Element>
bool Unscale(const Element* from, int64_t stride, int64_t count, float factor, Element* to) {
  constexpr int64_t kRun = 512;
  float buffer[kRun];
  int any = 0;
  for (int64_t i = 0; i < count; i += kRun) {
    const int64_t part = std::min(kRun, count - i);
    const float* numbers = buffer;
    float* products = buffer;
    const bool is_direct = std::is_same_v<Element, float> && stride == 1;
    if constexpr (std::is_same_v<Element, float>) {
      if (is_direct) {
        numbers = from + i;
        products = to + i;
      }
    }
    if (!is_direct) LoadRun(from + i * stride, stride, part, buffer);
    OPSERVE_INDEPENDENT_ITERATIONS
    for (int64_t k = 0; k < part; ++k) {
      const float number = numbers[k];
      any |= std::fabs(number) <= std::numeric_limits<float>::max() ? 0 : 1;
      products[k] = number * factor;
    }
    if (!is_direct) StoreRun(buffer, 1, part, to + i * stride, stride);
  }
  return any != 0;
}

// Calls visit(Element{}) with the type of a gradient.
template <typename Visitor>
void VisitGradient(Dtype dtype, Visitor visit) {
  switch (dtype) {
    case Dtype::kFloat16:
      return visit(Half{});
    case Dtype::kBfloat16:
      return visit(Bfloat16{});
    default:
      return visit(float{});
  }
}

// Part of a tensor of a list.
struct ListPart {
  size_t tensor;
  int64_t begin;
  int64_t end;
};

}  // namespace

// Arguments: the gradients and foundInf, both in place, and the factor of the gradients. foundInf
// becomes 1 if a gradient is infinite or NaN. A gradient is read once for both.
std::unique_ptr<Kernel> MakeCheckAndUnscale(const Call& call) {
  const std::vector<TensorRef> gradients = InputRefs(call, 0);
  const std::vector<TensorRef> products = OutputRefs(call, 0);
  const TensorRef found = InputRef(call, 1);
  const TensorRef new_found = OutputRef(call, 1);
  const TensorRef factor = InputRef(call, 2);
  std::vector<AxisGroup> groups;
  std::vector<ListPart> parts;
  int64_t num_elements = 1;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const int64_t count = NumElements(gradients[i].layout);
    groups.push_back(GroupOf(gradients[i].layout));
    num_elements += count;
    for (int64_t begin = 0; begin < count; begin += kTaskElements) {
      parts.push_back({i, begin, std::min(begin + kTaskElements, count)});
    }
  }
  return MakePlannedKernel(
      num_elements, parts.size(),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        // Whether a part has any that is not finite.
        auto* const is_found = static_cast<uint8_t*>(workspace);
        const auto scale = LoadNumber<float>(factor.layout.dtype, inputs[factor.address], 0);
        RunTasks(runner, static_cast<int64_t>(parts.size()), [&](int64_t task) {
          const ListPart& part = parts[task];
          const TensorRef& gradient = gradients[part.tensor];
          const AxisGroup& group = groups[part.tensor];
          bool any = false;
          VisitGradient(gradient.layout.dtype, [&]<typename Element>(Element) {
            const auto* from = static_cast<const Element*>(inputs[gradient.address]);
            auto* to = static_cast<Element*>(outputs[products[part.tensor].address]);
            AxisCursor cursor(group, part.begin);
            for (int64_t i = part.begin; i < part.end;) {
              const int64_t run = std::min(cursor.run(), part.end - i);
              any |= Unscale(from + cursor.offset(), group.inner_stride(), run, scale,
                             to + cursor.offset());
              cursor.Advance(run);
              i += run;
            }
          });
          is_found[task] = any ? 1 : 0;
        });
        const bool any = std::any_of(is_found, is_found + parts.size(),
                                     [](uint8_t is_part) { return is_part != 0; });
        const auto given = LoadNumber<float>(found.layout.dtype, inputs[found.address], 0);
        StoreNumber(any ? 1.0F : given, new_found.layout.dtype, outputs[new_found.address], 0);
      });
}

}  // namespace opserve::kernels
