// Internal: the Execute calls of a client that run beside their callers.
#pragma once

#include <cstddef>
#include <memory>
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
#include "client/cpp/transport.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

// A call in flight. Shared between AsyncCalls and the handles on it.
class AsyncCall {
 public:
  // Gets the response if the status is OK.
  using Done = absl::AnyInvocable<void(const absl::Status&, const grpc::ByteBuffer&) &&>;

  AsyncCall(Done done, Borrow borrow) : done_(std::move(done)), borrow_(std::move(borrow)) {}

  // No effect once the call has ended. Thread-safe.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class AsyncCalls;

  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // Used by the polling thread only, after the call was started.
  Done done_;
  Borrow borrow_;
  absl::Status status_;
  grpc::ByteBuffer response_;

  absl::Mutex mutex_;
  UnaryCall call_ ABSL_GUARDED_BY(mutex_);
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;
};

// All calls in flight and the one thread that ends them. The thread starts with the first call, so
// that a client of blocking calls has none: it would take their events and have to hand them over.
//
// Thread-safe. The destructor cancels what is in flight and waits until every `done` has returned.
class AsyncCalls {
 public:
  explicit AsyncCalls(Transport* transport) : transport_(*transport) {}
  ~AsyncCalls();

  // Starts a call, taking what request->buffer holds; `done` runs on the polling thread once the
  // call has ended and `borrow` is released. While the client is being destroyed no call starts:
  // `done` runs at once with kCancelled.
  std::shared_ptr<AsyncCall> Start(const std::string& method, EncodedRequest* request,
                                   absl::Duration timeout, AsyncCall::Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Takes the call among those in flight; false while the client is being destroyed.
  bool Enter(const std::shared_ptr<AsyncCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Poll() ABSL_LOCKS_EXCLUDED(mutex_);
  void Complete(AsyncCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return in_flight_.empty(); }

  Transport& transport_;
  grpc::CompletionQueue queue_;
  // Ended calls whose borrowed bytes gRPC still holds. Used by the polling thread only.
  std::vector<AsyncCall*> held_;

  absl::Mutex mutex_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<AsyncCall*, std::shared_ptr<AsyncCall>> in_flight_ ABSL_GUARDED_BY(mutex_);
  std::thread poller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve
