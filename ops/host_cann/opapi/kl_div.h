// What the two gradients of the KL divergence, with respect to input and to target, share.
#pragma once

#include "ops/host_cann/opapi/checks.h"

namespace opserve::host_cann {

struct KlDivArguments {
  Argument grad_output;
  Argument self;
  Argument target;
  Argument gradient;  // the output
};

// Checks types, ranks and shapes, once the tensors are known to be alive. The gradient has the type
// and shape of `gradient_of`, which is self or target. Returns the broadcast shape of self and
// target, unspecified if a check has failed.
Shape CheckKlDiv(StageOneChecks& checks, const KlDivArguments& arguments,
                 const Argument& gradient_of, bool double_is_supported);

}  // namespace opserve::host_cann
