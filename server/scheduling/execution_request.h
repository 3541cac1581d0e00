// A program on its way through the daemon, from a checked message to its answer.
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/codec/payload_message.h"
#include "server/execution/program.h"
#include "server/execution/program_runner.h"
#include "server/observability/stage_clock.h"
#include "server/scheduling/lane_task.h"

namespace opserve::server {

class ExecutionRequest final : public LaneTask {
 public:
  // Called once, unless Submit refused the request, on a thread of a device or the one that
  // cancelled. Must not block. The request is destroyed after it returns.
  using Done =
      absl::AnyInvocable<void(ExecutionRequest& request, absl::StatusOr<ProgramResult> result)>;

  // `tenant`: the one charged for memory and time; `connection`: as in TaskDemand. The cost is
  // estimated from `costs`, and recorded there when it has run.
  ExecutionRequest(codec::PayloadMessage message, ProgramCall bound,
                   std::shared_ptr<CallState> call, uint32_t tenant, uint64_t connection,
                   Priority priority, CostModel& costs, const StageClock& clock, Done done);

  // For a request that uses resident tensors, once they are claimed, and before it is submitted:
  // `book` sets ProgramCall::kept, and the request runs where its tensors are. Errors: book's.
  absl::Status Place(absl::FunctionRef<absl::Status(ProgramCall* call)> book);

  const LoadedOperator* MissingOn(int32_t device) const override {
    return program().MissingOn(device);
  }
  bool uses_residents() const override { return !program().residents.empty(); }
  bool is_prompt() const override { return is_prompt_; }
  bool Queue(LaneContext& lane) override;
  bool IsOver() const override { return std::get<ProgramRun>(run_).IsOver(); }
  void Finish() override;
  void Answer() override;
  void Refuse(const absl::Status& status) override;

  StageClock& clock() { return clock_; }
  const ProgramCall& bound() const { return bound_; }
  const Program& program() const { return *bound_.program; }
  // The request's message and program, to be taken once it has been answered.
  codec::PayloadMessage TakeMessage() { return std::move(message_); }
  ProgramCall TakeProgram() { return std::move(bound_); }

 private:
  void ReleaseSharedMemory();
  // Learns from a run that went well; `waits`: as ProgramRun::slice_waits.
  void RecordRun(absl::Span<const absl::Time> waits);

  codec::PayloadMessage message_;  // owns the payloads' bytes
  ProgramCall bound_;
  CostModel& costs_;
  const bool is_prompt_;
  StageClock clock_;
  absl::Time start_;
  absl::Duration drain_time_;  // as of the start
  // From Queue to Finish a run, then its result: in one place, since malloc takes twice as long for
  // more than about 1,000 bytes.
  std::variant<std::monostate, ProgramRun, absl::StatusOr<ProgramResult>> run_;
  Done done_;
};

}  // namespace opserve::server
