// The common part of uploads and downloads: a life on one completion queue, steps on a device in
// between, and a deadline.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/grpc/awaited_step.h"
#include "server/grpc/completion_event.h"
#include "server/native/tensor_service.h"
#include "server/run/call_state.h"
#include "server/schedule/lanes/transfer_task.h"

namespace opserve::server {

// Owns itself, as ExecuteCall does. All methods, and those of the classes derived from it, run on
// the queue's polling thread; a device's thread touches a call only while it runs a step of it.
class TransferCall {
 protected:
  TransferCall(TensorContext& context, grpc::ServerCompletionQueue* queue);
  virtual ~TransferCall();

  // The call has arrived: it counts as in flight from now on, and OnDeadline is called when its
  // time is up. To be called once, first. kUnauthenticated, kUnavailable (reason "draining"),
  // kDeadlineExceeded.
  absl::Status Begin();

  // The parts of Begin, for calls of others than tenants: Arrive first, and CheckTaken once the
  // caller is known.
  void Arrive();
  absl::Status CheckTaken() const;

  // Every operation that was started on the queue after Begin is announced, and its handler ends
  // with EventEnded, after which the call may be gone.
  void ExpectEvent() { ++events_to_come_; }
  void EventEnded();

  // Hands a step to the device; OnStepEnded follows unless this fails (as Scheduler::Submit does).
  // One at a time. `result_bytes`: page-locked memory for the step's results, which are read from a
  // resident tensor; 0: it writes one. `is_last`: no other step follows.
  absl::Status Submit(int32_t device, uint64_t result_bytes, bool is_last, TransferTask::Step step);
  bool step_is_running() const { return step_.is_running(); }

  // Claims the tensors, each named once, for reading, until EndReading. False: it waits for
  // requests that change one of them, as a step; OnStepEnded follows, and if it says OK, all are
  // claimed.
  bool BeginReading(absl::Span<const TensorClaims::Wish> wishes);
  void EndReading();

  // Ends the call's wait for a device. A step that has begun still ends by itself.
  void CancelStep() { state_->Cancel(); }

  // For the answer: the status that gRPC is to send for `status`. Stops the clock of the deadline.
  // `method` names the call in the log.
  grpc::Status End(const absl::Status& status, absl::string_view method);

  virtual void OnStepEnded(const absl::Status& status) = 0;
  virtual void OnDeadline(const absl::Status& status) = 0;
  // After the last event.
  virtual void OnEnd() {}

  TensorContext& context_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  WriteWatch::Write write_{context_.calls->writes, rpc_};
  std::shared_ptr<CallState> state_;  // set by Begin
  uint32_t tenant_ = 0;               // likewise, if it succeeds

 private:
  void HandleDeadline(bool ok);
  void HandleDone(bool ok);

  AwaitedStep step_{queue_,
                    {.expect_event = [this] { ExpectEvent(); },
                     .over = [this](const absl::Status& status) { OnStepEnded(status); },
                     .event_ended = [this] { EventEnded(); }}};
  TensorClaims::Ticket claim_ = 0;
  grpc::Alarm deadline_alarm_;
  bool is_in_flight_ = false;  // counted in *context_.in_flight
  int events_to_come_ = 0;
  MemberEvent<TransferCall, &TransferCall::HandleDeadline> deadline_event_{this};
  MemberEvent<TransferCall, &TransferCall::HandleDone> done_event_{this};
};

}  // namespace opserve::server
