// The results of a request, on their way from device memory to its client part by part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/slice.h"
#include "proto/codec/slices.h"
#include "server/grpc/awaited_step.h"
#include "server/grpc/completion_event.h"
#include "server/request/request_end.h"
#include "server/run/call_state.h"
#include "server/run/held_results.h"
#include "server/session/session_context.h"

namespace opserve::server {

// Copies as much as the client takes: in host memory there are at most three windows of
// kWindowBytes, one that is being sent, one that waits for that and one that is being copied. The
// results stay in device memory, which is the tenant's, until the last of them is copied.
//
// All methods but Begin, and all functions of the sender, run on the queue's polling thread.
class ResultDeparture {
 public:
  static constexpr uint64_t kWindowBytes = 1 << 20;

  // The session that the results leave by. It outlives the departure, which it destroys after
  // `over` was called and every event has ended.
  struct Sender {
    std::function<void()> begin;         // once, first
    std::function<void()> expect_event;  // one more event_ended follows
    std::function<void()> event_ended;   // may destroy the departure
    std::function<size_t()> waiting;     // bytes that were sent and that gRPC has not taken
    std::function<void(codec::Slices&& bytes)> send;  // the next of the answer; never the last
    // Called once: these are the last bytes, or why there will be none.
    std::function<void(absl::StatusOr<codec::Slices> last)> over;
  };

  // `end`: of a request of the tenant's that `connection` waits for, with held results. `header`:
  // the answer's.
  ResultDeparture(SessionContext& context, grpc::CompletionQueue* queue, uint32_t tenant,
                  uint64_t connection, std::shared_ptr<CallState> call, const RequestEnd& end,
                  std::string header, Sender sender);
  ResultDeparture(const ResultDeparture&) = delete;
  ResultDeparture& operator=(const ResultDeparture&) = delete;

  // Brings it to the polling thread, from any other; not to be used there after it.
  void Begin();
  // gRPC has taken some of what was sent.
  void Proceed();
  // It is not wanted any more: `over` is called, if it has not been.
  void Fail(const absl::Status& status);

  // Of the request; its clock counts until all has been copied.
  RequestEnd& end() { return end_; }
  uint64_t answer_bytes() const { return answer_bytes_; }
  bool is_cancelled() const { return call_->is_cancelled(); }
  bool is_over() const { return is_over_; }
  bool has_events() const { return num_events_ > 0; }

 private:
  void HandleBegin(bool ok);
  void HandleDeadline(bool ok);
  void ProceedOrEnd();
  // Makes what follows the window the next one.
  void MoveWindow();
  // Has it copied; if the device's queue is full, again and again. As CallState::Check, or
  // Scheduler::Submit but for kResourceExhausted.
  absl::Status CopyWindow();
  void HandleStep(const absl::Status& status);
  void End(absl::StatusOr<codec::Slices> last);
  // Of the device memory, which no step uses.
  void LetGo();
  // The window's bytes of the answer, with what precedes the results there.
  codec::Slices TakeCopied();
  const HeldResults& held() const { return *end_.answer->run.held; }
  void ExpectEvent();
  void EventEnded();

  SessionContext& context_;
  grpc::CompletionQueue* const queue_;
  const uint32_t tenant_;
  const uint64_t connection_;
  const std::shared_ptr<CallState> call_;
  const Sender sender_;
  RequestEnd end_;
  std::string header_;  // until it has been sent
  uint64_t answer_bytes_ = 0;

  // Of a result.
  struct Piece {
    size_t result = 0;  // its position
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  std::vector<Piece> window_;  // that is being copied
  size_t next_result_ = 0;     // the first behind it
  uint64_t next_offset_ = 0;   // in that result
  grpc::Slice copied_;         // written by the device's thread while a step runs
  bool is_delayed_ = false;    // the queue was full: the step only waits to try again
  bool is_over_ = false;
  int num_events_ = 0;

  grpc::Alarm begin_alarm_;
  MemberEvent<ResultDeparture, &ResultDeparture::HandleBegin> begin_event_{this};
  grpc::Alarm deadline_alarm_;
  MemberEvent<ResultDeparture, &ResultDeparture::HandleDeadline> deadline_event_{this};
  AwaitedStep step_;
};

}  // namespace opserve::server
