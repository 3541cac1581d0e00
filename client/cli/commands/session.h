// The state that all commands share: the flags, the terminal and the daemon.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "client/cli/text/failure.h"
#include "client/cli/text/output.h"
#include "client/cpp/client.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// The source of the daemon's address.
enum class TargetSource { kDefault, kEnvironment, kFlag };

struct Session {
  Terminal& terminal;
  std::string target;
  TargetSource target_source = TargetSource::kDefault;
  absl::Duration timeout = kDefaultTimeout;
  OutputFormat format = OutputFormat::kText;
  ConnectOptions connection = {};
};

// A command with its own arguments, ready to run. Nothing: it succeeded.
using Command = std::function<std::optional<Failure>(Session&)>;

struct DefaultTarget {
  std::string target;
  TargetSource source;
};

// Where the daemon listens if no flag says otherwise: Client::DefaultTarget, and its source.
DefaultTarget FindDefaultTarget();

// The value of $OPSERVE_TOKEN, or "".
std::string DefaultToken();

// The value of $TRACEPARENT, or "": the trace that the calling script or pipeline is part of.
std::string DefaultTraceParent();

// Whether an array can go to standard output. kInvalidArgument: that is a terminal, or takes a JSON
// document.
absl::Status CheckArrayOutput(const Session& session);

// A client of session.target; it connects with its first call.
std::variant<std::unique_ptr<Client>, Failure> Connect(const Session& session);

// The failure that a call's error amounts to.
Failure CallFailure(const Session& session, const Client& client, const absl::Status& status);

// The same for a call to `target`, to which there is a connection now or not.
Failure CallFailure(const Session& session, const std::string& target, bool is_connected,
                    const absl::Status& status);

// The catalogue's entry of `name`; if there is none, a failure that tells the closest name.
std::variant<v1::OperatorDescriptor, Failure> FindOperator(Client& client, const Session& session,
                                                           const std::string& name);

}  // namespace opserve::cli
