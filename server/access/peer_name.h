// How the peer of an accepted connection is told from others when connections are counted.
#pragma once

#include <string>

namespace opserve::server {

// "uid 1000" for a Unix socket's peer. For TCP its address; of an IPv6 address the first half,
// since a single machine usually has all addresses of such a network. Empty: the system does not
// tell.
std::string PeerNameOf(int fd);

}  // namespace opserve::server
