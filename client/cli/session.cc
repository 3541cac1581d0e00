#include "client/cli/session.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace opserve::cli {
namespace {

constexpr char kStartHint[] =
    "start the daemon with \"opserved\", or say where it listens with --target or OPSERVE_TARGET";

}  // namespace

std::string DefaultTarget() {
  const char* target = std::getenv("OPSERVE_TARGET");
  if (target != nullptr && *target != '\0') return target;
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir != nullptr && *runtime_dir != '\0') {
    return absl::StrCat("unix:", runtime_dir, "/opserve/opserve.sock");
  }
  return absl::StrCat("unix:/tmp/opserve-", getuid(), "/opserve.sock");
}

std::variant<std::unique_ptr<Client>, Failure> Connect(const Session& session) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(session.target);
  if (!client.ok()) return UsageFailure(client.status(), "see \"opserve --help\"");
  return *std::move(client);
}

Failure CallFailure(const Session& session, const Client& client, const absl::Status& status) {
  const bool is_from_daemon = ErrorDetailOf(status).has_value();
  const bool has_no_connection =
      absl::IsUnavailable(status) || (absl::IsDeadlineExceeded(status) && !client.IsConnected());
  if (!is_from_daemon && has_no_connection) {
    return {
        .exit_code = ExitCode::kUnreachable,
        .status = absl::Status(status.code(), absl::StrCat("cannot reach the daemon at ",
                                                           session.target, ": ", status.message())),
        .hint = kStartHint};
  }
  Failure failure{.exit_code = ExitCode::kFailed, .status = status};
  const std::optional<absl::Duration> pushback = RetryPushbackOf(status);
  if (pushback && *pushback != absl::InfiniteDuration()) {
    failure.hint = absl::StrCat("try again in ", absl::FormatDuration(*pushback));
  } else if (absl::IsDeadlineExceeded(status)) {
    failure.hint = absl::StrCat("--timeout was ", absl::FormatDuration(session.timeout));
  } else if (absl::IsResourceExhausted(status) && !is_from_daemon) {
    // gRPC refused the message before the daemon's own code, which would say more, saw it.
    failure.hint = "the daemon takes messages up to its --max_message_bytes; start it with more";
  }
  return failure;
}

}  // namespace opserve::cli
