// Small requests for large results.
#pragma once

#include <cstdint>
#include <string>

#include "opserve/v1/operator_service.pb.h"

namespace opserve::server {

// Each of the invocations makes `elements` FLOATs of one and the same element, and all are wanted.
inline v1::ExecuteRequest BroadcastRequest(int invocations, int64_t elements) {
  v1::ExecuteRequest request;
  const float one = 1;
  request.add_payloads(std::string(reinterpret_cast<const char*>(&one), sizeof(one)));
  for (int i = 0; i < invocations; ++i) {
    v1::Invocation* invocation = request.add_invocations();
    invocation->set_operator_("L1LossBackward");
    for (const char* name : {"grad_output", "self", "target"}) {
      v1::NamedTensor* input = invocation->add_inputs();
      input->set_name(name);
      input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
      input->mutable_tensor()->add_shape(elements);
      input->mutable_tensor()->add_strides(0);
      input->mutable_tensor()->set_payload(0);
    }
    request.add_results()->set_invocation(i);
  }
  return request;
}

}  // namespace opserve::server
