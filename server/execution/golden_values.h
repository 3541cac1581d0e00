// Whether a device computes right: every operator's golden case, run like any request.
#pragma once

#include "absl/status/status.h"
#include "server/execution/lane_context.h"
#include "server/execution/operator_table.h"

namespace opserve::server {

// Runs the catalogue's golden case of every available operator on the lane and compares. The
// calling thread must be bound to the lane's device.
//
// kInternal: a result is wrong; the message names operator, element, expected and actual value.
// Else RunProgram's errors.
absl::Status CheckGoldenValues(const OperatorTable& operators, LaneContext& lane);

}  // namespace opserve::server
