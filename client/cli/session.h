// What all commands share: the flags, the terminal and the daemon.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "client/cli/failure.h"
#include "client/cli/output.h"
#include "client/cpp/client.h"

namespace opserve::cli {

struct Session {
  Terminal& terminal;
  std::string target;
  absl::Duration timeout = kDefaultTimeout;
  OutputFormat format = OutputFormat::kText;
};

// A command with its own arguments, ready to run. Nothing: it succeeded.
using Command = std::function<std::optional<Failure>(Session&)>;

// Where the daemon listens if no one says otherwise: $OPSERVE_TARGET, or opserve/opserve.sock in
// $XDG_RUNTIME_DIR, or /tmp/opserve-UID/opserve.sock.
std::string DefaultTarget();

// A client of session.target; it connects with its first call.
std::variant<std::unique_ptr<Client>, Failure> Connect(const Session& session);

// The failure that a call's error amounts to.
Failure CallFailure(const Session& session, const Client& client, const absl::Status& status);

}  // namespace opserve::cli
