#include <memory>

#include "kernels/cpu/kernel.h"
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

}  // namespace

std::unique_ptr<Kernel> MakeL1LossBackward(const Layout& grad_output, const Layout& self,
                                           const Layout& target, const Layout& grad_input,
                                           double divisor) {
  const Layout operands[] = {grad_output, self, target, grad_input};
  const TermPositions positions = {0, 1, 2};
  return MakeTermKernel<Term>(operands, positions, 1.0 / divisor);
}

}  // namespace opserve::kernels
