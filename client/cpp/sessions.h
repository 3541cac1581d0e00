// Internal: which session of a client carries a request.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/session.h"
#include "client/cpp/transport.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

// The sessions of a client: those that take requests, in turn, and those that went away with
// requests to be answered. One is opened when a request could have used it, at once for a large
// one, which may fit no call; for others not for the client's first, and after the end of the last
// one only when some time has passed. Never again if a daemon knows no sessions or breaks their
// protocol.
//
// A session leads all requests to one daemon, while calls may go to several: those of the target,
// or of a proxy. So, while there are requests, a probe is sent now and then, a session that is kept
// if its daemon is another than those of the others, and ended otherwise. Where the target has
// several addresses, small requests are calls until the first round of probes is over, so that they
// go to all from the beginning. If a daemon cannot serve, its session is left, unless it is the
// last one.
//
// Thread-safe. Before it is destroyed, Stop must have returned, and the queue must not be polled
// any more.
class Sessions {
 public:
  // The queue is polled by one thread at a time, which calls Complete of each QueueEvent. Meanwhile
  // *poller_writes is true; the thread calls Write after it has become false, and after its calls
  // of Enter. Each poll begins with ReadOn.
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

  // As Session::Write, of the sessions that take requests.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);

  // As Session::ReadOn, of the session that has received its last answer, if one has.
  void ReadOn();

  // To be called now and then by the polling thread while there are requests: ends overdue ones, as
  // Session::EndOverdue, leaves daemons that cannot serve, and sends probes.
  void Tend(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all sessions and waits for their ends; none is opened any more. Not from the polling
  // thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr absl::Duration kShortestWait = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestWait = absl::Seconds(5);
  // A probe costs as much as a few calls, and a daemon that comes back waits for it.
  static constexpr absl::Duration kProbeInterval = absl::Seconds(5);

  struct Known {
    std::shared_ptr<Session> session;
    bool is_probe;  // and was never kept
  };
  using InTurn = absl::InlinedVector<std::shared_ptr<Session>, 4>;

  // The sessions that take requests, from the next in turn on; opens one if it is time to.
  // `is_large`: for a request that a call might not carry, the client's first or not.
  InTurn Current(bool is_large) ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Session> Open(bool is_probe) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ProbeIfDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Ends a probe, unless it has met another daemon than those of the sessions.
  void HandleOpened(Session* session) ABSL_LOCKS_EXCLUDED(mutex_);
  bool KeepProbe(const Session* probe) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Known>::iterator Find(const Session* session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Between rounds of probes. Connections to other addresses of the target are made meanwhile.
  absl::Duration FirstProbeWait() const {
    return transport_.is_balanced() ? kShortestWait : kProbeInterval;
  }
  // Another probe follows as long as the round is not over.
  void EndProbe() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Does not use a session for requests any more, nor any other if that one is useless.
  void Leave(const Session* session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Has forgotten the session when it returns.
  void HandleEnd(Session* session) ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return known_.empty(); }

  Transport& transport_;
  grpc::CompletionQueue& queue_;
  const std::atomic<bool>& poller_writes_;
  Session* received_ = nullptr;  // since the last ReadOn; the polling thread's

  absl::Mutex mutex_;
  bool has_request_ ABSL_GUARDED_BY(mutex_) = false;  // or had
  bool is_given_up_ ABSL_GUARDED_BY(mutex_) = false;
  InTurn current_ ABSL_GUARDED_BY(mutex_);
  size_t next_turn_ ABSL_GUARDED_BY(mutex_) = 0;
  // Daemons that could not serve, and until when no probe of theirs is kept.
  absl::flat_hash_map<std::string, absl::Time> avoided_ ABSL_GUARDED_BY(mutex_);
  std::vector<Known> known_ ABSL_GUARDED_BY(mutex_);        // that have not ended
  const Session* probe_ ABSL_GUARDED_BY(mutex_) = nullptr;  // one of them, without hello
  bool has_looked_ ABSL_GUARDED_BY(mutex_) = false;         // a round of probes is over
  absl::Duration probe_wait_ ABSL_GUARDED_BY(mutex_) = kProbeInterval;
  size_t probes_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;  // that have met known daemons
  absl::Time next_probe_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_opening_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration wait_ ABSL_GUARDED_BY(mutex_) = kShortestWait;  // after the next end
};

}  // namespace opserve
