// Internal: how connections are encrypted and callers introduced.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/cpp/connect_options.h"
#include "client/cpp/target.h"
#include "grpcpp/security/credentials.h"

namespace opserve {

// The credentials that a channel to `target` needs for options.tls.
//
// kInvalidArgument: a file cannot be read or lacks its counterpart; the daemons have no name that
// their certificates could be checked for; or options.token is not one, or would cross a network in
// the clear.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(
    const Target& target, const ConnectOptions& options);

}  // namespace opserve
