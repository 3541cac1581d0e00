// One ExecuteStream call: requests are read up to a window, run like single calls, and answered in
// the order in which they end.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/execution/call_state.h"
#include "server/observability/stage_clock.h"
#include "server/rpc/completion_event.h"
#include "server/rpc/execute_service.h"
#include "server/rpc/execution_end.h"

namespace opserve::server {

// Owns itself: it waits for a call, serves it and destroys itself after its last event, which comes
// when no device works for it any more. The handlers run on the queue's polling thread; answers
// come from the devices' threads.
//
// A request is unanswered from its reading until gRPC has taken its answer. The next message is
// read only while fewer than the window are; HTTP/2's flow control then holds the client.
//
// Invariants, whenever mutex_ is free:
//   (1) Unanswered() is at most the window;
//   (2) is_reading_, is_writing_ and is_ending_ say which operations gRPC has of ours: at most one
//       of each, and once the stream is ending no other and no request;
//   (3) input_has_ended_, nobody_listens_ and is_ending_ change once, to true.
// No call of gRPC is made with mutex_ held: who may make it is decided there, and made after.
class ExecuteStreamCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(ExecuteContext& context, grpc::ServerCompletionQueue* queue);

 private:
  // What to send next; at most one of the two.
  struct Sending {
    std::optional<grpc::ByteBuffer> answer;
    bool is_last_answer = false;  // that there is now
    std::optional<absl::Status> end;
  };

  ExecuteStreamCall(ExecuteContext& context, grpc::ServerCompletionQueue* queue);
  ~ExecuteStreamCall();

  void OnArrival(bool ok);
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnded(bool ok);
  void OnDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void DestroyAfterLastEvent();
  // The client is gone: cancels what is in progress.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_);

  bool TakesInput() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the message that was read apart and starts its request, or refuses it.
  void HandleMessage(const StageClock& clock) ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the message cannot be a request; OK if it can.
  absl::Status CheckMessage(const v1::ExecuteStreamRequest& message) const;
  // Takes the id for a request; null if one in progress has it.
  std::shared_ptr<CallState> BeginRequest(const v1::ExecuteStreamRequest& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The message is no request at all: no more are read, those in progress are still answered.
  void EndInput(const absl::Status& status, const StageClock& clock) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends an answer and, if `is_request_over`, gives the id free. As Send: nothing after it.
  void Answer(uint64_t id, const ExecutionEnd& end, bool is_request_over)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Hands gRPC what NextSending chose. Afterwards `this` must not be used by another thread than
  // the polling one: the stream's last event may have come.
  void Send(Sending sending) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether to read now. On the polling thread: only there the number of unanswered requests falls.
  bool NextRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Sending NextSending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t Unanswered() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  ExecuteContext& context_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&rpc_};
  WriteWatch::Write write_{context_.calls->writes, rpc_};
  MemberEvent<ExecuteStreamCall, &ExecuteStreamCall::OnArrival> arrival_{this};
  MemberEvent<ExecuteStreamCall, &ExecuteStreamCall::OnRead> read_{this};
  MemberEvent<ExecuteStreamCall, &ExecuteStreamCall::OnWritten> written_{this};
  MemberEvent<ExecuteStreamCall, &ExecuteStreamCall::OnEnded> ended_{this};
  MemberEvent<ExecuteStreamCall, &ExecuteStreamCall::OnDone> done_{this};

  // Of the polling thread.
  Tenant* tenant_ = nullptr;  // from arrival on, unless the stream is nobody's
  grpc::ByteBuffer message_;
  bool is_in_flight_ = false;  // counted in context_.in_flight: it has unanswered requests
  int events_to_come_ = 2;     // OnEnded, OnDone

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<CallState>> in_progress_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::ByteBuffer> answers_ ABSL_GUARDED_BY(mutex_);
  bool is_reading_ ABSL_GUARDED_BY(mutex_) = false;  // until the message has been handled
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool nobody_listens_ ABSL_GUARDED_BY(mutex_) = false;  // the call was cancelled
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
