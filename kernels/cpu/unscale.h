// Unscaling of gradients, and whether all are finite.
#pragma once

#include <memory>

#include "kernels/cpu/call.h"
#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// The make function of a KernelEntry.
std::unique_ptr<Kernel> MakeCheckAndUnscale(const Call& call);

}  // namespace opserve::kernels
