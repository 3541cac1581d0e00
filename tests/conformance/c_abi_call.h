// Calls an operator through the C ABI as a conformance case says.
#pragma once

#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "tests/conformance/case.h"

namespace opserve::conformance {

// The enumerator of a name of the conformance set. Throws std::out_of_range for another name.
aclDataType DtypeOf(const std::string& name);

// The descriptor of `tensor` at a device address, null for no tensor. Owned by the caller.
aclTensor* CreateDescriptor(const std::optional<Tensor>& tensor, void* address);

// Stage one of the case's operator. `inputs` in API order.
aclnnStatus StageOne(const Case& of, const std::vector<aclTensor*>& inputs, aclTensor* output,
                     uint64_t* workspace_size, aclOpExecutor** executor);

// Stage two of the case's operator.
aclnnStatus StageTwo(const Case& of, void* workspace, uint64_t workspace_size,
                     aclOpExecutor* executor, aclrtStream stream);

}  // namespace opserve::conformance
