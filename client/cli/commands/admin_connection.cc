#include "client/cli/commands/admin_connection.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace opserve::cli {
namespace {

constexpr char kFlag[] = "--admin-target";
constexpr char kUnreachableHint[] =
    "start the daemon with \"opserved\", or say where it listens for administrators with "
    "--admin-target";

// Whether it is the Unix socket of one daemon, which is on this machine then.
bool IsOneSocket(const std::string& target) {
  // Several sockets are several daemons, and administration is of one.
  return absl::StartsWith(target, "unix:") && !absl::StrContains(target, ',');
}

std::string SocketBeside(const std::string& target) { return absl::StrCat(target, ".admin"); }

// Advice on the target to name instead of `target`.
std::string AdminTargetHint(const std::string& target) {
  if (IsOneSocket(target)) return absl::StrCat("say ", kFlag, "=", SocketBeside(target));
  return absl::StrCat("run it on the daemon's own machine, or say ", kFlag,
                      "=unix:PATH, where the daemon's --admin_listen is");
}

}  // namespace

void AddAdminTargetFlag(CLI::App* command, std::string* target) {
  command
      ->add_option(kFlag, *target,
                   "Where the daemon listens for administrators; default: the path of this user's "
                   "socket, or of the one that OPSERVE_TARGET names, with .admin behind it")
      ->type_name("unix:PATH|HOST:PORT");
}

bool IsAdministrative(const CLI::App& command) {
  // The admin command itself has the flag in its subcommands.
  return command.get_option_no_throw(kFlag) != nullptr || command.get_name() == "admin";
}

absl::StatusOr<std::string> AdminTargetOf(const Session& session) {
  if (session.target_source == TargetSource::kFlag) {
    return absl::InvalidArgumentError(absl::StrCat("--target=", session.target,
                                                   " is where clients connect; administrators name "
                                                   "the daemon's administration socket, with ",
                                                   kFlag));
  }
  if (!IsOneSocket(session.target)) {
    return absl::InvalidArgumentError(absl::StrCat("OPSERVE_TARGET is ", session.target,
                                                   ", where clients connect; the daemon's "
                                                   "administration socket must be named, with ",
                                                   kFlag));
  }
  return SocketBeside(session.target);
}

std::variant<AdminConnection, Failure> ConnectAdmin(const Session& session,
                                                    const std::string& target) {
  // --target beside --admin-target is refused as well: one of them is a mistake.
  const bool is_named = !target.empty() && session.target_source != TargetSource::kFlag;
  const absl::StatusOr<std::string> socket =
      is_named ? absl::StatusOr<std::string>(target) : AdminTargetOf(session);
  if (!socket.ok()) return UsageFailure(socket.status(), AdminTargetHint(session.target));
  AdminConnection connection{.socket = *socket, .client = nullptr};
  auto client = AdminClient::Connect(connection.socket, session.connection);
  if (!client.ok()) return UsageFailure(client.status(), "see \"opserve help admin\"");
  connection.client = *std::move(client);
  return connection;
}

std::string DaemonText(const std::string& daemon, const std::string& socket) {
  return absl::StrCat("daemon ", daemon, daemon.empty() ? "" : " ", "at ", socket);
}

Failure AdminFailure(const Session& session, const AdminConnection& connection,
                     const absl::Status& status) {
  Failure failure =
      CallFailure(session, connection.socket, connection.client->IsConnected(), status);
  if (failure.exit_code == ExitCode::kUnreachable) {
    failure.hint = kUnreachableHint;
  } else {
    // Administrators have several daemons; the failure says which one it was.
    failure.source = DaemonText(connection.daemon, connection.socket);
  }
  return failure;
}

}  // namespace opserve::cli
