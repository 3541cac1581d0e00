// Accepts the connections of listeners and hands them to a gRPC server, up to a number, and ends
// those whose peers have stopped reading.
//
// gRPC does not: while the socket takes no more bytes, what it has to write stays, and calls that
// are over, too. Whether the socket takes more is what tells: it does as soon as the peer has read
// a part of what is in the socket's buffer. That holds for every kind of socket, while how many
// bytes wait there (SIOCOUTQ) stays the same for a peer that reads as fast as gRPC writes, and
// TCP_USER_TIMEOUT helps TCP alone. A socket is watched for it only after it was found full, so a
// busy connection costs a look now and then.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/connection_gate.h"
#include "server/access/connection_ledger.h"
#include "server/access/file_descriptor.h"
#include "server/access/listener.h"
#include "server/access/spare_descriptor.h"

namespace opserve::server {

class ConnectionAcceptor {
 public:
  // More connections than `max_connections` at once are closed as soon as they are made. One is
  // ended if its socket takes no bytes for `stall_timeout`, a quarter of it more at most.
  // `ledger`: gets every connection; null: they are not guarded. Outlives the acceptor.
  ConnectionAcceptor(uint32_t max_connections, absl::Duration stall_timeout,
                     ConnectionLedger* ledger)
      : max_connections_(max_connections), stall_timeout_(stall_timeout), ledger_(ledger) {}

  // Stop; connections that were handed over live on.
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // Before Start.
  void Add(Listener listener, std::unique_ptr<ConnectionGate> gate);

  // Accepts from now on, in a thread of its own; the gRPC server must have been started.
  // kResourceExhausted: the system has no more file descriptors.
  absl::Status Start();

  // Ends the thread and closes the listeners. Connections live on, and are not looked after any
  // more.
  void Stop();
  // After Stop: waits until the other ends have taken all that was sent to them, until `deadline`
  // at most.
  void AwaitTaken(absl::Time deadline) const;
  // After Stop: ends all connections, so that nothing sent from now on reaches a client.
  void EndConnections() const;

  // There are now; were turned away, and were ended, so far. Thread-safe.
  uint32_t connections() const { return connections_.load(std::memory_order_relaxed); }
  uint64_t rejected() const { return rejected_.load(std::memory_order_relaxed); }
  uint64_t stalled() const { return stalled_.load(std::memory_order_relaxed); }

 private:
  struct Door {
    std::optional<Listener> listener;  // until Stop
    std::unique_ptr<ConnectionGate> gate;
  };
  struct Connection {
    FileDescriptor duplicate;
    absl::Time full_since = absl::InfiniteFuture();
  };

  void Run();
  void HandleEvent(int fd, uint32_t events);
  void Accept(int socket, Door& door);
  bool Watch(int fd);
  // Waits for the end of a connection and, if it is full, for room.
  bool Await(int fd, const Connection& connection, int operation);
  void EndStalled(absl::Time now);
  bool IsTaken() const;

  const uint32_t max_connections_;
  const absl::Duration stall_timeout_;
  ConnectionLedger* const ledger_;
  std::vector<std::unique_ptr<Door>> doors_;
  absl::flat_hash_map<int, Door*> door_of_;  // by listening socket
  FileDescriptor epoll_;
  FileDescriptor stop_;
  // Of the thread.
  SpareDescriptor spare_;
  absl::flat_hash_map<int, Connection> watched_;  // by number of the duplicate
  std::atomic<uint32_t> connections_ = 0;
  std::atomic<uint64_t> rejected_ = 0;
  std::atomic<uint64_t> stalled_ = 0;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace opserve::server
