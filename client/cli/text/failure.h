// How a command fails: exit code, reason and advice.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/cli/text/output.h"

namespace opserve::cli {

enum class ExitCode {
  kOk = 0,
  kFailed = 1,       // the daemon or the operator refused or failed
  kUsage = 2,        // the command line, or a file it names, cannot be used
  kUnreachable = 3,  // no connection to the daemon
};

struct Failure {
  ExitCode exit_code = ExitCode::kFailed;
  absl::Status status = {};
  std::string hint = {};    // advice; may be empty
  std::string source = {};  // which daemon refused, where that matters; may be empty
};

// A mistake in the command line.
Failure UsageFailure(const absl::Status& status, std::string hint = "");

// Reports it on terminal.err, in `format`.
void Report(const Failure& failure, OutputFormat format, Terminal& terminal);

}  // namespace opserve::cli
