// A little of everything the daemon does, with known answers.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/cpp/client.h"

namespace opserve::server {

// What one step of a workload came to: OK only if the answer was also the right one.
struct Step {
  std::string name;
  absl::Status status;
};

using StepListener = absl::FunctionRef<void(const Step&)>;

// Runs, one after the other: a single call twice (the second finds its plan), a call that needs a
// workspace, a program of two invocations, two requests over a stream, and a resident tensor's
// upload, use, download and release. A wrong answer is kUnknown, which no daemon gives. `ended` is
// called after each step, before the next begins.
void RunWorkload(Client& client, StepListener ended);

}  // namespace opserve::server
