// Inspects the bytes that a connection receives, in plaintext or decrypted, and ends floods.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/net/client_hello.h"
#include "server/net/connection_facts.h"
#include "server/net/http2_inspector.h"

namespace opserve::server {

// Shared by the guards of a ledger's connections. They may outlive the ledger.
struct GuardRules {
  Http2Limits limits;
  Http2Limits paced_limits;  // for connections of peers that flooded before
  // Told of each connection that is ended, by the thread that read from it. Must not block. `peer`:
  // as Begin was told; empty if the connection sent no HTTP/2 at all, as a misdirected probe does.
  std::function<void(int fd, const std::string& peer, Flood flood)> ended;
  // Told of each other connection that is closed before a call of it was identified, and of those
  // without HTTP/2, with the price in refused streams. The same holds.
  std::function<void(const std::string& peer, double price)> unserved;
};

// Thread-safe. A connection is read by one thread at a time, but not always by the same one, and
// gRPC orders them by atomics that ThreadSanitizer does not see; the lock is never contended.
class ConnectionGuard {
 public:
  struct Connection {
    bool is_tls = false;    // received bytes have to be decrypted first
    bool is_paced = false;  // its peer flooded before
    std::string peer;       // ConnectionSlots::Peer::name
  };

  // Begins with the next connection. Without `rules` it may send anything.
  void Begin(std::shared_ptr<const GuardRules> rules, Connection connection)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // `message` has `size` bytes from recvmsg. False: the connection is ended, and the bytes must be
  // dropped unread.
  bool Received(int fd, const ConnectionFacts& facts, const msghdr& message, size_t size)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The same for bytes that were decrypted.
  bool Decrypted(int fd, const ConnectionFacts& facts, absl::string_view bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the TLS session with this number to be that of this connection, if it is, and no other
  // was before.
  bool Claims(const ClientRandom& random) ABSL_LOCKS_EXCLUDED(mutex_);

  // The daemon ends the connection for its own reasons, which is no waste of its peer's.
  void Excuse() ABSL_LOCKS_EXCLUDED(mutex_);
  // The connection is about to be closed.
  void Closes(const ConnectionFacts& facts) ABSL_LOCKS_EXCLUDED(mutex_);

  void Sent(size_t bytes) { sent_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }

 private:
  void Advance(const ConnectionFacts& facts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the connection if there is a flood; whether there is none.
  bool Judge(int fd, Flood flood) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportUnserved() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> sent_bytes_ = 0;
  std::atomic<bool> has_ended_ = false;
  // Whether Claims is worth the lock.
  std::atomic<bool> awaits_session_ = false;
  absl::Mutex mutex_;
  std::shared_ptr<const GuardRules> rules_ ABSL_GUARDED_BY(mutex_);
  std::optional<Http2Inspector> inspector_ ABSL_GUARDED_BY(mutex_);
  Connection connection_ ABSL_GUARDED_BY(mutex_);
  bool is_excused_ ABSL_GUARDED_BY(mutex_) = false;
  ClientHelloReader hello_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
