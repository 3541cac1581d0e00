// A request from its bytes to its result, as the daemon treats it but without gRPC and queues:
// taken apart, digested, checked against the catalogue and the limits, run on the host CANN,
// answered. Every refusal is the caller's mistake and says so; a repetition, which finds its plans
// in the cache, gives the same bits; nothing stays behind.
//
// Input: one byte for the size of gRPC's slices, the message.
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "server/grpc/split_message.h"
#include "server/native/native_answer.h"
#include "server/native/native_request.h"
#include "server/program/program.h"
#include "server/request/admission.h"
#include "server/request/request_digest.h"
#include "server/run/program_runner.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/lane.h"

namespace opserve::server {
namespace {

constexpr uint64_t kMaxTensorBytes = 1 << 18;
constexpr uint64_t kMaxProgramBytes = 1 << 20;
constexpr uint64_t kMaxResponseBytes = 1 << 19;

void CheckDigest(const v1::ExecuteRequest& header, const codec::PayloadMessage& message) {
  v1::ExecuteRequest keyed = header;
  keyed.set_idempotency_key("key");
  v1::ExecuteRequest decoded;
  Check(decoded.ParseFromString(keyed.SerializeAsString()), "the header can be written");
  Check(DigestOf(TranslateRequest(keyed).fields, message.payloads()) ==
            DigestOf(TranslateRequest(decoded).fields, message.payloads()),
        "equal requests have equal digests");
}

// The answer as the client gets it.
std::string Answer(const Program& program, absl::StatusOr<ProgramResult> result) {
  if (!result.ok()) {
    CheckIsRefusal(result.status());
    return std::string(result.status().message());
  }
  const auto answer =
      MakeAnswer(program, *std::move(result),
                 std::vector<KeptTensor>(program.kept.size(), KeptTensor{.handle = "kept"}), {});
  std::string bytes =
      fuzz::Joined(codec::BuildPayloadMessage(HeaderOf(*answer, {}), PayloadsOf(*answer)));
  Check(bytes.size() <= kMaxResponseBytes, "the answer is as small as was promised");
  v1::ExecuteResponse response;
  Check(response.ParseFromString(bytes), "the answer can be read");
  Check(response.results_size() == static_cast<int>(program.results.size()),
        "every result is answered");
  for (int i = 0; i < response.results_size(); ++i) {
    const BoundResult& result = program.results[i];
    const v1::Tensor& tensor = response.results(i).tensor();
    Check(tensor.has_resident_tensor() == result.is_kept, "a result is where it should be");
    if (result.is_kept) continue;
    Check(static_cast<int64_t>(response.payloads(tensor.payload()).size()) ==
              NumBytes(program.output(result.source).spec),
          "a result has the size of its shape");
  }
  return bytes;
}

void Run(ProgramCall& bound, const codec::PayloadMessage& message) {
  const Program& program = *bound.program;
  const uint64_t needed = std::min(program.output_bytes, program.memory_plan.total_bytes);
  Check(program.input_bytes + needed <= kMaxProgramBytes, "sizes are bounded");
  Lane& lane = Lane::Get();
  const auto run = [&] {
    for (auto& kept : bound.kept) kept = std::make_shared<ResidentTensor>();
    std::string answer = Answer(program, lane.Run(bound, message.payloads()));
    for (auto& kept : bound.kept) kept.reset();
    lane.CheckNothingStaysBehind();
    return answer;
  };
  const std::string first = run();
  const std::string second = run();
  Check(first == second, "the same again gives the same bits");
}

void Execute(const grpc::ByteBuffer& bytes) {
  v1::ExecuteRequest header;
  const auto message = SplitMessage(bytes, bytes.Length(), &header);
  if (!message.ok()) return CheckIsRefusal(message.status());
  CheckDigest(header, *message);
  std::vector<uint64_t> payload_bytes;
  for (const codec::Payload& payload : message->payloads()) payload_bytes.push_back(payload.size);
  const ProgramLimits limits = {.max_tensor_bytes = kMaxTensorBytes,
                                .max_program_bytes = kMaxProgramBytes};
  absl::StatusOr<ProgramCall> bound =
      BindProgram(TranslateProgram(header), payload_bytes, Lane::Get().operators(), limits,
                  [](absl::string_view) { return MakeError(Reason::kTensorUnknown, "unknown"); });
  absl::Status status = bound.status();
  if (status.ok()) status = CheckResponseFits(*bound->program, kMaxResponseBytes);
  if (!status.ok()) return CheckIsRefusal(status);
  Run(*bound, *message);
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  opserve::fuzz::Input input(data, size);
  const size_t slice_bytes = input.Byte();
  opserve::server::Execute(opserve::fuzz::Delivered(input.Rest(), slice_bytes));
  return 0;
}
