#include "server/scheduling/execution_request.h"

#include <utility>

namespace opserve::server {

ExecutionRequest::ExecutionRequest(codec::PayloadMessage message, Program program,
                                   std::shared_ptr<CallState> call, uint32_t tenant,
                                   const StageClock& clock, Done done)
    : LaneTask(std::move(call), program.device()),
      message_(std::move(message)),
      program_(std::move(program)),
      tenant_(tenant),
      clock_(clock),
      done_(std::move(done)) {}

void ExecutionRequest::Run(LaneContext& lane) {
  clock_.Book(Stage::kQueue);
  result_ = RunProgram(program_, message_.payloads(), *call(), tenant_, lane, clock_);
}

void ExecutionRequest::Answer() { done_(*this, *std::move(result_)); }

void ExecutionRequest::Refuse(const absl::Status& status) {
  clock_.Book(Stage::kQueue);
  done_(*this, status);
}

}  // namespace opserve::server
