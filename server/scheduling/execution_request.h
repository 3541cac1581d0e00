// A request on its way through the daemon, from a checked message to its answer.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/codec/payload_message.h"
#include "server/execution/program.h"
#include "server/execution/program_runner.h"
#include "server/observability/stage_clock.h"

namespace opserve::server {

struct ExecutionRequest {
  ExecutionRequest(codec::PayloadMessage message, Program program, std::shared_ptr<CallState> call,
                   StageClock clock)
      : message(std::move(message)),
        program(std::move(program)),
        call(std::move(call)),
        clock(clock) {}

  codec::PayloadMessage message;  // owns the payloads' bytes
  Program program;
  // Shared with the RPC, which may end (and say so here) while the request is still queued.
  std::shared_ptr<CallState> call;
  StageClock clock;

  // Called once, on a thread of the device, unless Submit refused the request. Must not block. The
  // request is destroyed after it returns.
  std::function<void(ExecutionRequest& request, absl::StatusOr<ProgramResult> result)> done;
};

}  // namespace opserve::server
