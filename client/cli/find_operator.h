// Operators by the names that people type.
#pragma once

#include <string>
#include <variant>

#include "client/cli/session.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// The catalogue's entry of `name`; if there is none, a failure that tells the closest name.
std::variant<v1::OperatorDescriptor, Failure> FindOperator(Client& client, const Session& session,
                                                           const std::string& name);

}  // namespace opserve::cli
