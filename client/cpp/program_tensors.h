// Internal: the tensors of programs in the protocol's own form.
#pragma once

#include "opserve/v1/operator_service.pb.h"

namespace opserve {

// Calls `take` with each tensor that the program's invocations read (v1::Tensor&), those of lists
// among them.
template <typename Take>
void ForEachTensor(v1::ExecuteRequest& program, Take take) {
  for (v1::Invocation& invocation : *program.mutable_invocations()) {
    for (v1::NamedTensor& named : *invocation.mutable_inputs()) {
      if (named.has_tensor()) take(*named.mutable_tensor());
      if (!named.has_list()) continue;
      for (v1::Tensor& tensor : *named.mutable_list()->mutable_tensors()) take(tensor);
    }
  }
}

}  // namespace opserve
