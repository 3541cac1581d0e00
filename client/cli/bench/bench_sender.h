// How `opserve bench` sends its requests: one way for each transport.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/bench/bench_arguments.h"
#include "client/cli/bench/bench_load.h"
#include "client/cli/commands/session.h"
#include "client/cpp/client.h"
#include "client/cpp/request.h"

namespace opserve::cli {

struct BenchPlan {
  Request request;  // its inputs are tensors or lists of tensors, contiguous
  std::vector<uint64_t> result_bytes = {};  // of each of its results, for shared memory
  BenchTransport transport = BenchTransport::kSession;
  bool prepare = false;  // as BenchArguments::prepare
};

// Returns a function that sends `plan.request`, up to `concurrency` calls at once; the request, or
// the shared memory that has its inputs, lives as long as the function. `client` is session's and
// outlives it.
//
// Errors: those of sharing memory or of preparing a program.
absl::StatusOr<SendRequest> MakeSender(const BenchPlan& plan, uint32_t concurrency,
                                       const Session& session, Client& client);

}  // namespace opserve::cli
