// The inputs and outputs that an invocation of a request names, in the order of the operator's
// descriptor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "ops/catalog/operator_descriptor.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/program/program_request.h"

namespace opserve::server {

bool Accepts(const std::vector<aclDataType>& dtypes, Dtype dtype);

// "FLOAT, FLOAT16"
std::string DtypeList(const std::vector<aclDataType>& dtypes);

// Sets the tensors of each of the descriptor's inputs; null: the invocation leaves it out. They are
// the invocation's. kInvalidArgument: an input that there is not, or one that is given twice.
absl::Status OrderInputs(const GivenInvocation& invocation,
                         const catalog::OperatorDescriptor& descriptor,
                         absl::InlinedVector<const GivenInput*, 3>* given);

// Sets, by output of the descriptor, whether it is wanted, and the dtype that it is to have.
// kInvalidArgument: an output that there is not, one that is named twice, or a dtype that it cannot
// have.
absl::Status ReadOutputRequests(const GivenInvocation& invocation,
                                const catalog::OperatorDescriptor& descriptor,
                                absl::InlinedVector<bool, 4>* wanted,
                                absl::InlinedVector<std::optional<aclDataType>, 4>* asked);

}  // namespace opserve::server
