#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
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

}  // namespace

std::unique_ptr<Kernel> MakeKlDivTargetBackward(const Layout& grad_output, const Layout& self,
                                                const Layout& target, const Layout& grad_target,
                                                double divisor, bool log_target) {
  const Layout operands[] = {grad_output, self, target, grad_target};
  const TermPositions positions = {0, 1, 2};
  return log_target ? MakeTermKernel<LogTerm>(operands, positions, 1.0 / divisor)
                    : MakeTermKernel<PlainTerm>(operands, positions, 1.0 / divisor);
}

}  // namespace opserve::kernels
