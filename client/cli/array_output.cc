#include "client/cli/array_output.h"

#include "absl/status/status.h"
#include "client/cli/array_file.h"
#include "client/cli/npy.h"

namespace opserve::cli {

absl::Status CheckOutputPath(const std::string& path, OutputFormat format,
                             const Terminal& terminal) {
  if (path != kStandardOutput) return absl::OkStatus();
  if (format == OutputFormat::kJson) {
    return absl::InvalidArgumentError(
        "--output=- and --format=json would both write to standard output; name a file");
  }
  if (terminal.out_is_terminal) {
    return absl::InvalidArgumentError(
        "--output=-: standard output is a terminal, which cannot show a .npy file; redirect it, or "
        "name a file");
  }
  return absl::OkStatus();
}

absl::Status WriteOutput(const std::string& path, const Result& result, Terminal& terminal) {
  if (path != kStandardOutput) return WriteNpy(path, result);
  WriteNpy(terminal.out, result);
  terminal.out.flush();
  return terminal.out ? absl::OkStatus()
                      : absl::UnavailableError("standard output cannot be written");
}

Terminal ReportsBeside(const std::string& path, const Terminal& terminal) {
  return Terminal{.out = path == kStandardOutput ? terminal.err : terminal.out,
                  .err = terminal.err,
                  .width = terminal.width,
                  .err_is_terminal = terminal.err_is_terminal};
}

}  // namespace opserve::cli
