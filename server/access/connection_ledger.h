// What the daemon knows of clients' connections: whether a call of theirs was identified, and
// whether what they send stays in bounds.
#pragma once

#include "absl/strings/string_view.h"

namespace opserve::server {

// Thread-safe. Connections may outlive it.
class ConnectionLedger {
 public:
  ConnectionLedger() = default;
  ConnectionLedger(const ConnectionLedger&) = delete;
  ConnectionLedger& operator=(const ConnectionLedger&) = delete;

  // `fd` is a connection that gRPC gets next: the descriptor itself, not a duplicate. It is in the
  // ledger until it is closed, by whichever thread or library. (gRPC reads on after the peer's end
  // is seen at a duplicate.) A number beyond socket_table::kMaxDescriptors is shut down, since
  // nothing could guard it. From here on getpeername(fd) gives the ledger's own name.
  void Register(int fd);

  // For a connection that gRPC does not get after all; close() does it for all others.
  void Forget(int fd);

  // A call was found to be a tenant's; a health check was answered. `peer`: of the call,
  // ServerContext::peer(). Nothing happens if the connection is over or is not the ledger's.
  void MarkIdentified(absl::string_view peer);
  void MarkHealthChecked(absl::string_view peer);

  // Of the connection of `fd`, which Register was told; false if it is over.
  bool IsIdentified(int fd) const;
  // Identified, or it had an answer to a health check.
  bool HasHadAnswer(int fd) const;
  // The same as IsIdentified for a call's connection.
  bool IsIdentified(absl::string_view peer) const;
};

}  // namespace opserve::server
