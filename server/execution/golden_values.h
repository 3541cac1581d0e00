// Whether a device computes right: every operator's golden case, run like any request.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/execution/lane_context.h"
#include "server/execution/operator_table.h"
#include "server/execution/program.h"

namespace opserve::server {

// The catalogue's golden case as a program of one invocation: its payloads are the tensors of its
// inputs, in their order. kInvalidArgument: the operator's own rules refuse it.
absl::StatusOr<Program> GoldenProgram(const LoadedOperator& op, const catalog::GoldenCase& golden);

// The elements of a golden case's tensor.
std::string GoldenBytes(const catalog::GoldenCase::Tensor& tensor);

// Runs the catalogue's golden cases of a loaded operator on the lane and compares. The calling
// thread must be bound to the lane's device.
//
// kInternal: a result is wrong; the message names operator, element, expected and actual value.
// Else RunProgram's errors; SaysUnsupported tells those of a product that lacks the operator.
absl::Status CheckGoldenValue(const LoadedOperator& op, LaneContext& lane);

// The same for every loaded operator; those that the product lacks do not count.
//
// kFailedPrecondition: it lacks all of them.  Else as CheckGoldenValue.
absl::Status CheckGoldenValues(const OperatorTable& operators, LaneContext& lane);

}  // namespace opserve::server
