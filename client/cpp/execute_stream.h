// A pipeline of Execute requests.
//
//   auto stream = client->OpenStream({.window = 16});
//   for (const Request& request : requests) {
//     (*stream)->Execute(request, [](absl::StatusOr<Response> response) { ... });
//   }
//   absl::Status status = (*stream)->Finish();
#pragma once

#include <cstdint>
#include <future>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/request.h"

namespace opserve {

class AsyncCall;
class AsyncCalls;
class Transport;

struct StreamOptions {
  // The most requests in progress at once, at least 1: it bounds the memory for them and their
  // answers.
  uint32_t window = 64;

  // From OpenStream on. When it is over the requests in progress end, and all that come later.
  absl::Duration timeout = absl::InfiniteDuration();
};

// Requests are sent as they come and answered in any order. They travel, and are repeated, like
// those of Client::ExecuteAsync; an error of one concerns it alone. What the stream adds is its
// window, its timeout and the wait for all of them.
//
// Thread-safe. May outlive the client that opened it.
class ExecuteStream {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

  // For Client::OpenStream. Requires: options.window >= 1.
  ExecuteStream(std::shared_ptr<Transport> transport, std::shared_ptr<AsyncCalls> calls,
                const StreamOptions& options);
  ExecuteStream(const ExecuteStream&) = delete;
  ExecuteStream& operator=(const ExecuteStream&) = delete;

  // Cancels requests in progress and waits until all callbacks have returned. Not to be called from
  // a callback, nor while a method runs.
  ~ExecuteStream() ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs a program; waits only while the window is full. `callback` is called exactly once, from
  // the client's thread, which it holds up while it runs. If the request cannot be sent, it is
  // called before Execute returns, from the calling thread:
  //
  // kInvalidArgument      as from Client::Execute
  // kFailedPrecondition   after Finish
  // kResourceExhausted    the window is full and the caller is a callback, for which the stream
  //                       cannot wait; a callback always finds room for one request
  //
  // Tensors have to be kept as Tensor says; the call has ended when the callback runs.
  void Execute(const Request& request, Callback callback) ABSL_LOCKS_EXCLUDED(mutex_);

  // The same, with the response in a future.
  std::future<absl::StatusOr<Response>> Execute(const Request& request);

  // Takes no more requests, and waits for all answers and their callbacks. kDeadlineExceeded: the
  // stream's timeout was over before all had their answers. May be repeated. Not to be called from
  // a callback.
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Takes a request in, waiting for room. Gives its number.
  absl::StatusOr<uint64_t> Enter() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetCall(uint64_t number, const std::shared_ptr<AsyncCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // `status`: an error that is the stream's, too. The stream may be gone afterwards.
  void Leave(uint64_t number, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Threads that found the window full await this: waking them for each answer would cost more than
  // the answer, and half a window keeps the daemon busy meanwhile.
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return in_progress_.size() <= window_ / 2 || is_finishing_;
  }
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return in_progress_.empty(); }

  const std::shared_ptr<Transport> transport_;  // outlives calls_
  const std::shared_ptr<AsyncCalls> calls_;
  const uint32_t window_;
  const absl::Time deadline_;

  absl::Mutex mutex_;
  bool is_finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Requests whose callbacks have not returned, by number; without a call before it has begun.
  absl::flat_hash_map<uint64_t, std::weak_ptr<AsyncCall>> in_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve
