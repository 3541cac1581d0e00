#include "client/cli/admin_connection.h"

#include <utility>

#include "CLI/CLI.hpp"

namespace opserve::cli {
namespace {

constexpr char kUnreachableHint[] =
    "start the daemon with \"opserved\", or say where it listens for administrators with "
    "--admin-target";

}  // namespace

void AddAdminTargetFlag(CLI::App* command, std::string* target) {
  command
      ->add_option("--admin-target", *target,
                   "Where the daemon listens for administrators; default: the path of --target's "
                   "socket with .admin behind it")
      ->type_name("unix:PATH|HOST:PORT");
}

std::variant<AdminConnection, Failure> ConnectAdmin(const Session& session,
                                                    const std::string& target) {
  AdminConnection connection{target.empty() ? AdminTargetOf(session.target) : target, nullptr};
  auto client = AdminClient::Connect(connection.target, session.connection);
  if (!client.ok()) return UsageFailure(client.status(), "see \"opserve help admin\"");
  connection.client = *std::move(client);
  return connection;
}

Failure AdminFailure(const Session& session, const AdminConnection& connection,
                     const absl::Status& status) {
  Failure failure =
      CallFailure(session, connection.target, connection.client->IsConnected(), status);
  if (failure.exit_code == ExitCode::kUnreachable) failure.hint = kUnreachableHint;
  return failure;
}

}  // namespace opserve::cli
