// Whether a request may be run, and what it runs.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/program/program.h"
#include "server/program/resident_tensor.h"
#include "server/request/request_context.h"
#include "server/request/request_input.h"

namespace opserve::server {

// Lets the request in as far as its tenant may send it now: after OK, Tenant::EndRequest is due.
// kUnavailable (reason "draining"), kInvalidArgument (its identity is none), Tenant::BeginRequest's
// errors, and those of a call that is over.
absl::Status LetIn(const RequestContext& context, const RequestInput& input);

// Checks the request and binds its names: *bound, which is empty, becomes the call that it runs.
// (Given back through several functions, its moves were a fiftieth of a small request's
// instructions.) `message`: that of the input, wherever it is by now.
// Errors: BindProgram's, PreparedPrograms::Find's, PreparedProgram::Bind's, CheckResponseFits';
// kPermissionDenied for operators that the tenant may not call.
absl::Status Bind(const RequestContext& context, const RequestInput& input,
                  const codec::PayloadMessage& message, ProgramCall* bound);

// The same of a request whose payloads are not in its message, but are to be brought into `apart`
// (BindApart); they have these bytes.
absl::Status BindAnnounced(const RequestContext& context, const RequestInput& input,
                           absl::Span<const uint64_t> payload_bytes,
                           absl::Span<const std::shared_ptr<ResidentTensor>> apart,
                           ProgramCall* bound);

// For metrics: of a request that is not bound, or not yet, and of one that is.
int OperatorOf(const RequestContext& context, const GivenRequest& request);
int OperatorOf(const Program& program);

// kInvalidArgument (reason "too_large") if the results would make a message of more than `limit`
// bytes, which gRPC would refuse to send after all the work was done. The detail names the largest
// of them.
absl::Status CheckResponseFits(const Program& program, uint64_t limit);

}  // namespace opserve::server
