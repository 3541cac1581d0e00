// Which connection a call came on, for bounds that hold per connection.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/hash/hash.h"
#include "grpcpp/server_context.h"

namespace opserve::server {

// A number for the call's connection and its tenant: behind a proxy several tenants may share a
// connection. Never 0. A peer's name is that of one connection, and the hash is seeded anew in each
// process, so clients cannot choose the ones that they share a number with.
inline uint64_t ConnectionKey(const grpc::ServerContextBase& rpc, uint32_t tenant) {
  return std::max<uint64_t>(absl::HashOf(rpc.peer(), tenant), 1);
}

}  // namespace opserve::server
