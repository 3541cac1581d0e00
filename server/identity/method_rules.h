// Maps every method of every listener to the callers it admits. A method without a rule is answered
// as if it did not exist, so that forgetting a rule opens nothing.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace opserve::server {

enum class Access {
  kAnybody,        // also callers without credentials: balancers that ask for the daemon's health
  kCaller,         // any caller the listener is for
  kTenant,         // callers that belong to a tenant, on the listeners for clients
  kPeer,           // daemons that may deposit tensors, on the same listeners
  kAdministrator,  // the daemon's own user and root, on the admin listener
};

// `path`: as on the wire, "/opserve.v1.OperatorService/Execute". None: no rule.
std::optional<Access> AccessTo(absl::string_view path);

}  // namespace opserve::server
