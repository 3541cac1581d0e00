// Internal: a call of ExecuteStream and the thread that serves it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/borrow.h"
#include "client/cpp/execute_stream.h"
#include "client/cpp/message.h"
#include "client/cpp/request.h"
#include "client/cpp/transport.h"
#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"

namespace opserve {

// A thread that finds no write in progress writes next; the stream's own thread sees the end of
// each write, reads answers and runs callbacks. Thread-safe.
//
// Invariants, whenever mutex_ is free:
//   (1) in_flight_ counts the requests in outstanding_, those in ended_ and the one in its
//       callback; it is at most window_, or one more while that callback has started another
//   (2) at most one write is with gRPC: is_writing_
//   (3) stage_ only advances, except that a call which found no daemon begins anew; no write begins
//       after kOpen, and no request enters in kEnded
class StreamCall {
 public:
  using Done = ExecuteStream::Callback;

  // Begins the call. Requires: options.window >= 1.
  StreamCall(std::shared_ptr<Transport> transport, const StreamOptions& options);

  // As ExecuteStream's.
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // As ExecuteStream's.
  void Execute(const Request& request, Done done) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Stage {
    kOpen,    // requests are written and answers read
    kEnding,  // there are no more answers; the peer's status is awaited
    kEnded,   // status_ is known
  };

  // A request that has its answer or waits for it.
  struct Outstanding {
    Done done;
    Borrow borrow;
  };
  struct Ended {
    Outstanding request;
    absl::StatusOr<Response> outcome;
  };

  // Starts the call or, if it found no daemon, starts it anew.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the request in, waiting for room; an error if it is refused, and `done` not called.
  absl::Status Enter(uint64_t id, EncodedRequest* request, Done* done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins the next write, unless one is in progress or there is none to make.
  void Write() ABSL_LOCKS_EXCLUDED(mutex_);

  // The next write: send *message or, if it is left invalid, close the sending side. False: there
  // is nothing to write.
  bool TakeNextWrite(grpc::ByteBuffer* message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Steps of the thread.
  void Poll() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleEvent(void* tag, bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleAnswer() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleLastAnswer() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleStatus() ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets a call that found no daemon begin anew after `wait`.
  void WaitToBegin(absl::Duration wait) ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives `status` to all requests without an answer.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls back for ended requests in their order, up to one with bytes that gRPC still holds.
  void CallBack() ABSL_LOCKS_EXCLUDED(mutex_);

  // Breaks the call off for an answer that the protocol does not allow.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsFull() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return in_flight_ >= window_ && !is_finishing_ && stage_ != Stage::kEnded;
  }
  // Threads that found the window full await this: waking them for each answer would cost more than
  // the answer, and half a window keeps the daemon busy meanwhile.
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return in_flight_ <= window_ / 2 || is_finishing_ || stage_ == Stage::kEnded;
  }
  bool IsOver() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stage_ == Stage::kEnded && in_flight_ == 0;
  }

  const std::shared_ptr<Transport> transport_;
  const uint32_t window_;
  const absl::Time deadline_;
  std::atomic<uint64_t> next_id_ = 1;
  grpc::CompletionQueue queue_;

  // Valid until the thread ends the call, which it does when no write and no read is with gRPC.
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;

  // Used by the thread only.
  grpc::ByteBuffer answer_;
  grpc::Status grpc_status_;
  absl::Status broken_protocol_;
  CallAttempts attempts_;
  bool has_begun_ = false;  // something can have left this process
  std::deque<Ended> ended_;

  absl::Mutex mutex_;
  // Null in kEnded and during a wait.
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Alarm> wait_ ABSL_GUARDED_BY(mutex_);
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kOpen;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = true;  // the start of the call, which comes first
  bool is_broken_ ABSL_GUARDED_BY(mutex_) = false;  // a write failed, and all others would
  bool is_finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<grpc::ByteBuffer> unsent_ ABSL_GUARDED_BY(mutex_);
  absl::btree_map<uint64_t, Outstanding> outstanding_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: uses all of the above
};

}  // namespace opserve
