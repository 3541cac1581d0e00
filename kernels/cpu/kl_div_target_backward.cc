#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/term.h"

namespace opserve::kernels {
namespace {

// terms = (grad_output * scale) * (ln(target) - self + 1), and 0 where target is 0 or -0, whatever
// the others are.
void PlainTerms(const float* const* inputs, float scale, int64_t count, float* __restrict terms) {
  const float* __restrict grad_output = inputs[0];
  const float* __restrict self = inputs[1];
  const float* __restrict target = inputs[2];
  for (int64_t i = 0; i < count; ++i) {
    const float term = (grad_output[i] * scale) * (Log(target[i]) - self[i] + 1.0f);
    terms[i] = target[i] == 0.0f ? 0.0f : term;
  }
}

// terms = (grad_output * scale) * exp(target) * (target - self + 1)
void LogTerms(const float* const* inputs, float scale, int64_t count, float* __restrict terms) {
  const float* __restrict grad_output = inputs[0];
  const float* __restrict self = inputs[1];
  const float* __restrict target = inputs[2];
  for (int64_t i = 0; i < count; ++i) {
    terms[i] = (grad_output[i] * scale) * Exp(target[i]) * (target[i] - self[i] + 1.0f);
  }
}

}  // namespace

std::unique_ptr<Kernel> MakeKlDivTargetBackward(const Layout& grad_output, const Layout& self,
                                                const Layout& target, const Layout& grad_target,
                                                double divisor, bool log_target) {
  const TermInput inputs[] = {{grad_output, 0}, {self, 1}, {target, 2}};
  return MakeTermKernel<float>(inputs, grad_target, static_cast<float>(1.0 / divisor),
                               log_target ? LogTerms : PlainTerms);
}

}  // namespace opserve::kernels
