#include <memory>

#include "kernels/cpu/call.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/term.h"

namespace opserve::kernels {
namespace {

// (grad_output * scale) * (ln(target) - self + 1), and 0 where target is 0 or -0, whatever the
// others are.
struct PlainTerm {
  static constexpr int kInputs = 3;
  static constexpr bool kTakesDouble = false;
  template <typename V>
  static V Value(const V* inputs, V scale) {
    const V target = inputs[2];
    const V term = (inputs[0] * scale) * (Log(target) - inputs[1] + 1.0f);
    return target == 0.0f ? V{} : term;
  }
};

// (grad_output * scale) * exp(target) * (target - self + 1)
struct LogTerm {
  static constexpr int kInputs = 3;
  static constexpr bool kTakesDouble = false;
  template <typename V>
  static V Value(const V* inputs, V scale) {
    const V target = inputs[2];
    return (inputs[0] * scale) * Exp(target) * (target - inputs[1] + 1.0f);
  }
};

std::unique_ptr<Kernel> Make(const Call& call) {
  const Layout& self = Input(call, 1);
  const Layout& target = Input(call, 2);
  const Layout operands[] = {Input(call, 0), self, target, Output(call, 0)};
  const TermPositions positions = {0, 1, 2};
  const double scale = 1.0 / ReductionDivisor(IntAttribute(call, 0), self, target);
  const bool log_target = BoolAttribute(call, 1);
  return log_target ? MakeTermKernel<LogTerm>(operands, positions, scale)
                    : MakeTermKernel<PlainTerm>(operands, positions, scale);
}

}  // namespace

std::span<const KernelEntry> KlDivTargetBackwardKernels() {
  static constexpr KernelEntry kEntries[] = {{"aclnnKlDivTargetBackward", &Make}};
  return kEntries;
}

}  // namespace opserve::kernels
