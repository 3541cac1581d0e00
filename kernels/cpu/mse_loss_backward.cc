#include <memory>

#include "kernels/cpu/call.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/term.h"

namespace opserve::kernels {
namespace {

// (self - target) * (grad_output * scale), where scale has the 2.
struct Term {
  static constexpr int kInputs = 3;
  static constexpr bool kTakesDouble = false;
  template <typename V>
  static V Value(const V* inputs, V scale) {
    return (inputs[1] - inputs[2]) * (inputs[0] * scale);
  }
};

std::unique_ptr<Kernel> Make(const Call& call) {
  const Layout& out = Output(call, 0);  // of the shape that all inputs broadcast to
  const Layout operands[] = {Input(call, 0), Input(call, 1), Input(call, 2), out};
  const TermPositions positions = {0, 1, 2};
  const double divisor = ReductionDivisor(IntAttribute(call, 0), out, out);
  return MakeTermKernel<Term>(operands, positions, 2.0 / divisor);
}

}  // namespace

std::span<const KernelEntry> MseLossBackwardKernels() {
  static constexpr KernelEntry kEntries[] = {{"aclnnMseLossBackward", &Make}};
  return kEntries;
}

}  // namespace opserve::kernels
