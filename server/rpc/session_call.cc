#include "server/rpc/session_call.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "opserve/v1/session.pb.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/rpc/execution_start.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/request_arrival.h"
#include "server/rpc/status_conversion.h"

namespace opserve::server {
namespace {

using codec::FrameKind;
using codec::kBatchBytes;
using codec::kMaxFrames;

// Larger requests gain nothing by a session that carries them whole, and would hold up those behind
// them. Likewise answers, to clients that take parts.
constexpr uint64_t kMaxRequestBytes = 1 << 20;
constexpr size_t kMaxAnnouncedPayloads = 4096;  // as of a message

absl::Status Broken(absl::string_view why) {
  return InvalidCall("", "", absl::StrCat("the session's protocol is broken: ", why), 0);
}

// The codec speaks of the rule alone.
absl::Status AsError(const absl::Status& status) {
  return InvalidCall("", "", status.message(), 0);
}

}  // namespace

// Its header, which Admit and StartAdmitted read, and its payloads on their way.
struct SessionCall::Announced {
  codec::HeaderArena arena;
  std::optional<ReceivedRequest> request;
  std::optional<ExecutionInput> input;  // until it is started or refused
  ProgramCall bound;
  OnExecutionEnd answer;
  std::optional<RequestArrival> arrival;
  bool is_cancelled = false;  // by the client, which sends no chunk after it
};

void SessionCall::Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) {
    new SessionCall(context, queue);
  }
}

SessionCall::SessionCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue)
    : ExecutionStream(context, queue, Kind::kSession) {
  static const int method = MethodNumber("opserve.v1.OperatorService.Session");
  context_.service->RequestStream(method, &rpc_, &stream_, queue_, &arrival_);
}

SessionCall::~SessionCall() {
  if (has_begun_) context_.sessions->RecordEnd(EndStatus());
}

uint64_t SessionCall::max_request_bytes() const {
  return std::min(kMaxRequestBytes, context_.calls->max_message_bytes);
}

void SessionCall::OnBegin() {
  has_begun_ = true;
  context_.sessions->RecordBegin();
}

void SessionCall::HandleMessage(const StageClock& clock) {
  codec::FrameReader reader;
  absl::Status status = reader.Read(message_);
  if (!status.ok()) status = AsError(status);
  if (message_.Length() > max_request_bytes() + kBatchBytes) {
    status = Broken(absl::StrCat("a message of ", message_.Length(), " bytes, at most ",
                                 max_request_bytes() + kBatchBytes, " allowed"));
  }
  int frames = 0;
  while (status.ok()) {
    absl::StatusOr<std::optional<codec::Frame>> frame = reader.Next();
    if (!frame.ok()) {
      status = AsError(frame.status());
    } else if (!frame->has_value()) {
      break;
    } else if (++frames > kMaxFrames) {
      status = Broken(absl::StrCat("a message has more than ", kMaxFrames, " frames"));
    } else {
      status = HandleFrame(**std::move(frame), clock);
    }
  }
  context_.sessions->RecordMessage(frames);
  if (!status.ok()) EndInput(status, clock);
}

absl::Status SessionCall::HandleFrame(codec::Frame&& frame, const StageClock& clock) {
  if (frame.kind == FrameKind::kHello) return HandleHello(frame);
  if (!has_hello_) return Broken("the first frame must be hello");
  const bool has_body = codec::NumBytes(frame.body) > 0;
  switch (frame.kind) {
    case FrameKind::kRequest:
      return HandleRequest(std::move(frame), clock);
    case FrameKind::kAnnouncement:
      return HandleAnnouncement(std::move(frame), clock);
    case FrameKind::kChunk:
      return HandleChunk(std::move(frame));
    case FrameKind::kCancel:
      if (has_body) return Broken("a cancel has no body");
      return HandleCancel(frame.number);
    case FrameKind::kPing:
      if (has_body) return Broken("a ping has no body");
      SayFrame(FrameKind::kPong, frame.number, "");
      return absl::OkStatus();
    case FrameKind::kPong:
      if (has_body) return Broken("a pong has no body");
      return absl::OkStatus();
    default:
      return Broken(absl::StrCat("frames of the kind ", static_cast<int>(frame.kind),
                                 " come from the daemon only"));
  }
}

absl::Status SessionCall::HandleHello(const codec::Frame& frame) {
  if (has_hello_) return Broken("a second hello");
  if (frame.number != 0) {
    return Broken(absl::StrCat("hello has the number ", frame.number, ", not 0"));
  }
  v1::SessionHello theirs;
  grpc::ByteBuffer body = codec::ToByteBuffer(frame.body);
  if (!ParseMessage(kBatchBytes, &body, &theirs).ok()) return Broken("hello is no SessionHello");
  if (theirs.version() == 0) return Broken("hello has the version 0");
  has_hello_ = true;
  takes_parts_ = (theirs.features() & codec::kParts) != 0;
  v1::SessionHello ours;
  ours.set_version(codec::kSessionVersion);
  ours.set_features(codec::kAnnouncements);
  ours.set_build(absl::StrCat("opserved ", OPSERVE_VERSION));
  ours.set_daemon(context_.run);
  v1::SessionLimits& limits = *ours.mutable_limits();
  limits.set_max_requests(context_.stream_window);
  limits.set_max_request_bytes(max_request_bytes());
  limits.set_max_message_bytes(max_request_bytes() + kBatchBytes);
  SayFrame(FrameKind::kHello, 0, ours.SerializeAsString());
  if (context_.is_leaving.load(std::memory_order_acquire)) SayGoingAway(kDrainingReason);
  return absl::OkStatus();
}

absl::Status SessionCall::HandleRequest(codec::Frame&& frame, const StageClock& clock) {
  const uint64_t number = frame.number;
  if (is_leaving_) return absl::OkStatus();  // sent before going-away arrived: not started
  const uint64_t request_bytes = codec::NumBytes(frame.body);
  if (request_bytes > max_request_bytes()) {
    return Broken(absl::StrCat("the body of request ", number, " has ", request_bytes,
                               " bytes, at most ", max_request_bytes(), " allowed"));
  }
  absl::StatusOr<codec::RequestStart> start = codec::ReadRequestStart(&frame.body);
  if (!start.ok()) return AsError(start.status());
  OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<CallState> call, BeginNumbered(number, start->timeout));
  const auto answer = [this, number](const ExecutionEnd& end) { AnswerRequest(number, end); };
  const uint64_t message_bytes = codec::NumBytes(frame.body);
  codec::HeaderArena arena;
  absl::StatusOr<ReceivedRequest> request = ReadRequest(context_, std::move(frame.body), &arena);
  if (!request.ok()) {
    answer(RefuseMessage(request.status(), tenant_, clock, rpc_, message_bytes));
    return absl::OkStatus();
  }
  StartExecution(context_,
                 {.tenant = tenant_,
                  .message = std::move(request->message),
                  .header = *request->header,
                  .request_bytes = request_bytes,
                  .rpc = &rpc_,
                  .traceparent = std::move(start->traceparent),
                  .connection = connection_,
                  .takes_any_results = takes_parts_,
                  .known = std::move(request->known),
                  .programs = request->programs,
                  .call = std::move(call),
                  .clock = clock},
                 answer);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<CallState>> SessionCall::BeginNumbered(uint64_t number,
                                                                      absl::Duration timeout) {
  if (number <= last_request_) {
    return Broken(absl::StrCat("request ", number, " does not come after ", last_request_));
  }
  if (dropped_.size() >= context_.stream_window) {
    return Broken(absl::StrCat(dropped_.size(),
                               " failed requests without a cancel, which says that no more chunks "
                               "of them come"));
  }
  CountInFlight();
  // The stream's own deadline is no request's.
  if (timeout == absl::InfiniteDuration()) timeout = context_.default_deadline;
  std::shared_ptr<CallState> call = BeginRequest(number, timeout);
  if (call == nullptr) {
    return Broken(absl::StrCat("more than ", context_.stream_window,
                               " requests without an answer, with request ", number));
  }
  last_request_ = number;
  return call;
}

absl::Status SessionCall::HandleAnnouncement(codec::Frame&& frame, const StageClock& clock) {
  const uint64_t number = frame.number;
  if (is_leaving_) return absl::OkStatus();
  absl::StatusOr<codec::RequestStart> start = codec::ReadRequestStart(&frame.body);
  if (!start.ok()) return AsError(start.status());
  absl::StatusOr<codec::PayloadSizes> sizes =
      codec::ReadPayloadSizes(kMaxAnnouncedPayloads, &frame.body);
  if (!sizes.ok()) return AsError(sizes.status());
  OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<CallState> call, BeginNumbered(number, start->timeout));
  auto announced = std::make_unique<Announced>();
  announced->answer = [this, number](const ExecutionEnd& end) { AnswerRequest(number, end); };
  const uint64_t header_bytes = codec::NumBytes(frame.body);
  absl::StatusOr<ReceivedRequest> request =
      ReadRequest(context_, std::move(frame.body), &announced->arena);
  if (!request.ok()) {
    announced->answer(RefuseMessage(request.status(), tenant_, clock, rpc_, header_bytes));
    return absl::OkStatus();
  }
  if (!request->message.payloads().empty()) return Broken("an announcement has payloads");
  announced->request.emplace(*std::move(request));
  uint64_t request_bytes = header_bytes;
  for (const uint64_t size : *sizes) request_bytes += std::min(size, UINT64_MAX - request_bytes);
  announced->input.emplace(ExecutionInput{.tenant = tenant_,
                                          .message = std::move(announced->request->message),
                                          .header = *announced->request->header,
                                          .request_bytes = request_bytes,
                                          .rpc = &rpc_,
                                          .traceparent = std::move(start->traceparent),
                                          .connection = connection_,
                                          .takes_any_results = takes_parts_,
                                          .call = call,
                                          .clock = clock});
  const codec::PayloadSizes payload_bytes = *sizes;
  announced->arrival.emplace(
      context_, queue_, tenant_->id(), std::move(call), *std::move(sizes),
      RequestArrival::Receiver{
          .expect_event = [this] { ExpectEvent(); },
          .event_ended = [this, number] { EndArrivalsEvent(number); },
          .grant =
              [this, number](uint64_t bytes) {
                SayFrame(FrameKind::kCredit, number, codec::WriteCredit(bytes));
              },
          .over = [this, number](const absl::Status& status) { EndArrival(number, status); }});
  std::optional<ProgramCall> bound = Admit(context_, *announced->input, payload_bytes,
                                           announced->arrival->tensors(), announced->answer);
  if (!bound) return absl::OkStatus();
  announced->bound = *std::move(bound);
  Announced& kept = *announced;
  announced_[number] = std::move(announced);
  context_.sessions->RecordArrivalBegin();
  const absl::Status status = kept.arrival->Begin(kept.bound);
  if (!status.ok()) {
    context_.sessions->RecordArrivalEnd(status);
    const std::unique_ptr<Announced> refused = std::move(announced_.extract(number).mapped());
    RefuseAdmitted(context_, *refused->input, status, refused->answer);
  }
  return absl::OkStatus();
}

absl::Status SessionCall::HandleChunk(codec::Frame&& frame) {
  const uint64_t number = frame.number;
  const auto found = announced_.find(number);
  const bool is_wanted = found != announced_.end() && !found->second->is_cancelled;
  if (is_wanted && !found->second->arrival->is_over()) {
    const absl::Status status = found->second->arrival->Receive(std::move(frame.body));
    return status.ok() ? status : Broken(status.message());
  }
  const auto dropped = dropped_.find(number);
  const uint64_t bytes = codec::NumBytes(frame.body);
  if (dropped == dropped_.end() || bytes > dropped->second) {
    return Broken(absl::StrCat("a chunk of request ", number, ", which expects none"));
  }
  dropped->second -= bytes;
  if (dropped->second == 0) dropped_.erase(dropped);
  return absl::OkStatus();
}

absl::Status SessionCall::HandleCancel(uint64_t number) {
  dropped_.erase(number);  // the client confirms the end
  if (const std::shared_ptr<CallState> call = FindRequest(number)) {
    call->MarkCancelled();
    call->Cancel();
    const auto found = announced_.find(number);
    if (found != announced_.end()) {
      found->second->is_cancelled = true;
      found->second->arrival->Fail(call->Check());
    }
    return absl::OkStatus();
  }
  if (!takes_parts_) return absl::OkStatus();
  // It was answered: what has not been sent of a large answer need not be.
  Say([number](OutgoingMessages& outgoing) {
    if (!outgoing.EraseInParts(number)) return;
    const std::string error =
        ToStatusDetails(absl::CancelledError("the client cancelled while its answer was sent"))
            .SerializeAsString();
    outgoing.BeginFrame(error.size()).Add(FrameKind::kError, number, error);
  });
  return absl::OkStatus();
}

void SessionCall::OnInputEnd() {
  // Ends of arrivals change announced_ only by their events.
  for (const auto& [number, announced] : announced_) {
    announced->arrival->Fail(
        absl::CancelledError("the session ended before all payloads of the request had arrived"));
  }
}

void SessionCall::EndArrival(uint64_t number, const absl::Status& status) {
  context_.sessions->RecordArrivalEnd(status);
  Announced& announced = *announced_.find(number)->second;
  ExecutionInput input = *std::move(announced.input);
  announced.input.reset();
  if (status.ok()) {
    StartAdmitted(context_, std::move(input), std::move(announced.bound), announced.answer);
    return;
  }
  announced.bound = ProgramCall();
  const uint64_t bytes = announced.arrival->bytes_on_their_way();
  if (bytes > 0 && !announced.is_cancelled) dropped_[number] = bytes;
  RefuseAdmitted(context_, input, status, announced.answer);
}

void SessionCall::EndArrivalsEvent(uint64_t number) {
  const auto found = announced_.find(number);
  std::unique_ptr<Announced> ended;
  if (found->second->arrival->is_over() && !found->second->arrival->has_events()) {
    ended = std::move(found->second);
    announced_.erase(found);
  }
  EventEnded();
}

void SessionCall::AnswerRequest(uint64_t number, const ExecutionEnd& end) {
  std::string serialised;  // an error, or a header that nobody has serialised yet
  absl::string_view header;
  absl::Span<const grpc::Slice> payloads;
  if (!end.status.ok()) {
    header = serialised = ToStatusDetails(end.status).SerializeAsString();
  } else {
    payloads = end.answer->payloads;
    header = end.answer->header_bytes;
    if (header.empty()) header = serialised = end.answer->header->SerializeAsString();
  }
  const FrameKind kind = end.status.ok() ? FrameKind::kAnswer : FrameKind::kError;
  const size_t bytes = codec::PayloadMessageBytes(header.size(), payloads);
  if (takes_parts_ && bytes > kMaxRequestBytes && end.status.ok()) {
    codec::Slices slices;
    codec::TakeSlices(codec::BuildPayloadMessage(header, payloads), &slices).IgnoreError();
    const auto add_parts = [&](OutgoingMessages& outgoing) {
      outgoing.AddInParts(number, std::move(slices));
    };
    return Answer(end, number, bytes, add_parts, /*is_request_over=*/true);
  }
  // Small results are copied, so that their buffers are free for other requests at once.
  const auto add = [&](OutgoingMessages& outgoing) {
    outgoing.BeginFrame(bytes).AddPayloadMessage(kind, number, header, payloads);
  };
  Answer(end, number, bytes, add, /*is_request_over=*/true);
}

void SessionCall::SayFrame(FrameKind kind, uint64_t number, absl::string_view body) {
  Say([&](OutgoingMessages& outgoing) {
    outgoing.BeginFrame(body.size()).Add(kind, number, body);
  });
}

void SessionCall::SayGoingAway(absl::string_view why) {
  if (is_leaving_ || !has_hello_) return;
  is_leaving_ = true;
  v1::SessionGoingAway message;
  message.set_last_request(last_request_);
  message.set_reason(std::string(why));
  SayFrame(FrameKind::kGoingAway, 0, message.SerializeAsString());
}

}  // namespace opserve::server
