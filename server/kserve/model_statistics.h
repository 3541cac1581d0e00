// The counts of a model, as the protocol has them.
#pragma once

#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/observability/operator_statistics.h"

namespace opserve::server {

void DescribeStatistics(absl::string_view model, const OperatorStatistics::Totals& totals,
                        inference::ModelStatistics* statistics);

}  // namespace opserve::server
