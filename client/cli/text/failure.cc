#include "client/cli/text/failure.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/text/output.h"
#include "client/cpp/error.h"

namespace opserve::cli {
namespace {

// The daemon's details beyond its message, for people.
std::string DescribeDetail(const v1::ErrorDetail& detail) {
  std::vector<std::string> facts;
  if (!detail.reason().empty()) facts.push_back(absl::StrCat("reason: ", detail.reason()));
  if (detail.aclnn_status() != 0) {
    facts.push_back(absl::StrCat("aclnn status: ", detail.aclnn_status()));
  }
  if (detail.acl_error() != 0) facts.push_back(absl::StrCat("ACL error: ", detail.acl_error()));
  if (!detail.runtime_message().empty()) facts.push_back(detail.runtime_message());
  return absl::StrJoin(facts, ", ");
}

void ReportText(const Failure& failure, Terminal& terminal) {
  terminal.err << "opserve: "
               << (terminal.err_is_terminal ? "\x1b[1;31merror:\x1b[0m " : "error: ");
  // Usage and connections need no code; the message says it all.
  if (failure.exit_code == ExitCode::kFailed) {
    terminal.err << absl::StatusCodeToString(failure.status.code()) << ": ";
  }
  terminal.err << failure.status.message() << "\n";
  if (const auto detail = ErrorDetailOf(failure.status)) {
    const std::string facts = DescribeDetail(*detail);
    if (!facts.empty()) terminal.err << "  " << facts << "\n";
  }
  if (!failure.source.empty()) terminal.err << "  from: " << failure.source << "\n";
  if (!failure.hint.empty()) terminal.err << "  hint: " << failure.hint << "\n";
}

void ReportJson(const Failure& failure, Terminal& terminal) {
  nlohmann::ordered_json error = {
      {"code", absl::StatusCodeToString(failure.status.code())},
      {"message", std::string(failure.status.message())},
      {"exit_code", static_cast<int>(failure.exit_code)},
  };
  if (!failure.source.empty()) error["from"] = failure.source;
  if (!failure.hint.empty()) error["hint"] = failure.hint;
  if (const auto detail = ErrorDetailOf(failure.status)) error["detail"] = ToJson(*detail);
  WriteJson(terminal.err, {{"error", std::move(error)}});
}

}  // namespace

Failure UsageFailure(const absl::Status& status, std::string hint) {
  return {.exit_code = ExitCode::kUsage, .status = status, .hint = std::move(hint)};
}

void Report(const Failure& failure, OutputFormat format, Terminal& terminal) {
  if (format == OutputFormat::kJson) {
    ReportJson(failure, terminal);
  } else {
    ReportText(failure, terminal);
  }
}

}  // namespace opserve::cli
