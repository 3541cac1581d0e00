// A stream of requests that run programs, whatever its protocol says: they run like single calls,
// a window of them at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/grpc/call_context.h"
#include "server/grpc/completion_event.h"
#include "server/grpc/given_message.h"
#include "server/grpc/outgoing_messages.h"
#include "server/observability/stage_clock.h"
#include "server/request/request_end.h"
#include "server/run/call_state.h"

namespace opserve::server {

// Owns itself: it waits for a call, serves it and destroys itself after its last event, which comes
// when no device works for it any more. The handlers run on the queue's polling thread; answers
// come from the devices' threads.
//
// A request is unanswered from its reading until gRPC has taken its answer. The next message is
// read only while fewer than the window are, or, of a session, fewer answers wait to be taken;
// HTTP/2's flow control then holds the client.
//
// Invariants, whenever mutex_ is free:
//   (1) Unanswered() is at most the window, and for a session in_progress_ alone is;
//   (2) is_reading_, is_writing_ and is_ending_ say which operations
//       gRPC has of ours: at most one of each, and once the stream is ending
//       no request and no other, but for a reading that the server's end did
//       not wait for;
//   (3) input_has_ended_, nobody_listens_ and is_ending_ change once, to true.
// No call of gRPC is made with mutex_ held: the decision is made there, the call after it.
//
// Derived classes define the virtual functions; their constructors ask their service for a call,
// with rpc_, stream_, queue_ and arrival_.
class RequestStream {
 public:
  RequestStream(const RequestStream&) = delete;
  RequestStream& operator=(const RequestStream&) = delete;

 protected:
  static constexpr absl::string_view kDrainingReason = "the daemon is draining";

  // What its protocol wants of a stream.
  enum class Kind {
    kAnyOrder,  // answered as they end; numbers are the requests' own
    kOneByOne,  // answered in their order; numbers count them, from 0
    kSession,   // as kAnyOrder; clients know the window, and messages may be no requests
  };

  RequestStream(CallContext& context, grpc::ServerCompletionQueue* queue, Kind kind);
  virtual ~RequestStream() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for the next call of the kind, unless the server takes no more.
  virtual void ListenForNext() = 0;
  // The stream is a tenant's.
  virtual void OnBegin() {}
  // Takes message_ apart and starts its requests, or refuses them.
  virtual void HandleMessage(const StageClock& clock) = 0;
  // gRPC has taken a message that was to be sent. On the polling thread.
  virtual void OnTaken() {}
  // No message comes any more. On the polling thread; perhaps more than once.
  virtual void OnInputEnd() {}
  // The server ends or soon will, or context_.longest_session has passed.
  virtual void SayGoingAway(absl::string_view /*why*/) {}

  // From the first request on, until all are answered, the stream counts as in flight.
  void CountInFlight();
  // Until when a request may take that may take `timeout`; as CallContext::RequestDeadline.
  absl::Time DeadlineAfter(absl::Duration timeout) const {
    return context_.RequestDeadline(rpc_.deadline(), timeout);
  }
  // Takes the number for a request. False: one in progress has it, or as many are in progress as
  // may be.
  bool BeginRequest(uint64_t number, std::shared_ptr<CallState> call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: no request in progress has the number.
  std::shared_ptr<CallState> FindRequest(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds one message or frame; called with the stream's lock held, unless the client is gone.
  using AddOutgoing = absl::FunctionRef<void(OutgoingMessages& outgoing)>;
  // Records the end of the request with this number, sends the answer of so many bytes that `add`
  // adds, and, if `is_request_over`, gives the number free. As Send: nothing after it.
  void Answer(const RequestEnd& end, uint64_t number, uint64_t answer_bytes, AddOutgoing add,
              bool is_request_over) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same of an answer that is a message of its own; takes *answer.
  void AnswerWith(grpc::ByteBuffer* answer, const RequestEnd& end, uint64_t number,
                  bool is_request_over) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends what is no answer, or not all of one. On the polling thread.
  void Say(AddOutgoing add) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of an answer in parts, the bytes that wait to be sent.
  size_t BytesThatWait(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // One more event of the derived class's is to come; it has ended, after which the stream may be
  // gone. On the polling thread.
  void ExpectEvent() { ++events_to_come_; }
  void EventEnded() ABSL_LOCKS_EXCLUDED(mutex_);
  // How the stream ended, once it has; kCancelled: its client was gone.
  absl::Status EndStatus() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The message is no request at all: no more are read, those in progress are still answered.
  void EndInput(const absl::Status& status, const StageClock& clock) ABSL_LOCKS_EXCLUDED(mutex_);

  CallContext& context_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  grpc::ServerAsyncReaderWriter<GivenMessage, grpc::ByteBuffer> stream_{&rpc_};
  // Of the polling thread.
  Tenant* tenant_ = nullptr;  // from arrival on, unless the stream is nobody's
  uint64_t connection_ = 0;   // ConnectionKey, likewise
  bool is_local_ = false;     // at a Unix socket, likewise
  grpc::ByteBuffer message_;  // that is to be handled

 private:
  // The next thing to send; at most one of the two. Not moved, which would copy the message.
  struct Sending {
    grpc::ByteBuffer message;  // not valid: none
    bool is_last = false;      // that there is now
    std::optional<absl::Status> end;
  };

  void OnArrival(bool ok);
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnded(bool ok);
  void OnDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnServerEnd(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  // If it has come.
  void DestroyAfterLastEvent() ABSL_LOCKS_EXCLUDED(mutex_);
  // The client is gone: cancels the requests in progress.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);

  bool TakesInput() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether message_, which has come, is to be handled.
  bool BeginMessage() ABSL_LOCKS_EXCLUDED(mutex_);
  // Hands gRPC the choice of NextSending, whose message it takes. Afterwards `this` must not be
  // used by another thread than the polling one: the stream's last event may have come.
  void Send(Sending& sending) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether to read now. On the polling thread: only there the number of unanswered requests falls.
  bool NextRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets *sending, which is empty, if something is to be sent.
  void NextSending(Sending* sending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts an answer where its turn is; takes *answer.
  void AddInTurn(uint64_t number, grpc::ByteBuffer* answer, OutgoingMessages* outgoing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t Unanswered() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

 protected:
  MemberEvent<RequestStream, &RequestStream::OnArrival> arrival_{this};

 private:
  WriteWatch::Write write_{context_.calls->writes, rpc_};
  MemberEvent<RequestStream, &RequestStream::OnRead> read_{this};
  MemberEvent<RequestStream, &RequestStream::OnWritten> written_{this};
  MemberEvent<RequestStream, &RequestStream::OnEnded> ended_{this};
  MemberEvent<RequestStream, &RequestStream::OnDone> done_{this};
  MemberEvent<RequestStream, &RequestStream::OnServerEnd> server_end_{this};
  const Kind kind_;

  // Of the polling thread.
  grpc::Alarm end_alarm_;
  bool has_arrived_ = false;   // counted in context_.calls->open
  bool has_ended_ = false;     // its status was sent
  bool is_in_flight_ = false;  // counted in context_.in_flight: it has unanswered requests
  int events_to_come_ = 3;     // OnEnded, OnDone, OnServerEnd; and OnRead while is_reading_

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<CallState>> in_progress_ ABSL_GUARDED_BY(mutex_);
  OutgoingMessages outgoing_ ABSL_GUARDED_BY(mutex_);
  // Answers that wait for those of earlier requests, and the number of the first of these.
  std::map<uint64_t, grpc::ByteBuffer> early_answers_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = false;   // until the message has been handled
  bool is_handling_ ABSL_GUARDED_BY(mutex_) = false;  // message_
  bool awaits_read_ ABSL_GUARDED_BY(mutex_) = true;   // the stream does not end while it reads
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  size_t being_written_ ABSL_GUARDED_BY(mutex_) = 0;  // of outgoing_'s: whose end is being written
  bool input_has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool nobody_listens_ ABSL_GUARDED_BY(mutex_) = false;  // the call was cancelled
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
