// Whether a device computes right: every operator's golden case, run like any request.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/program/operator_table.h"
#include "server/program/program.h"
#include "server/run/lane_context.h"

namespace opserve::server {

// The catalogue's golden case as a program of one invocation: its payloads are the tensors of its
// inputs, in their order. kInvalidArgument: the operator's own rules refuse it.
absl::StatusOr<ProgramCall> GoldenProgram(const LoadedOperator& op,
                                          const catalog::GoldenCase& golden);

// The elements of a golden case's tensor.
std::string GoldenBytes(const catalog::GoldenCase::Tensor& tensor);

// Runs the catalogue's golden cases of a loaded operator on the lane, compares, and records the
// finding in the operator's offer. The calling thread must be bound to the lane's device.
//
// An error says nothing of the results: RunProgram's, of a kernel that crashed or hung and of a
// device that gives no memory. Then no finding is recorded.
absl::StatusOr<GoldenFinding> CheckGoldenValue(const LoadedOperator& op, LaneContext& lane);

// The same for every loaded operator. A wrong result costs the operator only, but a device without
// any right one is no use.
//
// kInternal: every operator is wrong, or lacking.  kFailedPrecondition: the product lacks them all.
// Else the first error of CheckGoldenValue.
absl::Status CheckGoldenValues(const OperatorTable& operators, LaneContext& lane);

}  // namespace opserve::server
