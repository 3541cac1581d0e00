// The details of a request, for the log.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/observability/request_log.h"
#include "server/program/program.h"
#include "server/run/program_runner.h"

namespace opserve::server {

// `result`: how the program ended.
std::shared_ptr<const RequestDetails> DetailsOf(const Program& program,
                                                const absl::StatusOr<ProgramResult>& result);

}  // namespace opserve::server
