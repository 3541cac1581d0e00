// A prepared program that adds.
#pragma once

#include <cstdint>

#include "opserve/v1/operator_service.pb.h"

namespace opserve {

// Adds the payload of each call `count` times to its resident tensor, by "Add" or "InplaceAdd". Its
// inputs are the payload and the tensor, of `elements` FLOATs each; results are for the caller.
inline v1::PrepareRequest AddingProgram(const char* operator_name, int count, int64_t elements) {
  v1::PrepareRequest request;
  for (const auto kind : {v1::ProgramInput::KIND_PAYLOAD, v1::ProgramInput::KIND_RESIDENT}) {
    v1::ProgramInput* input = request.add_inputs();
    input->set_dtype(v1::DATA_TYPE_FLOAT);
    input->add_shape(elements);
    input->set_kind(kind);
  }
  for (int i = 0; i < count; ++i) {
    v1::Invocation* add = request.mutable_program()->add_invocations();
    add->set_operator_(operator_name);
    for (const char* name : {"self", "other"}) {
      v1::NamedTensor* input = add->add_inputs();
      input->set_name(name);
      if (i > 0 && input->name() == "self") {
        input->mutable_tensor()->mutable_invocation_output()->set_invocation(i - 1);
      } else {
        input->mutable_tensor()->set_program_input(input->name() == "self" ? 1 : 0);
      }
    }
  }
  return request;
}

}  // namespace opserve
