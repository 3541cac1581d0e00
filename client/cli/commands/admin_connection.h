// How commands reach the daemon's administration.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/commands/session.h"
#include "client/cpp/admin_client.h"

namespace opserve::cli {

// Adds --admin-target to a command; *target stays "" without it.
void AddAdminTargetFlag(CLI::App* command, std::string* target);

// Whether --admin-target says where a command connects to, and --target has no meaning for it.
bool IsAdministrative(const CLI::App& command);

// Where the session's daemon listens for administrators: at the path of its Unix socket with
// ".admin" behind it, unless its flags say otherwise. kInvalidArgument: --target is given, which
// administrative commands do not take, or OPSERVE_TARGET names no Unix socket. Guessing would lead
// to the daemon of this machine.
absl::StatusOr<std::string> AdminTargetOf(const Session& session);

// A connection to one daemon's admin listener, and where that is.
struct AdminConnection {
  std::string socket;
  std::unique_ptr<AdminClient> client;
  std::string daemon = {};  // its name, as soon as it is known
};

// `target`: the value of --admin-target; if "", AdminTargetOf decides. The connection is made with
// the first call.
std::variant<AdminConnection, Failure> ConnectAdmin(const Session& session,
                                                    const std::string& target);

// Says which daemon it is: "daemon npu7 at unix:/run/opserve/opserve.sock.admin".
std::string DaemonText(const std::string& daemon, const std::string& socket);

// The failure that a call's error amounts to.
Failure AdminFailure(const Session& session, const AdminConnection& connection,
                     const absl::Status& status);

}  // namespace opserve::cli
