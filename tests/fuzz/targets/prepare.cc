// A program that is prepared, and a call of it, as the daemon treats them: bound once, bound for
// the call, run twice. Every refusal is the caller's mistake and says so; what a prepared program
// gives is what it gives when it is sent whole, as far as no input of the call is needed for that;
// nothing stays behind.
//
// Input: two bytes for the size of the message PrepareRequest, that message, the message
// PreparedCall.
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/codec/payload_message.h"
#include "server/native/native_request.h"
#include "server/run/prepared_program.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/lane.h"

namespace opserve::server {
namespace {

constexpr ProgramLimits kPrepareLimits = {.max_tensor_bytes = 1 << 18,
                                          .max_program_bytes = 1 << 20};

absl::StatusOr<std::shared_ptr<ResidentTensor>> FindNone(absl::string_view) {
  return MakeError(Reason::kTensorUnknown, "unknown");
}

absl::StatusOr<std::shared_ptr<SharedRegion>> FindNoRegion(const MemoryRange&) {
  return MakeError(Reason::kShmInvalid, absl::StatusCode::kNotFound, "unknown");
}

// The bytes of each result; empty: the run was refused.
std::vector<std::string> ResultsOf(const ProgramCall& call,
                                   absl::Span<const codec::Payload> payloads) {
  const auto result = Lane::Get().Run(call, payloads);
  if (!result.ok()) {
    CheckIsRefusal(result.status());
    return {};
  }
  std::vector<std::string> bytes;
  for (const ProgramResult::Output& output : result->outputs) {
    const TensorSpec& spec = call.program->output(output.source).spec;
    Check(output.data.size() == static_cast<size_t>(NumBytes(spec)),
          "a result has the size of its shape");
    bytes.emplace_back(static_cast<const char*>(output.data.data()), output.data.size());
  }
  return bytes;
}

void RunCall(const ProgramCall& call) {
  const Program& program = *call.program;
  // What stays on a device needs a daemon's books, and windows need regions.
  if (!program.kept.empty() || !program.residents.empty() || !program.windows.empty()) return;
  std::vector<std::string> contents;
  for (const uint64_t size : program.payload_sizes) contents.emplace_back(size, '\1');
  std::vector<codec::Payload> payloads;
  for (const std::string& content : contents) payloads.push_back({content.size(), {content}});
  const std::vector<std::string> first = ResultsOf(call, payloads);
  Check(first == ResultsOf(call, payloads), "the same again gives the same bits");
  Lane::Get().CheckNothingStaysBehind();
}

void PrepareAndCall(absl::string_view request_bytes, absl::string_view call_bytes) {
  v1::PrepareRequest request;
  v1::PreparedCall call;
  if (!request.ParseFromArray(request_bytes.data(), static_cast<int>(request_bytes.size())) ||
      !call.ParseFromArray(call_bytes.data(), static_cast<int>(call_bytes.size()))) {
    return;
  }
  const auto prepared = MakePrepared(request, Lane::Get().operators(), kPrepareLimits, FindNone);
  if (!prepared.ok()) return CheckIsRefusal(prepared.status());
  const Program& program = prepared->program();
  Check(prepared->host_bytes() >= program.invocations.size() * sizeof(BoundInvocation),
        "a program takes what its invocations take");
  Check(program.input_bytes <= kPrepareLimits.max_program_bytes, "sizes are bounded");
  const auto bound =
      prepared->Bind(TranslateCall(call), program.payload_sizes, FindNone, FindNoRegion);
  if (!bound.ok()) {
    CheckIsRefusal(bound.status());
  } else {
    Check(bound->residents.size() == program.residents.size(), "each tensor is there");
    Check(bound->windows.size() == program.windows.size(), "each window is there");
    RunCall(*bound);
  }
  // A call with a payload too many is refused, whatever else it says.
  std::vector<uint64_t> sizes(program.payload_sizes.begin(), program.payload_sizes.end());
  sizes.push_back(4);
  CheckIsRefusal(prepared->Bind(TranslateCall(call), sizes, FindNone, FindNoRegion).status());
  if (!request.inputs().empty()) return;
  const auto whole = BindProgram(TranslateProgram(request.program()), {}, Lane::Get().operators(),
                                 kPrepareLimits, FindNone);
  Check(whole.ok(), "a program without inputs can be sent whole");
  Check(whole->program->results == program.results, "and gives the same results");
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  opserve::fuzz::Input input(data, size);
  const size_t request_bytes = input.Short();
  const absl::string_view request = input.Take(request_bytes);
  opserve::server::PrepareAndCall(request, input.Rest());
  return 0;
}
