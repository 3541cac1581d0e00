#include "server/request/request_answer.h"

#include <utility>

#include "absl/strings/string_view.h"

namespace opserve::server {
namespace {

ResultBytes BytesOf(PinnedBuffer buffer, bool is_copied) {
  if (!is_copied) return ResultBytes(std::move(buffer));
  return ResultBytes(absl::string_view(static_cast<const char*>(buffer.data()), buffer.size()));
}

}  // namespace

std::shared_ptr<RequestAnswer> MakeAnswer(const Program& program, ProgramResult&& result,
                                          std::vector<KeptTensor> kept, const AnswerParts& parts) {
  auto answer = std::make_shared<RequestAnswer>();
  answer->has_results = parts.has_results;
  // As much as there is, since a remembered answer counts so much (IdempotencyCache).
  if (parts.has_results) answer->results.reserve(result.outputs.size());
  uint32_t num_payloads = 0;
  for (ProgramResult::Output& output : result.outputs) {
    const bool travels = !output.range && !output.kept;
    if (travels) ++num_payloads;
    if (travels && result.held == nullptr) {
      answer->payloads.push_back(BytesOf(std::move(output.data), parts.are_results_copied));
    }
    if (!parts.has_results) continue;
    const OutputRef& source = output.source;
    AnsweredResult& described = answer->results.emplace_back();
    described.invocation = source.invocation;
    described.output = program.invocations[source.invocation].OutputName(source.output);
    described.spec = program.output(source).spec;
    described.kept = output.kept;
    described.range = std::move(output.range);
    if (travels) described.payload = num_payloads - 1;
  }
  result.outputs.clear();
  if (result.held != nullptr) {
    // For the receipt, which leaves before them.
    for (const HeldResults::Result& held : result.held->results) {
      result.copied_from_device_bytes += held.bytes;
    }
  }
  answer->run = std::move(result);
  answer->kept = std::move(kept);
  return answer;
}

}  // namespace opserve::server
