#include "server/session/session_call.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "opserve/v1/session.pb.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/call_trace.h"
#include "server/grpc/message_bytes.h"
#include "server/grpc/status_conversion.h"
#include "server/native/received_request.h"
#include "server/request/admitted_request.h"
#include "server/request/request.h"
#include "server/session/request_arrival.h"

namespace opserve::server {
namespace {

using codec::FrameKind;
using codec::kBatchBytes;
using codec::kMaxFrames;

// Larger requests gain nothing by a session that carries them whole, and would hold up those behind
// them. Likewise answers, to clients that take parts.
constexpr uint64_t kMaxRequestBytes = 1 << 20;

absl::Status Broken(absl::string_view why) {
  return InvalidCall("", "", absl::StrCat("the session's protocol is broken: ", why), 0);
}

// The codec speaks of the rule alone.
absl::Status AsError(const absl::Status& status) {
  return InvalidCall("", "", status.message(), 0);
}

}  // namespace

// A request in progress: what its answer needs.
struct SessionCall::Numbered final : CallState {
  Numbered(uint64_t number, absl::Time deadline) : CallState(deadline), number(number) {}

  const uint64_t number;
  AnswerForm form;
  std::unique_ptr<ResultDeparture> departure;  // on its way to the polling thread
};

struct SessionCall::Announced {
  std::unique_ptr<AdmittedRequest> request;  // until it is started or refused
  std::optional<RequestArrival> arrival;
  bool is_cancelled = false;  // by the client, which sends no chunk after it
};

void SessionCall::Listen(SessionContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) {
    new SessionCall(context, queue);
  }
}

SessionCall::SessionCall(SessionContext& context, grpc::ServerCompletionQueue* queue)
    : RequestStream(context, queue, Kind::kSession), session_(context) {
  static const int method = MethodNumber("opserve.v1.OperatorService.Session");
  context.service->RequestStream(method, &rpc_, &stream_, queue_, &arrival_);
}

SessionCall::~SessionCall() {
  if (has_begun_) session_.sessions->RecordEnd(EndStatus());
}

uint64_t SessionCall::max_request_bytes() const {
  return std::min(kMaxRequestBytes, context_.calls->max_message_bytes);
}

void SessionCall::OnBegin() {
  has_begun_ = true;
  session_.sessions->RecordBegin();
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
  session_.sessions->RecordMessage(frames);
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
  ours.set_features(codec::kAnnouncements | codec::kAnyAnnouncements);
  ours.set_build(absl::StrCat("opserved ", OPSERVE_VERSION));
  ours.set_daemon(session_.run);
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
  OPSERVE_ASSIGN_OR_RETURN(const std::shared_ptr<Numbered> call,
                           BeginNumbered(number, start->timeout));
  const uint64_t message_bytes = codec::NumBytes(frame.body);
  codec::HeaderArena arena;
  ReceivedRequest request;
  const absl::Status status = request.Read(session_, std::move(frame.body), &arena);
  if (!status.ok()) {
    AnswerRequest(*call, RefuseMessage(status, tenant_, clock, rpc_, message_bytes));
    return absl::OkStatus();
  }
  call->form = request.form();
  RequestInput input = request.ToInput(tenant_, call, clock);
  AddFacts(request_bytes, start->traceparent, &input);
  // Alive until its end, as the call's state.
  Request::Start(session_, std::move(input),
                 [this, call = call.get()](const RequestEnd& end) { AnswerRequest(*call, end); });
  return absl::OkStatus();
}

void SessionCall::AddFacts(uint64_t request_bytes, absl::string_view traceparent,
                           RequestInput* input) {
  input->request_bytes = request_bytes;
  input->trace = traceparent.empty() ? TraceOf(rpc_) : BeginSpan(traceparent);
  input->connection = connection_;
  input->is_local = is_local_;
  input->held_limit = takes_parts_ ? &held_limit_ : nullptr;
}

absl::StatusOr<std::shared_ptr<SessionCall::Numbered>> SessionCall::BeginNumbered(
    uint64_t number, absl::Duration timeout) {
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
  auto call = std::make_shared<Numbered>(number, DeadlineAfter(timeout));
  if (!BeginRequest(number, call)) {
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
      codec::ReadPayloadSizes(codec::kMaxPayloads, &frame.body);
  if (!sizes.ok()) return AsError(sizes.status());
  OPSERVE_ASSIGN_OR_RETURN(const std::shared_ptr<Numbered> call,
                           BeginNumbered(number, start->timeout));
  const uint64_t header_bytes = codec::NumBytes(frame.body);
  codec::HeaderArena arena;
  ReceivedRequest received;
  absl::Status status = received.Read(session_, std::move(frame.body), &arena);
  if (!status.ok()) {
    AnswerRequest(*call, RefuseMessage(status, tenant_, clock, rpc_, header_bytes));
    return absl::OkStatus();
  }
  if (received.has_payloads()) return Broken("an announcement has payloads");
  uint64_t request_bytes = header_bytes;
  for (const uint64_t size : *sizes) request_bytes += std::min(size, UINT64_MAX - request_bytes);
  const codec::PayloadSizes payload_bytes = *sizes;
  auto announced = std::make_unique<Announced>();
  announced->arrival.emplace(
      session_, queue_, tenant_->id(), *std::move(sizes),
      RequestArrival::Receiver{
          .expect_event = [this] { ExpectEvent(); },
          .event_ended = [this, number] { EndArrivalsEvent(number); },
          .grant =
              [this, number](uint64_t bytes) {
                SayFrame(FrameKind::kCredit, number, codec::WriteCredit(bytes));
              },
          .over = [this, number](const absl::Status& status) { EndArrival(number, status); }});
  call->form = received.form();
  RequestInput input = received.ToInput(tenant_, call, clock);
  AddFacts(request_bytes, start->traceparent, &input);
  announced->request = AdmittedRequest::Admit(
      session_, std::move(input), payload_bytes, announced->arrival->tensors(),
      [this, call = call.get()](const RequestEnd& end) { AnswerRequest(*call, end); });
  if (announced->request == nullptr) return absl::OkStatus();
  Announced& kept = *announced;
  announced_[number] = std::move(announced);
  session_.sessions->RecordArrivalBegin();
  status =
      kept.arrival->Begin(kept.request->bound(), kept.request->priority(), kept.request->call());
  if (!status.ok()) {
    session_.sessions->RecordArrivalEnd(status);
    const std::unique_ptr<Announced> refused = std::move(announced_.extract(number).mapped());
    AdmittedRequest::Refuse(std::move(refused->request), status);
  }
  return absl::OkStatus();
}

absl::Status SessionCall::HandleChunk(codec::Frame&& frame) {
  const uint64_t number = frame.number;
  const auto found = announced_.find(number);
  const bool is_wanted = found != announced_.end() && !found->second->is_cancelled;
  if (is_wanted && !found->second->arrival->is_over()) {
    for (const grpc::Slice& piece : frame.body) {
      found->second->request->Add(codec::ViewOf(piece));
    }
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
    const auto leaving = departures_.find(number);
    if (leaving != departures_.end()) leaving->second->Fail(call->Check());
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
  // A client that sends no more still reads, unless it is gone.
  ForEachDeparture([](ResultDeparture& departure) {
    if (departure.is_cancelled()) {
      departure.Fail(absl::CancelledError("the client is gone before it had all results"));
    }
  });
}

void SessionCall::OnTaken() {
  ForEachDeparture([](ResultDeparture& departure) { departure.Proceed(); });
}

void SessionCall::ForEachDeparture(absl::FunctionRef<void(ResultDeparture& departure)> visit) {
  if (departures_.empty()) return;
  std::vector<uint64_t> numbers;
  for (const auto& [number, departure] : departures_) numbers.push_back(number);
  for (const uint64_t number : numbers) visit(*departures_.find(number)->second);
}

void SessionCall::EndArrival(uint64_t number, const absl::Status& status) {
  session_.sessions->RecordArrivalEnd(status);
  Announced& announced = *announced_.find(number)->second;
  std::unique_ptr<AdmittedRequest> request = std::move(announced.request);
  if (status.ok()) {
    return AdmittedRequest::Start(std::move(request), announced.arrival->TakeBooked());
  }
  const uint64_t bytes = announced.arrival->bytes_on_their_way();
  if (bytes > 0 && !announced.is_cancelled) dropped_[number] = bytes;
  AdmittedRequest::Refuse(std::move(request), status);
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

void SessionCall::AnswerRequest(Numbered& request, const RequestEnd& end) {
  if (end.status.ok() && end.answer->run.held != nullptr) return BeginDeparture(request, end);
  const uint64_t number = request.number;
  std::string made;  // an error, or a header that was not made before
  absl::string_view header;
  codec::Slices payloads;
  if (end.status.ok()) {
    header = HeaderBytesOf(*end.answer, request.form, &made);
    // Small results are copied, so that their buffers are free for other requests at once.
    payloads = PayloadsOf(*end.answer, codec::kMostCopiedBytes);
  } else {
    header = made = ToStatusDetails(end.status).SerializeAsString();
  }
  const FrameKind kind = end.status.ok() ? FrameKind::kAnswer : FrameKind::kError;
  const size_t bytes = codec::PayloadMessageBytes(header.size(), payloads);
  if (takes_parts_ && bytes > kMaxRequestBytes && end.status.ok()) {
    codec::Slices slices;
    codec::TakeSlices(MessageOf(*end.answer, request.form), &slices).IgnoreError();
    const auto add_parts = [&](OutgoingMessages& outgoing) {
      outgoing.AddInParts(number, std::move(slices));
    };
    return Answer(end, number, bytes, add_parts, /*is_request_over=*/true);
  }
  const auto add = [&](OutgoingMessages& outgoing) {
    outgoing.BeginFrame(bytes).AddPayloadMessage(kind, number, header, payloads);
  };
  Answer(end, number, bytes, add, /*is_request_over=*/true);
}

void SessionCall::BeginDeparture(Numbered& request, const RequestEnd& end) {
  const uint64_t number = request.number;
  std::string made;
  const absl::string_view header = HeaderBytesOf(*end.answer, request.form, &made);
  request.departure = std::make_unique<ResultDeparture>(
      session_, queue_, tenant_->id(), connection_, FindRequest(number), end, std::string(header),
      ResultDeparture::Sender{.begin = [this, number] { AddDeparture(number); },
                              .expect_event = [this] { ExpectEvent(); },
                              .event_ended = [this, number] { EndDeparturesEvent(number); },
                              .waiting = [this, number] { return BytesThatWait(number); },
                              .send =
                                  [this, number](codec::Slices&& bytes) {
                                    Say([&](OutgoingMessages& outgoing) {
                                      outgoing.AddInParts(number, std::move(bytes),
                                                          /*is_last=*/false);
                                    });
                                  },
                              .over =
                                  [this, number](absl::StatusOr<codec::Slices> last) {
                                    EndDeparture(number, std::move(last));
                                  }});
  request.departure->Begin();
}

void SessionCall::AddDeparture(uint64_t number) {
  const std::shared_ptr<CallState> call = FindRequest(number);
  departures_[number] = std::move(static_cast<Numbered&>(*call).departure);
  session_.sessions->RecordDepartureBegin();
}

void SessionCall::EndDeparture(uint64_t number, absl::StatusOr<codec::Slices> last) {
  session_.sessions->RecordDepartureEnd(last.status());
  ResultDeparture& departure = *departures_.find(number)->second;
  const auto add = [&](OutgoingMessages& outgoing) {
    if (last.ok()) return outgoing.AddInParts(number, *std::move(last));
    outgoing.EraseInParts(number);
    const std::string error = ToStatusDetails(last.status()).SerializeAsString();
    outgoing.BeginFrame(error.size()).Add(FrameKind::kError, number, error);
  };
  Answer(departure.end(), number, departure.answer_bytes(), add, /*is_request_over=*/true);
}

void SessionCall::EndDeparturesEvent(uint64_t number) {
  const auto found = departures_.find(number);
  std::unique_ptr<ResultDeparture> ended;
  if (found->second->is_over() && !found->second->has_events()) {
    ended = std::move(found->second);
    departures_.erase(found);
  }
  EventEnded();
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
