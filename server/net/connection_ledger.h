// Keeps watch over clients' connections: whether a call was identified on them, and whether their
// input stays in bounds. Connections that flood are ended, logged and counted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/net/connection_guard.h"

namespace opserve::server {

// Thread-safe. Connections may outlive it; they are guarded on, and no longer counted.
class ConnectionLedger {
 public:
  struct Options {
    Http2Limits limits = {};
    bool has_tls = false;  // on every connection that is no Unix socket's
    // Nothing is inspected: only the daemon's user can connect.
    bool trusts_peers = false;
  };

  ConnectionLedger() : ConnectionLedger(Options()) {}
  explicit ConnectionLedger(const Options& options);
  ~ConnectionLedger();
  ConnectionLedger(const ConnectionLedger&) = delete;
  ConnectionLedger& operator=(const ConnectionLedger&) = delete;

  // `fd` is a connection that gRPC gets next: the descriptor itself, not a duplicate. It is in the
  // ledger until it is closed, by whichever thread or library. (gRPC reads on after the peer's end
  // is seen at a duplicate.) A number beyond socket_table::kMaxDescriptors is shut down, since
  // nothing could guard it. From here on getpeername(fd) gives the ledger's own name. `peer`: its
  // ConnectionSlots::Peer::name. `is_paced`: the peer flooded before, so the connection may send
  // little until a call is identified.
  void Register(int fd, std::string peer = "", bool is_paced = false);

  // For a connection that gRPC does not get after all; close() does it for all others.
  void Forget(int fd);

  // The daemon is about to end the connection of `fd`, which Register was told: it does not count
  // as its peer's waste.
  void Excuse(int fd);

  // A call was found to be a tenant's; a health check was answered. `peer`: of the call,
  // ServerContext::peer(). Nothing happens if the connection is over or is not in the ledger.
  void MarkIdentified(absl::string_view peer);
  void MarkHealthChecked(absl::string_view peer);

  // Of the connection of `fd`, which Register was told; false if it is over.
  bool IsIdentified(int fd) const;
  // Identified, or it had an answer to a health check.
  bool HasHadAnswer(int fd) const;
  // The same as IsIdentified for a call's connection.
  bool IsIdentified(absl::string_view peer) const;

  // Connections of a peer that got nothing.
  struct Waste {
    std::string peer;
    absl::Time flooded_at = absl::InfinitePast();  // when one was last ended for a flood
    double unserved = 0;  // price of those that it closed before a call was identified
  };
  // Since the last time, as far as there was room.
  std::vector<Waste> TakeWaste();

  // Connections ended so far for `flood`.
  uint64_t ended(Flood flood) const;

 private:
  struct End {
    Flood flood = Flood::kNone;
    std::string client;  // its address or user id
  };
  // Receives the reports of guards, as long as there is a ledger.
  struct Reports {
    std::array<std::atomic<uint64_t>, kNumFloods> ended = {};
    absl::Mutex mutex;
    std::vector<End> unlogged ABSL_GUARDED_BY(mutex);
    std::vector<Waste> waste ABSL_GUARDED_BY(mutex);
    uint64_t suppressed ABSL_GUARDED_BY(mutex) = 0;
    bool has_news ABSL_GUARDED_BY(mutex) = false;
    bool is_closing ABSL_GUARDED_BY(mutex) = false;
  };

  static void Report(Reports& reports, int fd, const std::string& peer, Flood flood);
  // The entry of `peer`, made if there is none; null: it has no name, or there is no room.
  static Waste* FindOrMakeWaste(Reports& reports, const std::string& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reports.mutex);
  // Logs ended connections, and gives their memory back.
  void Run();

  const bool has_tls_;
  const std::shared_ptr<Reports> reports_;
  const std::shared_ptr<const GuardRules> rules_;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace opserve::server
