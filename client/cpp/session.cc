#include "client/cpp/session.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/message.h"
#include "opserve/v1/error.pb.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

constexpr char kSession[] = "/opserve.v1.OperatorService/Session";
// From so many on, a caller lets others go first before it writes.
constexpr size_t kManyInFlight = 8;
constexpr char kBuild[] = "opserve C++ client";

// Of messages that the daemon has yet to read: one that it takes next, and one behind it.
constexpr size_t kMostUnread = 2;

// At most: what a request's body has before its ExecuteRequest, and a message before its frames.
constexpr size_t kMostStartBytes = codec::kRequestStartBytes + codec::kMaxTraceParentBytes;
constexpr size_t kMostFieldBytes = 11;

// The status of a stream as that of its requests, which may have run whatever the daemon says of
// the stream: a call that was refused with the same would be repeated even if that changed tensors.
absl::Status AsLoss(const absl::Status& status) {
  if (status.ok()) return BadAnswer("the session ended before all requests were answered");
  if (!absl::IsUnavailable(status) && !absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(absl::StrCat("the session broke: ", status.message()));
}

}  // namespace

Session::Session(Transport* transport, grpc::CompletionQueue* queue,
                 const std::atomic<bool>* poller_writes, Handlers handlers)
    : transport_(*transport),
      queue_(*queue),
      poller_writes_(*poller_writes),
      handlers_(std::move(handlers)) {}

void Session::Begin() {
  v1::SessionHello hello;
  hello.set_version(codec::kSessionVersion);
  hello.set_features(codec::kParts);
  hello.set_build(kBuild);
  // Held until all has begun, so that the end of the write is not handled before.
  absl::MutexLock lock(&mutex_);
  context_ = transport_.NewSessionContext();
  // The call's beginning is then sent with hello, and has no event of its own.
  context_->set_initial_metadata_corked(true);
  call_ = transport_.stub().PrepareCall(context_.get(), kSession, &queue_);
  call_->StartCall(nullptr);
  writer_.Add(codec::FrameKind::kHello, 0, hello.SerializeAsString());
  is_writing_ = true;
  call_->Write(writer_.Finish(), written_.tag());
  call_->Read(&message_, read_.tag());
}

Session::Place Session::PlaceFor(size_t bytes) const {
  absl::MutexLock lock(&mutex_);
  if (stage_ > Stage::kOpen) return Place::kOver;
  if (bytes > kWhole) return MayAnnounce() ? Place::kFree : Place::kNone;
  if (stage_ < Stage::kOpen) return Place::kNone;
  const uint64_t body_bytes = bytes + kMostStartBytes;
  const bool fits = body_bytes <= max_request_bytes_ &&
                    kMostFieldBytes + codec::kFrameHeaderBytes + body_bytes <= max_message_bytes_;
  return fits ? Place::kFree : Place::kNone;
}

bool Session::MayAnnounce() const {
  return stage_ == Stage::kConnecting || (stage_ == Stage::kOpen && takes_announcements_);
}

uint64_t Session::Enter(SessionRequest* request, const grpc::ByteBuffer* body,
                        std::optional<Announcement> announcement, absl::Time deadline,
                        std::string traceparent, bool is_poller) {
  uint64_t number = 0;
  bool is_loaded = false;
  {
    absl::MutexLock lock(&mutex_);
    // The daemon's hello may have come since PlaceFor.
    if (announcement ? !MayAnnounce() : stage_ != Stage::kOpen) return 0;
    const bool is_special = announcement && announcement->is_special();
    if (is_special && stage_ == Stage::kOpen && !takes_any_announcements_) return 0;
    number = next_number_++;
    is_loaded = sent_.size() >= kManyInFlight;
    auto announced =
        announcement ? std::make_unique<Announcement>(*std::move(announcement)) : nullptr;
    const auto unsent = unsent_.emplace_hint(
        unsent_.end(), number,
        Unsent{request, body, deadline, std::move(traceparent), std::move(announced)});
    unsent_bytes_ += unsent->second.bytes();
  }
  if (is_poller || poller_writes_) return number;
  // Other callers that were woken together may have a request, too: they travel in one message.
  if (is_loaded) std::this_thread::yield();
  Write();
  return number;
}

bool Session::Cancel(uint64_t number) {
  {
    absl::MutexLock lock(&mutex_);
    if (const auto unsent = unsent_.find(number); unsent != unsent_.end()) {
      EraseUnsent(unsent);
      return true;
    }
    if (!sent_.contains(number)) return false;
    chunks_.erase(number);
    controls_.push_back({codec::FrameKind::kCancel, number});
  }
  Write();
  return false;
}

void Session::EndOverdue(absl::Time now) {
  Deliveries deliveries;
  const auto end = [&deliveries](SessionRequest* request) {
    deliveries.push_back(
        {request,
         {.status = absl::DeadlineExceededError("the daemon did not answer before the deadline")}});
  };
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [number, sent] : sent_) {
      if (sent.request == nullptr || sent.deadline > now) continue;
      end(sent.request);
      sent.request = nullptr;
      chunks_.erase(number);
      controls_.push_back({codec::FrameKind::kCancel, number});
    }
    for (auto unsent = unsent_.begin(); unsent != unsent_.end();) {
      if (unsent->second.deadline > now) {
        ++unsent;
        continue;
      }
      end(unsent->second.request);
      unsent = EraseUnsent(unsent);
    }
  }
  if (deliveries.empty()) return;
  Write();
  Deliver(&deliveries);
}

void Session::Leave() {
  {
    absl::MutexLock lock(&mutex_);
    if (stage_ == Stage::kOpen) stage_ = Stage::kLeaving;
  }
  Write();
}

void Session::Stop() {
  absl::MutexLock lock(&mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

void Session::Deliver(Deliveries* deliveries) {
  for (Delivery& delivery : *deliveries) {
    delivery.request->HandleOutcome(std::move(delivery.outcome));
  }
}

void Session::HandleWritten(bool ok) {
  bool is_ending = false;
  {
    absl::MutexLock lock(&mutex_);
    is_writing_ = false;
    is_broken_ = !ok;
    is_ending = stage_ == Stage::kEnding;
  }
  if (is_ending) {
    call_->Finish(&grpc_status_, finished_.tag());
  } else {
    Write();
  }
}

void Session::HandleRead(bool ok) {
  if (!ok) {
    {
      absl::MutexLock lock(&mutex_);
      stage_ = Stage::kEnding;
      if (is_writing_) return;  // HandleWritten goes on
    }
    return call_->Finish(&grpc_status_, finished_.tag());
  }
  if (!broken_protocol_.ok()) return ReadOn();
  Deliveries deliveries;
  bool is_open = false;
  bool was_connecting = false;
  bool is_idle = false;
  {
    absl::MutexLock lock(&mutex_);
    was_connecting = stage_ == Stage::kConnecting;
    broken_protocol_ = HandleMessage(message_, &deliveries);
    message_.Clear();
    if (!broken_protocol_.ok()) {
      if (stage_ <= Stage::kOpen) stage_ = Stage::kLeaving;
      ReturnUnsent(&deliveries);
      context_->TryCancel();
    }
    is_open = stage_ == Stage::kOpen;
    is_idle = sent_.empty() && unsent_.empty();
  }
  // A caller that has waited for a single answer gets it first. Of many requests more travel in a
  // message if the daemon hears first.
  if (is_idle) {
    handlers_.received(this);
  } else {
    ReadOn();
  }
  if (was_connecting && is_open) handlers_.opened(this);
  // In an open session what the answers lead to is written with what is ready now.
  if (!is_open) Write();
  Deliver(&deliveries);
}

absl::Status Session::HandleMessage(const grpc::ByteBuffer& message, Deliveries* deliveries) {
  codec::FrameReader reader;
  if (const absl::Status status = reader.Read(message); !status.ok()) {
    return BadAnswer(status.message());
  }
  for (;;) {
    absl::StatusOr<std::optional<codec::Frame>> frame = reader.Next();
    if (!frame.ok()) return BadAnswer(frame.status().message());
    if (!frame->has_value()) return absl::OkStatus();
    OPSERVE_RETURN_IF_ERROR(HandleFrame(&**frame, deliveries));
  }
}

absl::Status Session::HandleFrame(codec::Frame* frame, Deliveries* deliveries) {
  const bool is_first = stage_ == Stage::kConnecting;
  if (is_first != (frame->kind == codec::FrameKind::kHello)) {
    return BadAnswer(is_first ? "a session's first frame is not hello" : "a second hello");
  }
  switch (frame->kind) {
    case codec::FrameKind::kHello:
      return HandleHello(*frame, deliveries);
    case codec::FrameKind::kAnswer:
    case codec::FrameKind::kError:
      return HandleEndOfRequest(frame, deliveries);
    case codec::FrameKind::kPing:
      controls_.push_back({codec::FrameKind::kPong, frame->number});
      return absl::OkStatus();
    case codec::FrameKind::kPong:
      return HandlePong(frame->number);
    case codec::FrameKind::kPart:
      return HandlePart(frame);
    case codec::FrameKind::kCredit:
      return HandleCredit(*frame);
    case codec::FrameKind::kGoingAway:
      return HandleGoingAway(*frame, deliveries);
    default:
      return BadAnswer(absl::StrCat("a frame of kind ", static_cast<int>(frame->kind),
                                    ", which no daemon sends, or not unasked"));
  }
}

absl::Status Session::HandleHello(const codec::Frame& frame, Deliveries* deliveries) {
  v1::SessionHello hello;
  OPSERVE_RETURN_IF_ERROR(DecodeMessage(codec::ToByteBuffer(frame.body), &hello));
  const v1::SessionLimits& limits = hello.limits();
  if (hello.version() < 1 || limits.max_requests() < 1) {
    return BadAnswer(absl::StrCat("a hello of version ", hello.version(), " for ",
                                  limits.max_requests(), " requests"));
  }
  max_requests_ = limits.max_requests();
  max_request_bytes_ =
      std::min<uint64_t>(limits.max_request_bytes(), std::numeric_limits<uint32_t>::max());
  max_message_bytes_ = limits.max_message_bytes();
  daemon_ = hello.daemon();
  takes_announcements_ = (hello.features() & codec::kAnnouncements) != 0;
  takes_any_announcements_ = (hello.features() & codec::kAnyAnnouncements) != 0;
  // They were entered before it was known.
  if (!takes_announcements_) ReturnUnsent(deliveries);
  if (!takes_any_announcements_) ReturnSpecial(deliveries);
  stage_ = Stage::kOpen;
  return absl::OkStatus();
}

absl::Status Session::HandlePong(uint64_t ping) {
  if (pongs_ == pings_ || ping != pongs_ + 1) {
    return BadAnswer(absl::StrCat("a pong to ping ", ping, ", which was not sent or is not next"));
  }
  pongs_ = ping;
  while (!unread_.empty() && unread_.front().ping <= ping) unread_.pop_front();
  return absl::OkStatus();
}

absl::Status Session::HandleEndOfRequest(codec::Frame* frame, Deliveries* deliveries) {
  const auto found = sent_.find(frame->number);
  if (found == sent_.end()) {
    return BadAnswer(
        absl::StrCat("an answer to request ", frame->number, ", which is not in progress"));
  }
  SessionOutcome outcome;
  if (frame->kind == codec::FrameKind::kError) {
    v1::StatusDetails details;
    OPSERVE_RETURN_IF_ERROR(DecodeMessage(codec::ToByteBuffer(frame->body), &details));
    outcome.status = FromStatusDetails(details);
    is_unavailable_ |= absl::IsUnavailable(outcome.status);
  } else {
    std::vector<grpc::Slice>& parts = found->second.parts;
    if (parts.empty()) {
      outcome.response = codec::ToByteBuffer(frame->body);
    } else {
      for (grpc::Slice& slice : frame->body) parts.push_back(std::move(slice));
      grpc::ByteBuffer together(parts.data(), parts.size());
      outcome.response.Swap(&together);
    }
  }
  has_answered_ = true;
  while (!unread_.empty() && unread_.front().first_request <= frame->number) unread_.pop_front();
  SessionRequest* const request = found->second.request;
  sent_.erase(found);
  EndChunks(frame->number);
  if (request != nullptr) deliveries->push_back({request, std::move(outcome)});
  return absl::OkStatus();
}

absl::Status Session::HandlePart(codec::Frame* frame) {
  const auto found = sent_.find(frame->number);
  if (found == sent_.end()) {
    return BadAnswer(absl::StrCat("a part of the answer to request ", frame->number,
                                  ", which is not in progress"));
  }
  // Nobody waits for it any more.
  if (found->second.request == nullptr) return absl::OkStatus();
  for (grpc::Slice& slice : frame->body) found->second.parts.push_back(std::move(slice));
  return absl::OkStatus();
}

absl::Status Session::HandleCredit(const codec::Frame& frame) {
  absl::StatusOr<uint64_t> bytes = codec::ReadCredit(frame.body);
  if (!bytes.ok()) return BadAnswer(bytes.status().message());
  const auto found = chunks_.find(frame.number);
  if (found != chunks_.end()) {
    found->second->AddCredit(*bytes);
    return absl::OkStatus();
  }
  // It was cancelled meanwhile.
  if (sent_.contains(frame.number)) return absl::OkStatus();
  return BadAnswer(
      absl::StrCat("a credit for request ", frame.number, ", which is not in progress"));
}

void Session::EndChunks(uint64_t number) {
  const auto found = chunks_.find(number);
  if (found == chunks_.end()) return;
  if (!found->second->is_sent()) controls_.push_back({codec::FrameKind::kCancel, number});
  chunks_.erase(found);
}

absl::Status Session::HandleGoingAway(const codec::Frame& frame, Deliveries* deliveries) {
  v1::SessionGoingAway going_away;
  OPSERVE_RETURN_IF_ERROR(DecodeMessage(codec::ToByteBuffer(frame.body), &going_away));
  stage_ = Stage::kLeaving;
  for (auto sent = sent_.begin(); sent != sent_.end();) {
    const auto number = sent->first;
    if (number <= going_away.last_request()) {
      ++sent;
      continue;
    }
    SessionRequest* const request = sent->second.request;
    chunks_.erase(number);
    sent_.erase(sent++);
    if (request != nullptr) deliveries->push_back({request, {.was_started = false}});
  }
  ReturnUnsent(deliveries);
  return absl::OkStatus();
}

void Session::ReturnUnsent(Deliveries* deliveries) {
  for (const auto& [number, unsent] : unsent_) {
    deliveries->push_back({unsent.request, {.was_started = false}});
  }
  unsent_.clear();
  unsent_bytes_ = 0;
}

void Session::ReturnSpecial(Deliveries* deliveries) {
  for (auto unsent = unsent_.begin(); unsent != unsent_.end();) {
    const Announcement* const announcement = unsent->second.announcement.get();
    if (announcement == nullptr || !announcement->is_special()) {
      ++unsent;
      continue;
    }
    deliveries->push_back({unsent->second.request, {.was_started = false}});
    unsent = EraseUnsent(unsent);
  }
}

void Session::HandleStatus(bool /*ok*/) {
  const std::shared_ptr<Session> self = shared_from_this();  // `ended` may drop the last other one
  Deliveries deliveries;
  std::unique_ptr<grpc::ClientContext> context;  // outlives the call
  {
    absl::MutexLock lock(&mutex_);
    absl::Status status = broken_protocol_;
    if (status.ok()) status = AsLoss(FromGrpcStatus(grpc_status_, *context_));
    is_useless_ = !broken_protocol_.ok() || absl::IsUnimplemented(status);
    for (const auto& [number, sent] : sent_) {
      if (sent.request != nullptr) deliveries.push_back({sent.request, {.status = status}});
    }
    sent_.clear();
    chunks_.clear();
    ReturnUnsent(&deliveries);
    stage_ = Stage::kEnded;
    context.swap(context_);
  }
  call_ = nullptr;
  context = nullptr;
  Deliver(&deliveries);
  handlers_.ended(this);
}

void Session::Write() {
  grpc::ByteBuffer message;
  {
    absl::MutexLock lock(&mutex_);
    if (!TakeNextWrite(&message)) return;
  }
  if (message.Valid()) {
    call_->Write(message, written_.tag());
  } else {
    call_->WritesDone(written_.tag());
  }
}

bool Session::TakeNextWrite(grpc::ByteBuffer* message) {
  const bool may_write = stage_ == Stage::kOpen || stage_ == Stage::kLeaving;
  if (!may_write || is_writing_ || is_broken_ || is_half_closed_) return false;
  AddControls();
  AddRequests();
  AddChunk();
  if (writer_.bytes() > 0) {
    grpc::ByteBuffer frames = writer_.Finish();
    message->Swap(&frames);
    is_writing_ = true;
  } else if (stage_ == Stage::kLeaving && sent_.empty()) {
    is_half_closed_ = true;
    is_writing_ = true;
  }
  return is_writing_;
}

bool Session::FitsBatch(size_t body_bytes) const {
  const size_t bytes = writer_.bytes() + codec::kFrameHeaderBytes + body_bytes;
  return writer_.bytes() == 0 ||
         (bytes <= codec::kBatchBytes && kMostFieldBytes + bytes <= max_message_bytes_);
}

void Session::AddControls() {
  while (!controls_.empty() && FitsBatch(0)) {
    writer_.Add(controls_.front().kind, controls_.front().number, "");
    controls_.pop_front();
  }
}

Session::UnsentRequests::iterator Session::EraseUnsent(UnsentRequests::iterator unsent) {
  unsent_bytes_ -= unsent->second.bytes();
  return unsent_.erase(unsent);
}

bool Session::HoldsRequests() const {
  return unread_.size() >= kMostUnread && unsent_bytes_ < codec::kBatchBytes;
}

void Session::AddChunk() {
  if (chunks_.empty()) return;
  auto next = chunks_.upper_bound(last_turn_);
  for (size_t i = 0; i < chunks_.size(); ++i, ++next) {
    if (next == chunks_.end()) next = chunks_.begin();
    if (!next->second->has_chunk()) continue;
    const size_t bytes = writer_.bytes() + codec::kFrameHeaderBytes + codec::kMostChunkBytes;
    if (writer_.bytes() > 0 && kMostFieldBytes + bytes > max_message_bytes_) return;
    last_turn_ = next->first;
    writer_.Add(codec::FrameKind::kChunk, next->first, "", next->second->TakeChunk());
    return;
  }
}

void Session::AddRequests() {
  if (unsent_.empty() || HoldsRequests()) return;
  const uint64_t first = unsent_.begin()->first;
  const size_t most_starts = unsent_.size() * (codec::kFrameHeaderBytes + kMostStartBytes);
  writer_.Reserve(std::min(unsent_bytes_ + most_starts, codec::kBatchBytes));
  const absl::Time now = absl::Now();
  while (!unsent_.empty() && sent_.size() < max_requests_) {
    const auto next = unsent_.begin();
    Unsent& request = next->second;
    const std::string start = codec::WriteRequestStart(
        {.timeout = request.deadline - now, .traceparent = request.traceparent});
    // The ping has its place.
    if (!FitsBatch(start.size() + request.bytes() + codec::kFrameHeaderBytes)) break;
    if (request.announcement != nullptr) {
      writer_.Add(codec::FrameKind::kAnnouncement, next->first,
                  start + request.announcement->header());
    } else {
      // (The client's own buffers are never compressed, so gRPC has their slices.)
      codec::Slices body;
      codec::TakeSlices(*request.body, &body).IgnoreError();
      writer_.Add(codec::FrameKind::kRequest, next->first, start, body);
    }
    sent_.emplace(next->first, Sent{request.request, request.deadline});
    unsent_bytes_ -= request.bytes();
    if (request.announcement != nullptr) chunks_[next->first] = std::move(request.announcement);
    unsent_.erase(next);
  }
  // What follows a request that is alone, or one that fills a message, need not wait for it.
  if (!sent_.contains(first) || sent_.size() == 1 || !FitsBatch(0)) return;
  writer_.Add(codec::FrameKind::kPing, ++pings_, "");
  unread_.push_back({.first_request = first, .ping = pings_});
}

}  // namespace opserve
