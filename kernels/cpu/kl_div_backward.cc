#include <memory>

#include "kernels/cpu/call.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/term.h"

namespace opserve::kernels {
namespace {

// -target * (grad_output * scale). Scaling the gradient first keeps the product in range wherever
// the result is.
struct PlainTerm {
  static constexpr int kInputs = 2;
  static constexpr bool kTakesDouble = true;
  template <typename V>
  static V Value(const V* inputs, V scale) {
    return -inputs[1] * (inputs[0] * scale);
  }
};

// -exp(target) * (grad_output * scale)
struct LogTerm {
  static constexpr int kInputs = 2;
  static constexpr bool kTakesDouble = true;
  template <typename V>
  static V Value(const V* inputs, V scale) {
    return -Exp(inputs[1]) * (inputs[0] * scale);
  }
};

std::unique_ptr<Kernel> Make(const Call& call) {
  const Layout& self = Input(call, 1);
  const Layout& target = Input(call, 2);
  // `out` has self's shape and stands for it.
  const Layout operands[] = {Input(call, 0), target, Output(call, 0)};
  const TermPositions positions = {0, 2};
  const double scale = 1.0 / ReductionDivisor(IntAttribute(call, 0), self, target);
  const bool log_target = BoolAttribute(call, 1);
  return log_target ? MakeTermKernel<LogTerm>(operands, positions, scale)
                    : MakeTermKernel<PlainTerm>(operands, positions, scale);
}

}  // namespace

std::span<const KernelEntry> KlDivBackwardKernels() {
  static constexpr KernelEntry kEntries[] = {{"aclnnKlDivBackward", &Make}};
  return kEntries;
}

}  // namespace opserve::kernels
