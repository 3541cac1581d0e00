// A ModelInferRequest from its bytes to a checked program, and the answer to it: the codec agrees
// with the stock parser; every refusal is the caller's mistake, says so and names the request; what
// is translated is a program of one invocation whose tensors have exactly the bytes that came; the
// answer, single or of a stream, can be read and is that of this request.
//
// Input: one byte for the size of gRPC's slices, the message. There is a region "r" of 64 bytes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/status/error.h"
#include "server/grpc/split_message.h"
#include "server/kserve/infer_answer.h"
#include "server/kserve/infer_request.h"
#include "server/kserve/known_inferences.h"
#include "server/program/bind_program.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {
namespace {

using fuzz::Check;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

constexpr uint64_t kMaxTensorBytes = 1 << 18;
constexpr uint64_t kMaxProgramBytes = 1 << 20;
constexpr uint64_t kRegionBytes = 64;

const NamedRegions& Regions() {
  static const NamedRegions* const regions = [] {
    const std::string name = absl::StrCat("/opserve-fuzz-", getpid());
    const int fd = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
    Check(fd >= 0 && ftruncate(fd, kRegionBytes) == 0, "there is shared memory");
    auto* const made = new NamedRegions(
        [](int32_t /*device*/, auto /*registration*/) { Check(false, "no device has any"); },
        *new SharedMemoryQuota);
    Check(made->Register(/*tenant=*/0, "r", {.key = name, .offset = 0, .byte_size = kRegionBytes},
                         geteuid(), {.max_bytes = kRegionBytes, .max_regions = 1})
              .ok(),
          "the region can be registered");
    shm_unlink(name.c_str());
    close(fd);
    return made;
  }();
  return *regions;
}

void CheckRefusal(const std::string& id, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
      break;
    default:
      Check(false, "a refusal is about the request");
  }
  Check(ErrorDetailOf(status).has_value(), "a refusal has a detail");
  const absl::Status told = InferError(id, status);
  Check(!told.message().empty(), "a refusal says why");
  Check(told.code() != absl::StatusCode::kOutOfRange, "in codes of the protocol");
}

// The stock parser reads the same; raw inputs are then of the header.
void CheckParsers(absl::string_view bytes, bool we_accept, const ModelInferRequest& ours,
                  const codec::PayloadMessage* message) {
  ModelInferRequest stock;
  const bool stock_accepts = stock.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  Check(we_accept == stock_accepts, "accepted by one parser if and only if by the other");
  if (!we_accept) return;
  // Requests that differ in their ids only are known by the rest.
  if (const auto split = SplitInferenceHeader(message->header())) {
    ModelInferRequest rest;
    Check(rest.ParseFromString(split->text) && rest.id().empty(), "without its id it is a request");
    Check(split->id == ours.id(), "and the id is the request's");
  }
  Check(ours.raw_input_contents().empty(), "no tensor goes through protobuf");
  Check(static_cast<size_t>(stock.raw_input_contents_size()) == message->payloads().size(),
        "every raw input is found");
  for (size_t i = 0; i < message->payloads().size(); ++i) {
    std::string joined;
    for (absl::string_view piece : message->payloads()[i].pieces) {
      joined.append(piece.data(), piece.size());
    }
    Check(joined == stock.raw_input_contents(static_cast<int>(i)), "with the same bytes");
  }
}

// An answer with zeros for results.
void CheckAnswers(const ModelInferRequest& request, const Program& program) {
  const BoundInvocation& invocation = program.invocations[0];
  RequestAnswer answer;
  answer.has_results = true;
  for (const BoundResult& wanted : program.results) {
    const OutputRef& ref = wanted.source;
    const BoundOutput& output = invocation.outputs[ref.output];
    AnsweredResult& result = answer.results.emplace_back();
    result.output = invocation.OutputName(ref.output);
    result.spec = output.spec;
    if (output.window) continue;
    result.payload = static_cast<uint32_t>(answer.payloads.size());
    answer.payloads.emplace_back(std::string(static_cast<size_t>(NumBytes(output.spec)), '\0'));
  }
  const InferEcho echo = EchoOf(request);
  ModelInferResponse single;
  Check(single.ParseFromString(fuzz::Joined(BuildInferResponse(echo, answer))),
        "the answer can be read");
  inference::ModelStreamInferResponse streamed;
  Check(streamed.ParseFromString(fuzz::Joined(BuildInferStreamResponse(echo, answer))),
        "that of a stream, too");
  Check(streamed.error_message().empty(), "which is no error");
  for (const ModelInferResponse& response : {std::as_const(single), streamed.infer_response()}) {
    Check(response.id() == request.id(), "it is that of the request");
    Check(response.outputs_size() == static_cast<int>(program.results.size()) &&
              response.raw_output_contents_size() == response.outputs_size(),
          "it has the outputs");
    for (int i = 0; i < response.outputs_size(); ++i) {
      const BoundOutput& output = program.output(program.results[i].source);
      const auto bytes = output.window ? 0 : static_cast<size_t>(NumBytes(output.spec));
      Check(response.raw_output_contents(i) == std::string(bytes, '\0'), "as they are");
    }
  }
}

void Translate(const ModelInferRequest& request, codec::PayloadMessage message) {
  static const auto* const operators = new OperatorTable(TestAcl());
  absl::StatusOr<InferTask> task =
      TranslateInferRequest(request, {.operators = *operators, .regions = &Regions()}, &message);
  if (!task.ok()) return CheckRefusal(request.id(), task.status());
  const ProgramRequest& translated = task->request.program;
  Check(translated.invocations.size() == 1, "one invocation");
  std::vector<uint64_t> payload_bytes;
  for (const codec::Payload& payload : message.payloads()) payload_bytes.push_back(payload.size);
  const absl::StatusOr<ProgramCall> bound = BindProgram(
      translated, payload_bytes, *operators,
      {.max_tensor_bytes = kMaxTensorBytes, .max_program_bytes = kMaxProgramBytes},
      [](absl::string_view) -> absl::StatusOr<std::shared_ptr<ResidentTensor>> {
        Check(false, "no resident tensor can be named");
        return absl::InternalError("");
      },
      [&](const MemoryRange& range) -> absl::StatusOr<std::shared_ptr<SharedRegion>> {
        Check(range.region < task->regions.size(), "only regions that were found");
        return task->regions[range.region];
      });
  if (!bound.ok()) return CheckRefusal(request.id(), bound.status());
  for (const BoundInput& input : bound->invocation(0).inputs) {
    const auto bytes = static_cast<uint64_t>(NumBytes(input.spec));
    if (const auto* payload = std::get_if<PayloadSource>(&input.source)) {
      Check(payload_bytes[payload->payload] == bytes, "an input has the bytes of its shape");
    } else {
      const SharedWindow& window = bound->windows[std::get<SharedSource>(input.source).window];
      Check(window.range.size == bytes, "an input has the bytes of its shape");
      Check(window.range.offset + bytes <= kRegionBytes, "inside its region");
    }
  }
  CheckAnswers(request, *bound->program);
}

void Receive(absl::string_view bytes, size_t slice_bytes) {
  ModelInferRequest request;
  absl::StatusOr<codec::PayloadMessage> message =
      SplitMessage(fuzz::Delivered(bytes, slice_bytes), bytes.size(), &request, kRawInputsField);
  // More raw inputs than any operator could have are refused before they are counted.
  constexpr size_t kManyBytes = 1024;
  if (message.ok() || bytes.size() < kManyBytes) {
    CheckParsers(bytes, message.ok(), request, message.ok() ? &*message : nullptr);
  }
  if (!message.ok()) return CheckRefusal("", message.status());
  Translate(request, *std::move(message));
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  opserve::fuzz::Input input(data, size);
  const size_t slice_bytes = input.Byte();
  opserve::server::Receive(input.Rest(), slice_bytes);
  return 0;
}
