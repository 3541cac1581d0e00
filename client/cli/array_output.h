// Where results of a command go as arrays: to files, or one of them to standard output.
#pragma once

#include <string>

#include "client/cli/output.h"
#include "client/cpp/tensor.h"

namespace opserve::cli {

// kInvalidArgument: `path` is "-" while standard output is a terminal, or takes a JSON document.
absl::Status CheckOutputPath(const std::string& path, OutputFormat format,
                             const Terminal& terminal);

// Writes the result as .npy to the file, or to terminal.out if `path` is "-". Any error: it cannot
// be written.
absl::Status WriteOutput(const std::string& path, const Result& result, Terminal& terminal);

// The terminal for reports beside an array at `path`: with "-" they go to terminal.err.
Terminal ReportsBeside(const std::string& path, const Terminal& terminal);

}  // namespace opserve::cli
