// The flags about trust in the daemon and the caller's credentials.
#pragma once

#include "CLI/CLI.hpp"
#include "client/cli/commands/session.h"

namespace opserve::cli {

// Adds --tls, its details and --token-file to the program's flags; they fill session->connection.
void AddConnectionFlags(CLI::App& app, Session* session);

}  // namespace opserve::cli
