#include "client/cli/commands/session.h"

#include <cstdlib>
#include <functional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/arrays/closest_name.h"
#include "client/cpp/text_search.h"

namespace opserve::cli {
namespace {

constexpr char kStartHint[] =
    "start the daemon with \"opserved\", or say where it listens with --target or OPSERVE_TARGET";

constexpr char kHandshakeHint[] =
    "see which authorities --tls-ca trusts, for which name the daemon's certificate is "
    "(--tls-server-name) and until when";

constexpr char kPlaintextHint[] = "the daemon answers without TLS; leave --tls and --tls-... out";

constexpr char kEncryptedHint[] =
    "the connection is made and then ended by the other side; if the daemon expects TLS, say --tls "
    "or --tls-ca";

// The likely cause, which gRPC tells in words only.
// By the words of gRPC and OpenSSL, as the status has a code only. The order matters: a handshake
// that fails for plaintext names the version, too.
std::string UnreachableHint(const Session& session, const absl::Status& status) {
  const std::string text = absl::AsciiStrToLower(status.message());
  const bool is_encrypted = session.connection.tls.has_value();
  if (is_encrypted && HasAny(text, {"wrong version number", "wrong_version_number"})) {
    return kPlaintextHint;
  }
  if (HasAny(text, {"handshake", "hostname verification"})) return kHandshakeHint;
  if (!is_encrypted && HasAny(text, {"socket closed", "connection reset"})) return kEncryptedHint;
  // The text of CallAttempts for a call that never found a connection.
  if (HasAny(text, {"no connection was made"})) {
    return absl::StrCat("nothing answered within --timeout=", absl::FormatDuration(session.timeout),
                        "; wait longer, or see whether the address is the daemon's and whether a "
                        "firewall drops connections");
  }
  return kStartHint;
}

// A notice that the daemon is away, so that people know why the command waits.
std::function<void(const absl::Status&)> WordOfWaiting(const Session& session) {
  // Scripts get no notice: their error output is for errors.
  if (!session.terminal.err_is_terminal) return {};
  return [&err = session.terminal.err, target = session.target,
          timeout = session.timeout](const absl::Status& cause) {
    err << "opserve: waiting for the daemon at " << target
        << ", at most --timeout=" << absl::FormatDuration(timeout) << " (" << cause.message()
        << ")\n";
  };
}

}  // namespace

DefaultTarget FindDefaultTarget() {
  // An empty variable counts as unset, as in Client::DefaultTarget.
  const char* target = std::getenv("OPSERVE_TARGET");
  const bool is_named = target != nullptr && *target != '\0';
  return {Client::DefaultTarget(), is_named ? TargetSource::kEnvironment : TargetSource::kDefault};
}

std::string DefaultToken() {
  const char* token = std::getenv("OPSERVE_TOKEN");
  return token != nullptr ? token : "";
}

std::string DefaultTraceParent() {
  const char* traceparent = std::getenv("TRACEPARENT");
  return traceparent != nullptr ? traceparent : "";
}

absl::Status CheckArrayOutput(const Session& session) {
  // One document is all that --format=json may write.
  if (session.format == OutputFormat::kJson) {
    return absl::InvalidArgumentError(
        "--output=- and --format=json would both write to standard output; name a file");
  }
  if (session.terminal.out_is_terminal) {
    return absl::InvalidArgumentError(
        "--output=-: standard output is a terminal, which cannot show a .npy file; redirect it, or "
        "name a file");
  }
  return absl::OkStatus();
}

std::variant<std::unique_ptr<Client>, Failure> Connect(const Session& session) {
  ConnectOptions options = session.connection;
  options.retry.waiting = WordOfWaiting(session);
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(session.target, options);
  // The target or a file is wrong; nothing has been sent.
  if (!client.ok()) return UsageFailure(client.status(), "see \"opserve --help\"");
  return *std::move(client);
}

Failure CallFailure(const Session& session, const Client& client, const absl::Status& status) {
  return CallFailure(session, session.target, client.IsConnected(), status);
}

Failure CallFailure(const Session& session, const std::string& target, bool is_connected,
                    const absl::Status& status) {
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  // A detail is written by a daemon. Without one kUnavailable means that none was reached.
  const bool is_from_daemon = detail.has_value();
  if (!is_from_daemon && absl::IsUnavailable(status)) {
    return {.exit_code = ExitCode::kUnreachable,
            .status = absl::Status(status.code(), absl::StrCat("cannot reach the daemon at ",
                                                               target, ": ", status.message())),
            .hint = UnreachableHint(session, status)};
  }
  Failure failure{.exit_code = ExitCode::kFailed, .status = status};
  // The general advice for the reason. More precise advice below replaces it.
  if (is_from_daemon) failure.hint = std::string(FactsOf(ReasonFromText(detail->reason())).advice);
  const std::optional<absl::Duration> pushback = RetryPushbackOf(status);
  if (pushback && *pushback != absl::InfiniteDuration()) {
    failure.hint = absl::StrCat("try again in ", absl::FormatDuration(*pushback));
  } else if (absl::IsUnauthenticated(status)) {
    failure.hint = "identify yourself with --token-file, OPSERVE_TOKEN or --tls-cert and --tls-key";
  } else if (absl::IsDeadlineExceeded(status)) {
    failure.hint = absl::StrCat("--timeout was ", absl::FormatDuration(session.timeout),
                                is_connected ? "" : ", and there is no connection yet");
  }
  return failure;
}

std::variant<v1::OperatorDescriptor, Failure> FindOperator(Client& client, const Session& session,
                                                           const std::string& name) {
  const auto operators = client.ListOperators({}, session.timeout);
  if (!operators.ok()) return CallFailure(session, client, operators.status());
  std::vector<std::string> names;
  for (const v1::OperatorDescriptor& descriptor : *operators) {
    if (descriptor.name() == name) return descriptor;
    names.push_back(descriptor.name());
  }
  return UsageFailure(absl::NotFoundError(UnknownName("operator", name, names)),
                      "see \"opserve ops\"");
}

}  // namespace opserve::cli
