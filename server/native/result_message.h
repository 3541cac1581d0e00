// How an answer describes a result.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/program/program.h"

namespace opserve::server {

// Says where a result is from and how it is shaped; where its elements are is for the caller to
// say.
void DescribeResult(uint32_t invocation, absl::string_view output, const TensorSpec& spec,
                    v1::Result* to);

// The same of each result of a program.
void DescribeResults(const Program& program, google::protobuf::RepeatedPtrField<v1::Result>* to);

// The answer, without payloads and receipt, to a program all of whose results travel.
v1::ExecuteResponse AnswerOf(const Program& program);

}  // namespace opserve::server
