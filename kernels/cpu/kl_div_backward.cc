#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/term.h"

namespace opserve::kernels {
namespace {

// terms = -target * (grad_output * scale). Scaling the gradient first keeps the product in range
// wherever the result is.
template <typename T>
void PlainTerms(const T* const* inputs, T scale, int64_t count, T* __restrict terms) {
  const T* __restrict grad_output = inputs[0];
  const T* __restrict target = inputs[1];
  for (int64_t i = 0; i < count; ++i) terms[i] = -target[i] * (grad_output[i] * scale);
}

// terms = -exp(target) * (grad_output * scale)
template <typename T>
void LogTerms(const T* const* inputs, T scale, int64_t count, T* __restrict terms) {
  const T* __restrict grad_output = inputs[0];
  const T* __restrict target = inputs[1];
  for (int64_t i = 0; i < count; ++i) terms[i] = -Exp(target[i]) * (grad_output[i] * scale);
}

}  // namespace

std::unique_ptr<Kernel> MakeKlDivBackward(const Layout& grad_output, const Layout& /*self*/,
                                          const Layout& target, const Layout& out, double divisor,
                                          bool log_target) {
  // `out` has self's shape and stands for it.
  const TermInput inputs[] = {{grad_output, 0}, {target, 2}};
  if (out.dtype == Dtype::kDouble) {
    return MakeTermKernel<double>(inputs, out, 1.0 / divisor,
                                  log_target ? LogTerms<double> : PlainTerms<double>);
  }
  return MakeTermKernel<float>(inputs, out, static_cast<float>(1.0 / divisor),
                               log_target ? LogTerms<float> : PlainTerms<float>);
}

}  // namespace opserve::kernels
