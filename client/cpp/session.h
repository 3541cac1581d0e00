// Internal: a stream of OperatorService.Session (proto/SESSION.md), which carries Execute requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/announcement.h"
#include "client/cpp/queue_event.h"
#include "client/cpp/transport.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "opserve/v1/session.pb.h"
#include "proto/session/session_frames.h"

namespace opserve {

// How a request of a session ended.
struct SessionOutcome {
  bool was_started = true;         // false: it has run nowhere, and `status` is not its own
  absl::Status status = {};        // as of a call
  grpc::ByteBuffer response = {};  // if `status` is OK
};

// Whoever waits for the outcome of a request.
class SessionRequest {
 public:
  // Runs once, on the thread that polls the session's queue, unless the request was taken back. The
  // session has forgotten the request.
  virtual void HandleOutcome(SessionOutcome outcome) = 0;

 protected:
  ~SessionRequest() = default;
};

// One stream: it says hello, carries requests once the daemon has said hello too, and ends when the
// daemon goes away or the stream breaks. Whoever finds no write in progress writes all frames that
// are ready: the thread that polls the queue, which sees the end of each write and reads answers,
// after each event, and a caller while that thread has none to handle.
//
// While the daemon has yet to read two messages, requests wait for one another here instead of one
// by one in its socket: so messages grow as it falls behind, and each costs less. Answers tell that
// a message was read and, where these may take long, the pong to a ping at its end.
//
// Thread-safe, except where functions name the polling thread.
//
// Invariants, whenever mutex_ is free:
//   (1) at most one write is with gRPC: is_writing_
//   (2) stage_ only advances; requests enter in kOpen only, and none is left in kEnded
//   (3) sent_ holds at most max_requests_: those that the daemon counts
class Session final : public std::enable_shared_from_this<Session> {
 public:
  // Each runs on the polling thread, the first and the last one once. `opened`: when the daemon has
  // said hello. `received`: a message was the last that was awaited, and ReadOn is to follow.
  // `ended`: after the last event, when no request is left.
  struct Handlers {
    std::function<void(Session*)> opened;
    std::function<void(Session*)> received;
    std::function<void(Session*)> ended;
  };

  // `poller_writes` says that the polling thread is about to call Write.
  Session(Transport* transport, grpc::CompletionQueue* queue,
          const std::atomic<bool>* poller_writes, Handlers handlers);

  // Starts the stream. To be called once.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);

  enum class Place {
    kNone,  // not yet, or not for so many bytes
    kFree,
    kOver,  // never again
  };

  // Bytes of a request above which its payloads are sent in chunks, if the daemon takes them.
  static constexpr size_t kWhole = 1 << 20;

  // Whether there is a place for a request of so many bytes. For a large one there is already when
  // the daemon's hello has not come: whole, it might be too large for the daemon.
  Place PlaceFor(size_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes a request for which there was a place, and gives its number; 0 if there is none any more.
  // *request and *body, an ExecuteRequest, stay as they are until the outcome. `is_poller`: this is
  // the polling thread, which calls Write when it has entered all that it has.
  // `announcement`: of one that is larger than kWhole.
  uint64_t Enter(SessionRequest* request, const grpc::ByteBuffer* body,
                 std::optional<Announcement> announcement, absl::Time deadline,
                 std::string traceparent, bool is_poller) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes a request back that was not sent: true, and there will be no outcome. False: the daemon
  // is asked to end it early, or it has ended.
  bool Cancel(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends what is overdue at `now`, which the daemon should have done. From the polling thread.
  void EndOverdue(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins the next write, unless one is in progress or there is none to make.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the next message, when what the one before has led to is done: callers are woken, and
  // requests written. A read has gRPC tell the daemon at once how much more it may send, which
  // takes as long as a small answer. From the polling thread, once after Handlers::received.
  void ReadOn() { call_->Read(&message_, read_.tag()); }

  // Takes no more requests, and ends when those that it has are answered.
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels the stream.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // The run of the daemon, as its hello says; "" before that, or if it does not say. From the
  // polling thread.
  const std::string& daemon() const { return daemon_; }

  // After the end: whether the daemon knows no sessions, or breaks their protocol.
  bool is_useless() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return is_useless_;
  }

  // Whether the daemon has said of a request that it cannot serve it now.
  bool is_unavailable() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return is_unavailable_;
  }

  // Whether the daemon has answered any request.
  bool has_answered() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return has_answered_;
  }

 private:
  enum class Stage {
    kConnecting,  // the daemon's hello has not come
    kOpen,
    kLeaving,  // the daemon takes no more requests
    kEnding,   // there are no more answers; the peer's status is awaited
    kEnded,
  };

  struct Unsent {
    SessionRequest* request;
    const grpc::ByteBuffer* body;
    absl::Time deadline;
    std::string traceparent;
    std::unique_ptr<Announcement> announcement;  // null: it is sent whole
    // Of its frame, behind the start.
    size_t bytes() const {
      return announcement == nullptr ? body->Length() : announcement->header().size();
    }
  };
  using UnsentRequests = absl::btree_map<uint64_t, Unsent>;  // by number
  struct Sent {
    SessionRequest* request;  // null: it was ended for being overdue
    absl::Time deadline;
    std::vector<grpc::Slice> parts = {};  // of its answer that have come
  };
  // A message with requests that the daemon may not have read.
  struct Unread {
    uint64_t first_request;
    uint64_t ping;  // the last one of so far
  };
  struct SentControl {
    codec::FrameKind kind;
    uint64_t number;
  };

  // Outcomes are delivered when mutex_ is free: they take locks that are held around Enter.
  struct Delivery {
    SessionRequest* request;
    SessionOutcome outcome;
  };
  using Deliveries = std::vector<Delivery>;
  static void Deliver(Deliveries* deliveries);

  // An event of this session's.
  struct Event final : QueueEvent {
    Event(Session* the_session, void (Session::*the_handler)(bool))
        : session(*the_session), handler(the_handler) {}
    void Complete(bool ok) override { (session.*handler)(ok); }
    void* tag() { return static_cast<QueueEvent*>(this); }

    Session& session;
    void (Session::*const handler)(bool);
  };

  void HandleWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleStatus(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);

  // Each takes what came from the daemon; an error if that breaks the protocol.
  absl::Status HandleMessage(const grpc::ByteBuffer& message, Deliveries* deliveries)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleFrame(codec::Frame* frame, Deliveries* deliveries)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleHello(const codec::Frame& frame, Deliveries* deliveries)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleEndOfRequest(codec::Frame* frame, Deliveries* deliveries)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandlePart(codec::Frame* frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleCredit(const codec::Frame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HandleGoingAway(const codec::Frame& frame, Deliveries* deliveries)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Gives all that was not sent back.
  void ReturnUnsent(Deliveries* deliveries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those of them that the daemon does not take as announcements.
  void ReturnSpecial(Deliveries* deliveries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The next write: send *message or, if it is left empty, close the sending side. False: there is
  // nothing to write.
  bool TakeNextWrite(grpc::ByteBuffer* message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddControls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddRequests() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One chunk, of the next request whose turn it is.
  void AddChunk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends no more of an announced request, and says so if there was more.
  void EndChunks(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  UnsentRequests::iterator EraseUnsent(UnsentRequests::iterator unsent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a large request may enter: before the daemon's hello, which may then return it.
  bool MayAnnounce() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Whether requests are to wait until the daemon has read what was sent.
  bool HoldsRequests() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status HandlePong(uint64_t ping) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether a frame with a body of so many bytes may join those in writer_.
  bool FitsBatch(size_t body_bytes) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Transport& transport_;
  grpc::CompletionQueue& queue_;
  const std::atomic<bool>& poller_writes_;
  const Handlers handlers_;
  Event written_{this, &Session::HandleWritten};
  Event read_{this, &Session::HandleRead};
  Event finished_{this, &Session::HandleStatus};

  // Valid until the polling thread ends the call, which it does when no operation is with gRPC.
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;

  // Used by the polling thread only.
  grpc::ByteBuffer message_;
  grpc::Status grpc_status_;
  absl::Status broken_protocol_;
  std::string daemon_;

  mutable absl::Mutex mutex_;
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);  // null in kEnded
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kConnecting;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_broken_ ABSL_GUARDED_BY(mutex_) = false;  // a write failed, and all others would
  bool is_half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_answered_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_useless_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_unavailable_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<SentControl> controls_ ABSL_GUARDED_BY(mutex_);  // cancels and pongs to be written
  UnsentRequests unsent_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Sent> sent_ ABSL_GUARDED_BY(mutex_);  // without an answer
  // Announced requests of sent_ with payloads that are not sent, and the last one that had a turn.
  absl::btree_map<uint64_t, std::unique_ptr<Announcement>> chunks_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  bool takes_announcements_ ABSL_GUARDED_BY(mutex_) = false;
  bool takes_any_announcements_ ABSL_GUARDED_BY(mutex_) = false;
  size_t unsent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;    // of their bodies
  std::deque<Unread> unread_ ABSL_GUARDED_BY(mutex_);  // oldest first
  uint64_t pings_ ABSL_GUARDED_BY(mutex_) = 0;         // sent, numbered from 1
  uint64_t pongs_ ABSL_GUARDED_BY(mutex_) = 0;
  codec::FrameWriter writer_ ABSL_GUARDED_BY(mutex_);

  // From the daemon's hello.
  uint32_t max_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t max_request_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t max_message_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace opserve
