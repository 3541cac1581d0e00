// Results that no message can have: the daemon keeps them, and they are downloaded in chunks.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/cpp/request.h"

namespace opserve::cli {

// Whether a call failed because the request makes a message above the daemon's limit.
bool IsRequestTooLarge(const absl::Status& status);

// The same of its results, before anything was computed. (Also true if an operator refuses an
// argument for its size: too_large is the reason of both.)
bool AreResultsTooLarge(const absl::Status& status);

// Runs `request`, as Client::Execute. If its results make a message above the daemon's limit, they
// become resident tensors, are downloaded and then released (by the end of the default lease, if
// this process ends before). `results` are the names of the results if request.results is empty.
// Each call and each download takes at most request.timeout.
//
// Errors: those of Client::Execute and Client::Download. kInternal: the daemon kept more or fewer
// outputs than it was asked to.
absl::StatusOr<Response> ExecuteWithLargeResults(Client& client, const Request& request,
                                                 const std::vector<OutputOf>& results);

}  // namespace opserve::cli
