// Bags of embeddings: sums, means or greatest elements of a table's rows.
#pragma once

#include <memory>

#include "kernels/cpu/call.h"
#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// The make function of a KernelEntry.
std::unique_ptr<Kernel> MakeEmbeddingBag(const Call& call);

}  // namespace opserve::kernels
