// The kernel's entry, compiled for every combination of dtypes as the vendor's build does: once
// with each set of DTYPE_ macros. entries_self.inc and entries_grad_output.inc go through the other
// two.
#include "launch.h"

#define OPSERVE_PASTE(a, b, c, d) a##_##b##_##c##_##d
#define OPSERVE_NAME(a, b, c, d) OPSERVE_PASTE(a, b, c, d)
#define kl_div_target_backward \
  OPSERVE_NAME(kl_div_target_backward, DTYPE_GRAD_OUTPUT, DTYPE_SELF, DTYPE_TARGET)

#define DTYPE_TARGET float
#include "entries_self.inc"
#undef DTYPE_TARGET
#define DTYPE_TARGET half
#include "entries_self.inc"
#undef DTYPE_TARGET
#define DTYPE_TARGET bfloat16_t
#include "entries_self.inc"
#undef DTYPE_TARGET
#undef kl_div_target_backward

namespace opserve::ascendc::emulation {
namespace {

#define OPSERVE_ENTRIES_OF(grad_output, self)                      \
  {                                                                \
    kl_div_target_backward_##grad_output##_##self##_float,         \
        kl_div_target_backward_##grad_output##_##self##_half,      \
        kl_div_target_backward_##grad_output##_##self##_bfloat16_t \
  }
#define OPSERVE_ENTRIES(grad_output)                                               \
  {                                                                                \
    OPSERVE_ENTRIES_OF(grad_output, float), OPSERVE_ENTRIES_OF(grad_output, half), \
        OPSERVE_ENTRIES_OF(grad_output, bfloat16_t)                                \
  }

constexpr KlDivTargetBackwardEntry kEntries[3][3][3] = {
    OPSERVE_ENTRIES(float), OPSERVE_ENTRIES(half), OPSERVE_ENTRIES(bfloat16_t)};

int Position(int32_t dtype) {
  switch (dtype) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 27:
      return 2;
  }
  return -1;
}

}  // namespace

KlDivTargetBackwardEntry EntryFor(int32_t grad_output, int32_t self, int32_t target) {
  const int g = Position(grad_output);
  const int s = Position(self);
  const int t = Position(target);
  return g < 0 || s < 0 || t < 0 ? nullptr : kEntries[g][s][t];
}

}  // namespace opserve::ascendc::emulation
