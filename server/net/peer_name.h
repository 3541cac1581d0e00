// How the peer of an accepted connection is told from others when connections are counted.
#pragma once

#include "server/net/connection_slots.h"

namespace opserve::server {

// A Unix socket's user, or the address of a TCP connection; of an IPv6 address the first half,
// since a single machine usually has all addresses of such a network. An empty name: the system
// does not tell. To be asked before a ConnectionLedger gives the connection a name of its own.
ConnectionSlots::Peer PeerOf(int fd);

}  // namespace opserve::server
