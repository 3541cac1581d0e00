#include "server/execution/result_message.h"

#include <string>

namespace opserve::server {

void DescribeResult(const OutputRef& source, absl::string_view name, const TensorSpec& spec,
                    v1::Result* to) {
  to->mutable_source()->set_invocation(source.invocation);
  to->mutable_source()->set_output(std::string(name));
  to->mutable_tensor()->set_dtype(spec.dtype);
  to->mutable_tensor()->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
}

v1::ExecuteResponse AnswerOf(const Program& program) {
  v1::ExecuteResponse answer;
  for (const BoundResult& result : program.results) {
    const BoundInvocation& invocation = program.invocations[result.source.invocation];
    v1::Result* const to = answer.add_results();
    DescribeResult(result.source, invocation.OutputName(result.source.output),
                   program.output(result.source).spec, to);
    // All results travel, so each is the payload of its own position.
    to->mutable_tensor()->set_payload(static_cast<uint32_t>(answer.results_size() - 1));
  }
  return answer;
}

}  // namespace opserve::server
