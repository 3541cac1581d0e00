#include <memory>

#include "kernels/cpu/kernel.h"
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

}  // namespace

std::unique_ptr<Kernel> MakeMseLossBackward(const Layout& grad_output, const Layout& self,
                                            const Layout& target, const Layout& out,
                                            double divisor) {
  const Layout operands[] = {grad_output, self, target, out};
  const TermPositions positions = {0, 1, 2};
  return MakeTermKernel<Term>(operands, positions, 2.0 / divisor);
}

}  // namespace opserve::kernels
