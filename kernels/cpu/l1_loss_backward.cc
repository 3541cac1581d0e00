#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/term.h"

namespace opserve::kernels {
namespace {

// terms = sign(self - target) * (grad_output * scale). The sign comes from comparisons, which are
// exact in float for all dtypes: equal infinities give 0, and so does a NaN.
void Terms(const float* const* inputs, float scale, int64_t count, float* __restrict terms) {
  const float* __restrict grad_output = inputs[0];
  const float* __restrict self = inputs[1];
  const float* __restrict target = inputs[2];
  for (int64_t i = 0; i < count; ++i) {
    const float above = self[i] > target[i] ? 1.0f : 0.0f;
    const float sign = self[i] < target[i] ? -1.0f : above;
    terms[i] = sign * (grad_output[i] * scale);
  }
}

}  // namespace

std::unique_ptr<Kernel> MakeL1LossBackward(const Layout& grad_output, const Layout& self,
                                           const Layout& target, const Layout& grad_input,
                                           double divisor) {
  const TermInput inputs[] = {{grad_output, 0}, {self, 1}, {target, 2}};
  return MakeTermKernel<float>(inputs, grad_input, static_cast<float>(1.0 / divisor), Terms);
}

}  // namespace opserve::kernels
