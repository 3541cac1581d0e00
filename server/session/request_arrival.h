// The payloads of an announced request, on their way into device memory chunk by chunk.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "proto/codec/slices.h"
#include "proto/session/session_frames.h"
#include "server/grpc/awaited_step.h"
#include "server/grpc/completion_event.h"
#include "server/grpc/pace_watch.h"
#include "server/native/chunk_writer.h"
#include "server/program/program.h"
#include "server/program/resident_tensor.h"
#include "server/schedule/lanes/booking_task.h"
#include "server/schedule/lanes/device_service.h"
#include "server/session/credit_window.h"
#include "server/session/session_context.h"

namespace opserve::server {

// The memory of all payloads, and what the program takes while it runs, is booked before the client
// may send a byte: requests that have arrived half-way cannot wait for each other's memory. Where
// the tenant may not have it now, the arrival waits in the device's queue as a task does
// (BookingTask). Chunks are copied as they come, so in host memory there is at most what the client
// was granted.
//
// All methods and all functions of the receiver run on the queue's polling thread.
class RequestArrival {
 public:
  // The session that the chunks come in. It outlives the arrival, which it destroys after `over`
  // was called and every event has ended.
  struct Receiver {
    std::function<void()> expect_event;         // one more event_ended follows
    std::function<void()> event_ended;          // may destroy the arrival
    std::function<void(uint64_t bytes)> grant;  // the client may send so many bytes more
    // Called once: all is on the device (OK), or why it never will be. Nothing of the arrival runs
    // on a device then.
    std::function<void(const absl::Status& status)> over;
  };

  RequestArrival(SessionContext& context, grpc::CompletionQueue* queue, uint32_t tenant,
                 codec::PayloadSizes sizes, Receiver receiver);
  RequestArrival(const RequestArrival&) = delete;
  RequestArrival& operator=(const RequestArrival&) = delete;

  // One for each payload, without memory yet. For BindApart.
  absl::Span<const std::shared_ptr<ResidentTensor>> tensors() const { return tensors_; }

  // Chooses the device, books the memory, or waits for it, and grants the first bytes then. `call`:
  // of the run, which ends the arrival at its deadline. `over` follows, unless this fails: as
  // DeviceQueue::CheckCanEverHold and Scheduler::Submit; kUnavailable (reason
  // "device_unavailable"): no device is ready.
  absl::Status Begin(const ProgramCall& bound, Priority priority, std::shared_ptr<CallState> call);

  // After `over` with OK: the booking of the program's memory (ProgramCall::booked); null: it is to
  // be booked when it runs.
  std::shared_ptr<void> TakeBooked() { return std::move(program_share_); }

  // Takes a chunk. kInvalidArgument: more than was granted, or across the end of a payload; for the
  // session to end.
  absl::Status Receive(codec::Slices&& chunk);

  // It is not wanted any more. `over` follows, if it has not been called.
  void Fail(const absl::Status& status);

  // Granted and not received.
  uint64_t bytes_on_their_way() const { return credit_.on_their_way(); }
  bool is_over() const { return is_over_; }
  bool has_events() const { return num_events_ > 0; }

 private:
  // Sets the first of the payloads that is not complete.
  void SkipComplete();
  // Has the memory booked in its turn. Errors: as Scheduler::Submit.
  absl::Status WaitForMemory(Priority priority);
  // The memory is booked.
  void Open(BookingTask::Booked booked);
  void Proceed();
  absl::Status CopyNext();
  void HandleStep(const absl::Status& status);
  void HandleDeadline(bool ok);
  void GrantMore();
  void ExpectEvent();
  void EventEnded();
  absl::Status Stalled() const;

  SessionContext& context_;
  grpc::CompletionQueue* const queue_;
  const uint32_t tenant_;
  std::shared_ptr<CallState> call_;  // since Begin
  const codec::PayloadSizes sizes_;
  const Receiver receiver_;
  const uint64_t total_bytes_;

  std::vector<std::shared_ptr<ResidentTensor>> tensors_;  // by payload
  DeviceService* device_ = nullptr;                       // since Begin
  uint64_t program_bytes_ = 0;
  bool uses_residents_ = false;
  BookingTask::Booked booked_;           // set before step_ ends, when it waits for memory
  std::shared_ptr<void> program_share_;  // of the device's memory
  ChunkWriter writer_{*context_.metrics};
  PaceWatch pace_;
  size_t payload_ = 0;   // that is arriving
  uint64_t offset_ = 0;  // in it
  CreditWindow credit_;
  uint64_t copying_bytes_ = 0;
  struct Waiting {
    size_t payload;
    uint64_t offset;
    codec::Slices bytes;
  };
  std::deque<Waiting> waiting_;
  absl::Status failure_;
  bool is_open_ = false;  // the memory is booked
  bool is_over_ = false;
  int num_events_ = 0;

  AwaitedStep step_;
  grpc::Alarm deadline_alarm_;
  MemberEvent<RequestArrival, &RequestArrival::HandleDeadline> deadline_event_{this};
};

}  // namespace opserve::server
