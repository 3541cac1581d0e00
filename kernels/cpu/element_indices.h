// Gather and scatter: items of a tensor, each with an index of its own into an axis of a table.
//
// Items are taken in the order of the index's elements, so that those that meet at one place are
// taken in the order of their positions along the axis. A negative index counts from the end; an
// index outside is read as 0 and written nowhere.
#pragma once

#include <memory>

#include "kernels/cpu/call.h"
#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// The make functions of KernelEntries.
std::unique_ptr<Kernel> MakeGather(const Call& call);
std::unique_ptr<Kernel> MakeScatter(const Call& call);
std::unique_ptr<Kernel> MakeScatterAdd(const Call& call);
std::unique_ptr<Kernel> MakeScatterValue(const Call& call);

}  // namespace opserve::kernels
