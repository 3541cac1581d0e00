// Internal: the Execute calls of a client that run beside their callers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/cpp/borrow.h"
#include "client/cpp/call_handle.h"
#include "client/cpp/message.h"
#include "client/cpp/queue_event.h"
#include "client/cpp/retry_policy.h"
#include "client/cpp/session.h"
#include "client/cpp/sessions.h"
#include "client/cpp/transport.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

class AsyncCalls;

// A call in flight. Shared between AsyncCalls and the handles on it.
class AsyncCall final : public CancellableCall, private QueueEvent, private SessionRequest {
 public:
  // Gets the response if the status is OK.
  using Done = absl::AnyInvocable<void(const absl::Status&, const grpc::ByteBuffer&) &&>;

  // Takes the contents of request->buffer, and its number. `is_blocking`: a caller waits for it,
  // and `done` calls nothing of others.
  AsyncCall(AsyncCalls* calls, EncodedRequest* request, absl::Time deadline, bool is_blocking,
            Done done);

  void Cancel() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class AsyncCalls;

  enum class Stage {
    kSession,  // the first attempt, with a session
    kAttempt,  // with gRPC
    kWait,     // for the next attempt
    kOver,     // or not begun
  };

  // Begins the first attempt, of which there will be one outcome or event, as of the next two.
  void Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins the next one.
  void StartAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartWait(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The event of an attempt or a wait, and the outcome in a session. Each begins the next step or
  // hands the ended call to AsyncCalls.
  void Complete(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleOutcome(SessionOutcome outcome) override ABSL_LOCKS_EXCLUDED(mutex_);

  // Each takes a result and begins the next step. False: there is none.
  bool Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TakeOutcome(SessionOutcome outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  bool GoOnAfter(bool may_have_run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  AsyncCalls& calls_;
  const absl::Time deadline_;
  const bool is_blocking_;
  bool is_polled_for_ = false;  // by its caller, which alone uses this

  // Used by the polling thread only, after the call was started.
  grpc::ByteBuffer request_;              // shared by all attempts
  std::optional<CallAttempts> attempts_;  // once one has failed
  Done done_;
  Borrow borrow_;
  RequestNumbers::Ticket number_;  // while the request may be repeated
  absl::Status status_;
  grpc::ByteBuffer response_;

  absl::Mutex mutex_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kOver;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Sessions::Place> place_ ABSL_GUARDED_BY(mutex_);  // in kSession
  UnaryCall call_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

// All calls in flight. One thread at a time polls for them: for a blocking call that is alone its
// caller, so that the answer is not handed between threads; for all others a thread that starts
// with the first call, and also listens while nobody has called for a while. Only that thread runs
// callbacks.
//
// Thread-safe. The destructor cancels calls in flight and waits until every `done` has returned.
class AsyncCalls {
 public:
  explicit AsyncCalls(Transport* transport);
  ~AsyncCalls();

  // Starts a call, taking the contents of request->buffer, and repeats it as the transport's policy
  // wants; `done` runs on the client's thread once the call has ended and `borrow` is released.
  // While the client is being destroyed no call starts: `done` runs at once with kCancelled.
  std::shared_ptr<AsyncCall> Start(EncodedRequest* request, absl::Duration timeout,
                                   AsyncCall::Done done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes such a call and waits for its end. From a `done`, which would keep the client's thread
  // from it, it is a call of the transport's.
  absl::Status Call(EncodedRequest* request, absl::Duration timeout, grpc::ByteBuffer* response)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether this thread polls for `calls`, which live then: it runs one of their `done`s.
  static bool IsPolledHere(const AsyncCalls* calls);

 private:
  friend class AsyncCall;

  // How often the sessions that have requests are tended (Sessions::Tend).
  static constexpr absl::Duration kTendInterval = absl::Milliseconds(50);
  // The thread leaves polling to blocking callers until none has come for so long.
  static constexpr absl::Duration kQuietTime = absl::Milliseconds(50);

  enum class Poller { kNobody, kThread, kCaller };

  std::shared_ptr<AsyncCall> Begin(EncodedRequest* request, absl::Duration timeout,
                                   bool is_blocking, AsyncCall::Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the call among those in flight; false while the client is being destroyed.
  bool Enter(const std::shared_ptr<AsyncCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);

  // The thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitTurn() ABSL_LOCKS_EXCLUDED(mutex_);
  bool EndsTurn() ABSL_LOCKS_EXCLUDED(mutex_);
  // For a caller that polls: until its call has ended, or another one has, with a callback for the
  // thread.
  void PollUntil(const absl::Notification& has_ended) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the polling thread. Poll handles the next event; false: there will be none.
  bool Poll(bool is_thread) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration PollTimeout() const;
  void TendSessions();
  void CompleteReleased(bool runs_callbacks) ABSL_LOCKS_EXCLUDED(mutex_);
  void Complete(AsyncCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasCallbacks() const;

  bool IsThreadWanted() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return poller_ == Poller::kNobody && (is_closing_ || !in_flight_.empty());
  }
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return in_flight_.empty() && poller_ != Poller::kCaller;
  }

  Transport& transport_;
  grpc::CompletionQueue queue_;
  std::atomic<bool> poller_writes_ = false;  // see Sessions
  std::optional<Sessions> sessions_;         // uses all of the above
  std::atomic<int64_t> num_in_session_ = 0;  // calls

  // Used by the polling thread only.
  std::vector<AsyncCall*> held_;  // ended calls, until gRPC has let go of their borrowed bytes
  bool has_completed_ = false;    // calls, since the thread's turn
  absl::Time next_tending_ = absl::InfinitePast();

  absl::Mutex mutex_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<AsyncCall*, std::shared_ptr<AsyncCall>> in_flight_ ABSL_GUARDED_BY(mutex_);
  bool was_last_blocking_ ABSL_GUARDED_BY(mutex_) = false;  // of the calls that were entered
  Poller poller_ ABSL_GUARDED_BY(mutex_) = Poller::kNobody;
  uint64_t caller_turns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

// Makes an Execute call and waits for its end: by `calls` if sessions are used and it is not null,
// else by the transport, as which it counts and repeats.
absl::Status CallExecute(Transport& transport, AsyncCalls* calls, EncodedRequest* request,
                         absl::Duration timeout, grpc::ByteBuffer* response);

}  // namespace opserve
