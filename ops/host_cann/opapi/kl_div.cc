#include "ops/host_cann/opapi/kl_div.h"

#include <algorithm>
#include <array>

namespace opserve::host_cann {

Shape CheckKlDiv(StageOneChecks& checks, const KlDivArguments& arguments,
                 const Argument& gradient_of, bool double_is_supported) {
  const auto& [grad_output, self, target, gradient] = arguments;
  const std::array all = {&grad_output, &self, &target, &gradient};

  checks.Castable(self->dtype, gradient);
  // DOUBLE does not mix with the other types.
  const bool all_double = std::all_of(all.begin(), all.end(), [](const Argument* argument) {
    return (*argument)->dtype == ACL_DOUBLE;
  });
  if (!(double_is_supported && all_double)) {
    for (const Argument* argument : all) checks.ComputeType(*argument);
  }
  checks.SameType(gradient, gradient_of);
  checks.RankAtMost8(all);
  const Shape shape = checks.Broadcast(target, self->shape, "self");
  checks.BroadcastsTo(grad_output, shape, "the shape of self and target");
  checks.HasShape(gradient, gradient_of->shape, gradient_of.name);
  return shape;
}

}  // namespace opserve::host_cann
