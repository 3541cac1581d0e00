// Accepts the connections of listeners, hands them to a gRPC server while slots are free
// (net/connection_slots.h), and ends those with silent peers or peers that stopped reading.
//
// gRPC does neither: while the socket takes no more bytes, gRPC keeps the unsent bytes, and
// finished calls with them. A full socket has room again as soon as the peer has read part of its
// buffer, so room is the sign of a reader. The sign works for every kind of socket. The number of
// waiting bytes (SIOCOUTQ) does not: it stays the same for a peer that reads as fast as gRPC
// writes; and TCP_USER_TIMEOUT helps TCP alone. A socket is watched only after it was found full,
// so a busy connection costs an occasional look.
//
// A connection has one descriptor, and it is gRPC's: the acceptor remembers its number and asks the
// socket table whether the connection is still there. So a connection costs the process one
// descriptor, and the acceptor learns of most ends by an event, of the others within a second.
//
// New connections of a peer that flooded wait here, unread, until the pacer lets them in
// (net/connection_pacer.h). They have their slots, as silent ones.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/net/connection_counters.h"
#include "server/net/connection_gate.h"
#include "server/net/connection_ledger.h"
#include "server/net/connection_pacer.h"
#include "server/net/connection_slots.h"
#include "server/net/file_descriptor.h"
#include "server/net/listener.h"
#include "server/net/socket_table.h"
#include "server/net/spare_descriptor.h"

namespace opserve::server {

class ConnectionAcceptor {
 public:
  struct Options {
    ConnectionSlots::Limits limits;
    // Counts all connections as identified: only trusted users can connect.
    bool trusts_peers = false;
    // A connection is ended if its socket takes no bytes for this long, a quarter of it more at
    // most.
    absl::Duration stall_timeout;
  };

  ConnectionAcceptor(const Options& options, ConnectionLedger& ledger)
      : options_(options), ledger_(ledger), slots_(options.limits) {}

  // Stop; connections that were handed over live on.
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // Before Start.
  void Add(Listener listener, std::unique_ptr<ConnectionGate> gate);

  // Accepts from now on, in a thread of its own; the gRPC server must have been started.
  // kResourceExhausted: the system has no more file descriptors.
  absl::Status Start();

  // Ends the thread, and closes the listeners and connections that gRPC has not got yet. The others
  // live on, and are not looked after any more.
  void Stop();
  // After Stop: waits until the other ends have taken all that was sent to them, until `deadline`
  // at most.
  void AwaitTaken(absl::Time deadline) const;
  // After Stop: ends all connections, so that nothing sent from now on reaches a client.
  void EndConnections();

  // There are now; were turned away, and were ended for taking no bytes, so far. Thread-safe.
  uint32_t connections() const;
  uint64_t rejected() const;
  uint64_t stalled() const;
  // Of all Unix sockets, and of all others. Thread-safe.
  const ConnectionCounters& unix_counters() const { return unix_counters_; }
  const ConnectionCounters& tcp_counters() const { return tcp_counters_; }

 private:
  using Id = ConnectionSlots::Id;
  struct Door {
    std::optional<Listener> listener;  // until Stop
    std::unique_ptr<ConnectionGate> gate;
    ConnectionCounters& counters;
    std::vector<SocketName> leaving;  // that were ended, and that gRPC has not closed yet
    uint32_t waiting = 0;             // for their turn
  };
  // That gRPC has not got yet.
  struct NewConnection {
    FileDescriptor fd;
    int socket = -1;  // that it came from
    Door* door = nullptr;
    std::string peer;
  };
  struct Connection {
    SocketName socket;
    Door* door = nullptr;
    absl::Time full_since = absl::InfiniteFuture();
  };

  void Run();
  void HandleEvent(Id id, uint32_t events);
  void Accept(int socket, size_t number, absl::Time now);
  // Whether the connection may enter now, or may wait for it.
  ConnectionPacer::Turn TurnOf(const std::string& peer, absl::Time now);
  void Enqueue(Id id, NewConnection connection);
  // Lets connections enter that have reached their turn.
  void AdmitDue(absl::Time now);
  // Takes a connection out of the queue; it keeps its slot.
  NewConnection Dequeue(Id id);
  // `operation`: adds the descriptor to epoll, or modifies it there.
  void HandOver(Id id, NewConnection connection, bool is_paced, int operation);
  // Waits for the end of a connection and, if it is full, for room.
  bool Await(Id id, const Connection& connection, int operation);

  std::optional<ConnectionSlots::Rank> RankOf(Id id) const;
  // Whether too many connections of the door were ended that gRPC still has.
  static bool IsLeavingFull(Door& door);
  // Ends the connection itself.
  void ShutDown(const Connection& connection, bool discards_unsent);
  // Ends a connection, or one that waits, and counts it there.
  void End(Id id, std::atomic<uint64_t> ConnectionCounters::*reason);
  // The connection is over, or is about to be.
  void Forget(Id id);

  bool IsTaken() const;
  void EndOverdue(absl::Time now);
  void EndStalled(absl::Time now);
  // Finds out which connections are over, and publishes how many there are.
  void Sweep();
  void PublishCounts();

  const Options options_;
  ConnectionLedger& ledger_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::pair<int, size_t>> sockets_;  // that listen, and the numbers of their doors
  FileDescriptor epoll_;
  FileDescriptor stop_;
  // Takes a connection's place while it is shut down, so that its number cannot become another's
  // meanwhile; otherwise the same as stop_.
  FileDescriptor hold_;
  ConnectionCounters unix_counters_;
  ConnectionCounters tcp_counters_;
  // Of the thread.
  SpareDescriptor spare_;
  ConnectionSlots slots_;
  ConnectionPacer pacer_;
  absl::flat_hash_map<Id, Connection> connections_;
  absl::flat_hash_map<Id, NewConnection> waiting_;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace opserve::server
