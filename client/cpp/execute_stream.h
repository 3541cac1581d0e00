// A pipeline of Execute requests over one stream.
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

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/request.h"

namespace opserve {

class StreamCall;

struct StreamOptions {
  // The most requests in progress at once, at least 1: it bounds the stream's memory for them and
  // their answers. The daemon has a window of its own, and reads no further while that is full.
  uint32_t window = 64;

  // From OpenStream on. When it is over the stream ends, whatever is in progress.
  absl::Duration timeout = absl::InfiniteDuration();
};

// Requests are sent as they come and answered in any order. An error of one concerns it alone;
// when the stream itself breaks, all that are in progress, and all that come later, get its status.
// Operators are pure: they can be repeated on another stream.
//
// Thread-safe. A stream is one call on the connection of the client that opened it, which it may
// outlive, and has a thread of its own.
class ExecuteStream {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

  // For Client::OpenStream.
  explicit ExecuteStream(std::unique_ptr<StreamCall> call);

  // Cancels requests in progress and waits until all callbacks have returned. Not to be called from
  // a callback, nor while a method runs.
  ~ExecuteStream();

  // Runs a program; waits only while the window is full. `callback` is called exactly once, from
  // the stream's thread in the order in which requests end, and holds up the others while it runs.
  // If the request cannot be sent, it is called before Execute returns, from the calling thread:
  //
  // kInvalidArgument      as from Client::Execute
  // kFailedPrecondition   after Finish
  // kResourceExhausted    the window is full and the caller is a callback, for which the stream
  //                       cannot wait; a callback always finds room for one request
  // of the stream         it has ended
  //
  // Tensors have to be kept as Tensor says; the call has ended when the callback runs.
  void Execute(const Request& request, Callback callback);

  // The same, with the response in a future.
  std::future<absl::StatusOr<Response>> Execute(const Request& request);

  // Takes no more requests, waits for all answers and their callbacks, and gives the stream's
  // status: OK if each request had its answer. May be repeated. Not to be called from a callback.
  absl::Status Finish();

 private:
  const std::unique_ptr<StreamCall> call_;
};

}  // namespace opserve
