// One Session call: the requests of a client, many to a message (proto/SESSION.md).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/session/session_frames.h"
#include "server/grpc/request_stream.h"
#include "server/native/native_answer.h"
#include "server/request/held_limit.h"
#include "server/request/request_input.h"
#include "server/session/result_departure.h"
#include "server/session/session_context.h"

namespace opserve::server {

class SessionCall final : public RequestStream {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(SessionContext& context, grpc::ServerCompletionQueue* queue);

 private:
  SessionCall(SessionContext& context, grpc::ServerCompletionQueue* queue);
  ~SessionCall() override;

  void ListenForNext() override { Listen(session_, queue_); }
  void OnBegin() override;
  // A frame that breaks the protocol ends the input.
  void HandleMessage(const StageClock& clock) override;
  void SayGoingAway(absl::string_view why) override;

  struct Numbered;

  // kInvalidArgument: the protocol does not allow the frame here.
  absl::Status HandleFrame(codec::Frame&& frame, const StageClock& clock);
  absl::Status HandleHello(const codec::Frame& frame);
  absl::Status HandleRequest(codec::Frame&& frame, const StageClock& clock);
  absl::Status HandleAnnouncement(codec::Frame&& frame, const StageClock& clock);
  absl::Status HandleChunk(codec::Frame&& frame);
  absl::Status HandleCancel(uint64_t number);
  // Takes the number of a request whose frame has come. kInvalidArgument: it may not come now.
  absl::StatusOr<std::shared_ptr<Numbered>> BeginNumbered(uint64_t number, absl::Duration timeout);
  void OnInputEnd() override;
  void OnTaken() override;
  // Of this session, to a request of so many bytes.
  void AddFacts(uint64_t request_bytes, absl::string_view traceparent, RequestInput* input);
  // The payloads of an announced request are there, or never will be.
  void EndArrival(uint64_t number, const absl::Status& status);
  void EndArrivalsEvent(uint64_t number);
  // Sends the answer or the error of a request. On any thread; nothing after it.
  void AnswerRequest(Numbered& request, const RequestEnd& end);
  // The same of one with held results, which leave part by part.
  void BeginDeparture(Numbered& request, const RequestEnd& end);
  void AddDeparture(uint64_t number);  // on the polling thread
  void EndDeparture(uint64_t number, absl::StatusOr<codec::Slices> last);
  void EndDeparturesEvent(uint64_t number);
  // Each may end, and so leave departures_.
  void ForEachDeparture(absl::FunctionRef<void(ResultDeparture& departure)> visit);
  // Sends a frame that is no answer.
  void SayFrame(codec::FrameKind kind, uint64_t number, absl::string_view body);

  uint64_t max_request_bytes() const;

  SessionContext& session_;
  // Of the polling thread.
  bool has_begun_ = false;  // counted in context_.sessions
  bool has_hello_ = false;
  bool takes_parts_ = false;  // as the client's hello says; unchanged while there are requests
  HeldLimit held_limit_;      // if it does
  bool is_leaving_ = false;   // has said going-away
  uint64_t last_request_ = 0;
  // Requests whose payloads arrive, until the last event of theirs.
  struct Announced;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Announced>> announced_;
  // Of requests whose results leave, until the last event of theirs.
  absl::flat_hash_map<uint64_t, std::unique_ptr<ResultDeparture>> departures_;
  // Of requests that failed while their payloads arrived: bytes that may still be on their way,
  // until the client confirms the end.
  absl::flat_hash_map<uint64_t, uint64_t> dropped_;
};

}  // namespace opserve::server
