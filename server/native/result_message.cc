#include "server/native/result_message.h"

#include <string>

namespace opserve::server {

void DescribeResult(uint32_t invocation, absl::string_view output, const TensorSpec& spec,
                    v1::Result* to) {
  to->mutable_source()->set_invocation(invocation);
  to->mutable_source()->set_output(std::string(output));
  to->mutable_tensor()->set_dtype(spec.dtype);
  to->mutable_tensor()->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
}

void DescribeResults(const Program& program, google::protobuf::RepeatedPtrField<v1::Result>* to) {
  for (const BoundResult& result : program.results) {
    const OutputRef& source = result.source;
    DescribeResult(source.invocation,
                   program.invocations[source.invocation].OutputName(source.output),
                   program.output(source).spec, to->Add());
  }
}

v1::ExecuteResponse AnswerOf(const Program& program) {
  v1::ExecuteResponse answer;
  DescribeResults(program, answer.mutable_results());
  // All results travel, so each is the payload of its own position.
  for (int i = 0; i < answer.results_size(); ++i) {
    answer.mutable_results(i)->mutable_tensor()->set_payload(static_cast<uint32_t>(i));
  }
  return answer;
}

}  // namespace opserve::server
