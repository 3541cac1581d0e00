// Internal: which session of a client carries a request.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/session.h"
#include "client/cpp/transport.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

// The sessions of a client: one that takes requests or is about to, and those that went away with
// requests to be answered. A session is opened when a request could have used one, at once for a
// large one, which may fit no call; for others not for the client's first, and after the end of the
// last one only when some time has passed. Never again if the daemon knows no sessions or breaks
// their protocol, or calls lead to several daemons.
//
// A proxy may lead each call to another daemon, while a session would lead all requests to one of
// them, and none to those that come later. So, while the session has requests, a probe is sent now
// and then, a session whose only purpose is the daemon's hello: if that is another daemon's, the
// proxy is to balance the client's requests, as calls.
//
// Thread-safe. Before it is destroyed, Stop must have returned, and the queue must not be polled
// any more.
class Sessions {
 public:
  // The queue is polled by one thread, which calls Complete of each QueueEvent. Meanwhile
  // *poller_writes is true; the thread calls Write after it has become false, and after its calls
  // of Enter.
  Sessions(Transport* transport, grpc::CompletionQueue* queue,
           const std::atomic<bool>* poller_writes)
      : transport_(*transport), queue_(*queue), poller_writes_(*poller_writes) {}

  // Where a request has been put.
  struct Place {
    std::shared_ptr<Session> session;
    uint64_t number;
  };

  // Puts a request into the session, as Session::Enter. Nothing: none takes it now; send it by
  // Execute.
  std::optional<Place> Enter(SessionRequest* request, const grpc::ByteBuffer* body,
                             absl::Time deadline, bool is_poller) ABSL_LOCKS_EXCLUDED(mutex_);

  // As Session::Write, of the session that takes requests.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);

  // To be called now and then by the polling thread while there are requests: ends overdue ones, as
  // Session::EndOverdue, and sends probes.
  void Tend(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all sessions and waits for their ends; none is opened any more. Not from the polling
  // thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr absl::Duration kShortestWait = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestWait = absl::Seconds(5);
  // A probe costs as much as a few calls, and a daemon that comes back waits for it.
  static constexpr absl::Duration kProbeInterval = absl::Seconds(5);

  // The session that takes requests, if there is one; opens it if it is time to.
  // `is_large`: for a request that a call might not carry, the client's first or not.
  std::shared_ptr<Session> Current(bool is_large) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Session> Open(Session::Purpose purpose) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ProbeIfDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Uses no session any more if the probe has met another daemon than the one of the session.
  void HandleProbe(const Session& probe) ABSL_LOCKS_EXCLUDED(mutex_);

  // Does not use a session for requests any more.
  void Leave(const Session* session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Has forgotten the session when it returns.
  void HandleEnd(Session* session) ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return sessions_.empty(); }

  Transport& transport_;
  grpc::CompletionQueue& queue_;
  const std::atomic<bool>& poller_writes_;

  absl::Mutex mutex_;
  bool has_request_ ABSL_GUARDED_BY(mutex_) = false;  // or had
  bool is_given_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Session> current_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);  // that have not ended
  const Session* probe_ ABSL_GUARDED_BY(mutex_) = nullptr;                  // one of sessions_
  absl::Time next_probe_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_opening_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration wait_ ABSL_GUARDED_BY(mutex_) = kShortestWait;  // after the next end
};

}  // namespace opserve
