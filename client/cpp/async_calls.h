// Internal: the Execute calls of a client that run beside their callers.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/borrow.h"
#include "client/cpp/message.h"
#include "client/cpp/retry_policy.h"
#include "client/cpp/transport.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

// A call in flight. Shared between AsyncCalls and the handles on it.
class AsyncCall {
 public:
  // Gets the response if the status is OK.
  using Done = absl::AnyInvocable<void(const absl::Status&, const grpc::ByteBuffer&) &&>;

  // Takes the contents of request->buffer.
  AsyncCall(std::string method, EncodedRequest* request, absl::Time deadline, Repeats repeats,
            Done done);

  // No effect once the call has ended. Thread-safe.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class AsyncCalls;

  enum class Stage {
    kAttempt,  // with gRPC
    kWait,     // for the next attempt
    kOver,     // or not begun
  };

  // Each gives one event to `queue`, with the call as tag.
  void StartAttempt(Transport& transport, grpc::CompletionQueue* queue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartWait(absl::Duration wait, grpc::CompletionQueue* queue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Takes the event and begins the next step. False: there is none, and the outcome is known.
  bool Advance(Transport& transport, grpc::CompletionQueue* queue) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string method_;
  const absl::Time deadline_;
  const Repeats repeats_;

  // Used by the polling thread only, after the call was started.
  grpc::ByteBuffer request_;              // shared by all attempts
  std::optional<CallAttempts> attempts_;  // once one has failed
  Done done_;
  Borrow borrow_;
  absl::Status status_;
  grpc::ByteBuffer response_;

  absl::Mutex mutex_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kOver;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  UnaryCall call_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

// All calls in flight and the one thread that ends them. The thread starts with the first call, so
// that a client of blocking calls has none: it would take their events and have to hand them over.
//
// Thread-safe. The destructor cancels calls in flight and waits until every `done` has returned.
class AsyncCalls {
 public:
  explicit AsyncCalls(Transport* transport) : transport_(*transport) {}
  ~AsyncCalls();

  // Starts a call, taking the contents of request->buffer, and repeats it as the transport's policy
  // wants; `done` runs on the polling thread once the call has ended and `borrow` is released.
  // While the client is being destroyed no call starts: `done` runs at once with kCancelled.
  std::shared_ptr<AsyncCall> Start(std::string method, EncodedRequest* request,
                                   absl::Duration timeout, Repeats repeats, AsyncCall::Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Takes the call among those in flight; false while the client is being destroyed.
  bool Enter(const std::shared_ptr<AsyncCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Poll() ABSL_LOCKS_EXCLUDED(mutex_);
  void Complete(AsyncCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return in_flight_.empty(); }

  Transport& transport_;
  grpc::CompletionQueue queue_;
  // Ended calls, until gRPC has let go of their borrowed bytes. Used by the polling thread only.
  std::vector<AsyncCall*> held_;

  absl::Mutex mutex_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<AsyncCall*, std::shared_ptr<AsyncCall>> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::thread poller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve
