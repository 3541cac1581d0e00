// A little of everything the daemon does, with known answers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cpp/client.h"

namespace opserve::server {

// What one step of a workload came to: OK only if the answer was also the right one.
struct Step {
  std::string name;
  absl::Status status;
};

// Runs, one after the other: a single call twice (the second finds its plan), a call that needs a
// workspace, a program of two invocations, two requests over a stream, and a resident tensor's
// upload, use, download and release. A wrong answer is kUnknown, which no daemon gives.
std::vector<Step> RunWorkload(Client& client);

}  // namespace opserve::server
