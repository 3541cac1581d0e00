// How commands reach the daemon's administration.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "client/cli/session.h"
#include "client/cpp/admin_client.h"

namespace opserve::cli {

// Adds --admin-target to a command; *target stays "" without it.
void AddAdminTargetFlag(CLI::App* command, std::string* target);

// A connection to one daemon's admin listener, and where that is.
struct AdminConnection {
  std::string target;
  std::unique_ptr<AdminClient> client;
};

// `target` is what --admin-target says; if "", the listener is where session.target suggests. The
// connection is made with the first call.
std::variant<AdminConnection, Failure> ConnectAdmin(const Session& session,
                                                    const std::string& target);

// The failure that a call's error amounts to.
Failure AdminFailure(const Session& session, const AdminConnection& connection,
                     const absl::Status& status);

}  // namespace opserve::cli
