// The answer to Execute.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/execution/program.h"
#include "server/execution/program_runner.h"
#include "server/observability/stage_clock.h"

namespace opserve::server {

// kInvalidArgument (reason "too_large") if the results would make a message of more than `limit`
// bytes, which gRPC would refuse to send after all the work was done.
absl::Status CheckResponseFits(const Program& program, uint64_t limit);

// The response message. The results' buffers become its payloads without a copy and go back to
// their pool when gRPC has sent them. Books Stage::kWrite.
grpc::ByteBuffer BuildExecuteResponse(ProgramResult result, bool want_receipt, StageClock* clock);

}  // namespace opserve::server
