#include "client/cpp/known_results.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/message.h"

namespace opserve {
namespace {

// The position of a resident input among those of its kind.
int ResidentPosition(const v1::PrepareRequest& request, uint32_t input) {
  int position = 0;
  for (uint32_t i = 0; i < input; ++i) {
    position += request.inputs(static_cast<int>(i)).kind() == v1::ProgramInput::KIND_RESIDENT;
  }
  return position;
}

void ReadPlace(const v1::PrepareRequest& request, const v1::WantedResult& wanted,
               KnownResult* result) {
  if (wanted.has_keep()) {
    result->place = KnownResult::kKept;
  } else if (wanted.has_replace()) {
    result->place = KnownResult::kReplaces;
    result->handle = wanted.replace().handle();
    // The daemon has taken the program, so the input is there.
    if (wanted.replace().has_program_input()) {
      result->resident = ResidentPosition(request, wanted.replace().program_input());
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<KnownResult>> ReadKnownResults(const v1::PrepareRequest& request,
                                                          const v1::PrepareResponse& response) {
  std::vector<KnownResult> results;
  const auto& wanted = request.program().results();
  // A program without chosen results sends all outputs of its last invocation.
  if (!response.results().empty() && !wanted.empty() && response.results_size() != wanted.size()) {
    return BadAnswer(absl::StrCat("a prepared program has ", response.results_size(), " results, ",
                                  wanted.size(), " were asked for"));
  }
  for (const v1::Result& described : response.results()) {
    const v1::Tensor& tensor = described.tensor();
    KnownResult& result = results.emplace_back();
    result.source = {described.source().invocation(), described.source().output()};
    result.dtype = tensor.dtype();
    result.shape = {tensor.shape().begin(), tensor.shape().end()};
    if (wanted.empty()) continue;
    ReadPlace(request, wanted.Get(static_cast<int>(results.size()) - 1), &result);
  }
  return results;
}

}  // namespace opserve
