// From checked arguments to the kernel of a call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"
#include "ops/host_cann/nnopbase/attributes.h"
#include "ops/host_cann/nnopbase/executor.h"

namespace opserve::host_cann {

// Plans stage two of a checked call. `inputs`, `outputs`, `attributes`: by the descriptor's;
// outputs that are written in place, or not wanted, have no tensor. `work`: of
// catalog::Judge::CountWork; nullopt: the call computes nothing.
ExecutorPlan MakePlan(const char* function, const catalog::OperatorDescriptor& op,
                      absl::Span<const TensorGroup> inputs, absl::Span<const TensorGroup> outputs,
                      absl::Span<const catalog::AttributeValue> attributes,
                      std::optional<int64_t> work);

}  // namespace opserve::host_cann
