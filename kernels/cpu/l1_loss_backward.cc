#include <memory>

#include "kernels/cpu/call.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/term.h"

namespace opserve::kernels {
namespace {

// sign(self - target) * (grad_output * scale). The sign comes from comparisons, which are exact in
// float for all dtypes: equal infinities give 0, and so does a NaN.
struct Term {
  static constexpr int kInputs = 3;
  static constexpr bool kTakesDouble = false;
  template <typename V>
  static V Value(const V* inputs, V scale) {
    const V self = inputs[1];
    const V target = inputs[2];
    const V above = self > target ? V{} + 1.0f : V{};
    const V sign = self < target ? V{} - 1.0f : above;
    return sign * (inputs[0] * scale);
  }
};

std::unique_ptr<Kernel> Make(const Call& call) {
  const Layout& out = Output(call, 0);  // of the shape that all inputs broadcast to
  const Layout operands[] = {Input(call, 0), Input(call, 1), Input(call, 2), out};
  const TermPositions positions = {0, 1, 2};
  const double divisor = ReductionDivisor(IntAttribute(call, 0), out, out);
  return MakeTermKernel<Term>(operands, positions, 1.0 / divisor);
}

}  // namespace

std::span<const KernelEntry> L1LossBackwardKernels() {
  static constexpr KernelEntry kEntries[] = {{"aclnnL1LossBackward", &Make}};
  return kEntries;
}

}  // namespace opserve::kernels
