// Requests of the native protocol in the daemon's own types.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/program/bind_program.h"
#include "server/program/operator_table.h"
#include "server/program/program_limits.h"
#include "server/program/program_request.h"
#include "server/request/given_request.h"
#include "server/run/prepared_program.h"

namespace opserve::server {

// Views of `message`, which outlives them. Checks nothing.
GivenRequest TranslateRequest(const v1::ExecuteRequest& message);
ProgramRequest TranslateProgram(const v1::ExecuteRequest& message);

PreparedRequest TranslateCall(const v1::PreparedCall& message);

// Makes the program that the message describes. Errors: PreparedProgram::Make's; kInvalidArgument:
// a field belongs to the calls, or an input is no tensor or of an unknown kind.
absl::StatusOr<PreparedProgram> MakePrepared(const v1::PrepareRequest& message,
                                             const OperatorTable& operators,
                                             const ProgramLimits& limits,
                                             ResidentLookup find_resident);

// The message, serialised, for PreparedProgram::KeepRequest. Without the lease: each handle has its
// own.
std::string TemplateBytes(const v1::PrepareRequest& message);

}  // namespace opserve::server
