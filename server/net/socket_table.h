// Descriptors of clients' connections, and the daemon's facts about each.
//
// gRPC reads its sockets by functions of the C library and of OpenSSL that the dynamic linker
// resolves. socket_table.cc defines functions of these names; those of the executable come first,
// so the daemon sees each call. They look the descriptor up here, and pass descriptors that are not
// in the table (the metrics endpoint, files, clients in the same process) on untouched.
//
// Entries are made when a descriptor's number is first used and reused by later connections of that
// number, never freed: a look-up takes no lock, and no pointer dangles. A generation tells the
// connections of one number apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/net/connection_facts.h"
#include "server/net/connection_guard.h"

namespace opserve::server {

struct SocketEntry {
  ConnectionFacts facts;
  ConnectionGuard guard;
  std::atomic<bool> is_unix = false;
};

// The connection of one descriptor, while it lives.
struct SocketName {
  int fd = -1;
  uint32_t generation = 0;
};

namespace socket_table {

// Descriptors from here on have no place in the table.
inline constexpr int kMaxDescriptors = 1 << 20;

// The entry of `fd`, made if there is none; null: the number is beyond the table. Thread-safe.
SocketEntry* FindOrMake(int fd);
// Null: none was made.
SocketEntry* Find(int fd);

// Calls know their connection only by the peer's address, which on Unix sockets is the same for all
// connections, and on TCP for connections to two listeners. So gRPC is told an address that the
// table makes up: its text names descriptor and generation. It begins with "unix:" on Unix sockets
// alone.
std::string PeerText(const SocketName& name, bool is_unix);
// nullopt: no such text.
std::optional<SocketName> ParsePeer(absl::string_view peer);

// The connection that received this number from its TLS client, and has no known session yet.
std::optional<SocketName> FindSession(const ClientRandom& random);

}  // namespace socket_table

}  // namespace opserve::server
