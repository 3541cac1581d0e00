// Descriptors of clients' connections, and what the daemon knows of each.
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

namespace opserve::server {

// What is known of a connection, in one word, so that facts about a connection that is over never
// reach its successor. Thread-safe, without locks.
class ConnectionFacts {
 public:
  // Begins the next connection; the facts of the last are gone. Returns its generation.
  uint32_t Begin();
  // Ends the connection, whichever it is.
  void End();

  bool is_open() const { return (word() & kOpen) != 0; }
  uint32_t generation() const { return static_cast<uint32_t>(word() >> 32); }
  bool is_identified() const { return (word() & (kOpen | kIdentified)) == (kOpen | kIdentified); }
  bool is_health_checked() const {
    return (word() & (kOpen | kHealthChecked)) == (kOpen | kHealthChecked);
  }
  // Calls that were identified; begins at 0 again after 2^29.
  uint32_t identified_calls() const { return static_cast<uint32_t>(word()) / kOneCall; }

  // Record a fact about the connection of that generation; nothing if it is over.
  void AddIdentifiedCall(uint32_t generation);
  void SetHealthChecked(uint32_t generation);

 private:
  static constexpr uint64_t kOpen = 1;
  static constexpr uint64_t kHealthChecked = 2;
  static constexpr uint64_t kIdentified = 4;
  static constexpr uint32_t kOneCall = 8;

  uint64_t word() const { return word_.load(std::memory_order_acquire); }

  std::atomic<uint64_t> word_ = 0;  // generation << 32 | calls * kOneCall | flags
};

struct SocketEntry {
  ConnectionFacts facts;
  bool is_unix = false;  // written before the connection is handed over
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

}  // namespace socket_table

}  // namespace opserve::server
