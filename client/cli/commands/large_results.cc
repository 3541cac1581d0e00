#include "client/cli/commands/large_results.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

bool IsTooLarge(const absl::Status& status, bool is_of_argument) {
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  // The daemon names an argument if the results are at fault, and none if the message is.
  return absl::IsInvalidArgument(status) && detail &&
         ReasonFromText(detail->reason()) == Reason::kTooLarge &&
         !detail->argument().empty() == is_of_argument;
}

absl::StatusOr<Response> Execute(Client& client, const Request& request) {
  absl::StatusOr<Response> response = client.Execute(request);
  // The positions of kept outputs are relied on below.
  if (response.ok() && response->kept.size() != request.kept.size()) {
    return absl::InternalError(absl::StrCat("the daemon kept ", response->kept.size(),
                                            " outputs of ", request.kept.size()));
  }
  return response;
}

// The position of the output among those that the request keeps, made if there is none yet.
size_t KeptPosition(const OutputOf& output, Request* request) {
  std::vector<KeptOutput>& kept = request->kept;
  const auto same = std::find_if(kept.begin(), kept.end(), [&](const KeptOutput& other) {
    return other.output.invocation == output.invocation && other.output.output == output.output;
  });
  const auto position = static_cast<size_t>(same - kept.begin());
  // An output that the caller keeps already is downloaded from there and stays.
  if (same == kept.end()) kept.push_back({.output = output});
  return position;
}

// A download with the name of the output that it was.
Result WithSource(const OutputOf& source, const Result& downloaded) {
  struct Block {
    Result result;
    absl::string_view piece;
  };
  // The result refers to its pieces, so the block holds both.
  auto block = std::make_shared<Block>(Block{.result = downloaded, .piece = {}});
  const absl::Span<const std::byte> bytes = block->result.bytes();
  block->piece = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const auto pieces = absl::MakeConstSpan(&block->piece, 1);
  return Result(source, downloaded.dtype(), downloaded.shape(), pieces, std::move(block));
}

// Adds the `wanted` outputs to response->results; they are in response->kept at `positions`.
absl::Status Download(Client& client, const std::vector<OutputOf>& wanted,
                      const std::vector<size_t>& positions, absl::Duration timeout,
                      Response* response) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ResidentTensor& kept = response->kept[positions[i]];
    OPSERVE_ASSIGN_OR_RETURN(const Result result,
                             client.Download(kept.handle, {.timeout = timeout}));
    response->results.push_back(WithSource(wanted[i], result));
  }
  return absl::OkStatus();
}

// Frees all but the first `count` tensors and removes them from the list.
void Release(Client& client, size_t count, absl::Duration timeout,
             std::vector<ResidentTensor>* tensors) {
  std::vector<std::string> handles;
  for (size_t i = count; i < tensors->size(); ++i) handles.push_back((*tensors)[i].handle);
  tensors->resize(count);
  // The end of their lease frees those that cannot be released.
  if (!handles.empty()) client.Release(handles, timeout).status().IgnoreError();
}

}  // namespace

bool IsRequestTooLarge(const absl::Status& status) {
  return IsTooLarge(status, /*is_of_argument=*/false);
}

bool AreResultsTooLarge(const absl::Status& status) {
  return IsTooLarge(status, /*is_of_argument=*/true);
}

absl::StatusOr<Response> ExecuteWithLargeResults(Client& client, const Request& request,
                                                 const std::vector<OutputOf>& results) {
  absl::StatusOr<Response> response = Execute(client, request);
  const std::vector<OutputOf>& wanted = request.results.empty() ? results : request.results;
  // Without names there is nothing to keep. The daemon has computed nothing yet.
  if (wanted.empty() || !AreResultsTooLarge(response.status())) return response;
  Request keeping = request;
  keeping.results.clear();
  std::vector<size_t> positions;
  for (const OutputOf& output : wanted) positions.push_back(KeptPosition(output, &keeping));
  OPSERVE_ASSIGN_OR_RETURN(Response kept, Execute(client, keeping));

  const absl::Status status = Download(client, wanted, positions, request.timeout, &kept);
  // Also after a download that failed: the tensors would take memory until their lease ends.
  Release(client, request.kept.size(), request.timeout, &kept.kept);
  if (!status.ok()) return status;
  return kept;
}

}  // namespace opserve::cli
