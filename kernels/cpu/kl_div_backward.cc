#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
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

}  // namespace

std::unique_ptr<Kernel> MakeKlDivBackward(const Layout& grad_output, const Layout& /*self*/,
                                          const Layout& target, const Layout& out, double divisor,
                                          bool log_target) {
  // `out` has self's shape and stands for it.
  const Layout operands[] = {grad_output, target, out};
  const TermPositions positions = {0, 2};
  return log_target ? MakeTermKernel<LogTerm>(operands, positions, 1.0 / divisor)
                    : MakeTermKernel<PlainTerm>(operands, positions, 1.0 / divisor);
}

}  // namespace opserve::kernels
