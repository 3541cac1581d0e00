// Which connection a call came on, for bounds that hold per connection.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace opserve::server {

// A number for the connection of a call, ServerContext::peer(), and its tenant: behind a proxy
// several tenants may share a connection. Never 0. A peer's name is that of one connection, and the
// hash is seeded anew in each process, so clients cannot choose the ones that they share a number
// with.
inline uint64_t ConnectionKey(absl::string_view peer, uint32_t tenant) {
  return std::max<uint64_t>(absl::HashOf(peer, tenant), 1);
}

// Whether the peer is on this machine, at a Unix socket of the daemon's.
inline bool IsLocal(absl::string_view peer) { return absl::StartsWith(peer, "unix:"); }

}  // namespace opserve::server
