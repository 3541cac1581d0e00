// Accepts the connections of listeners and hands them to a gRPC server, up to a number.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/access/connection_gate.h"
#include "server/access/file_descriptor.h"
#include "server/access/listener.h"

namespace opserve::server {

class ConnectionAcceptor {
 public:
  // More connections than `max_connections` at once are closed as soon as they are made.
  explicit ConnectionAcceptor(uint32_t max_connections) : max_connections_(max_connections) {}

  // Ends the thread and closes the listeners; connections that were handed over live on.
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // Before Start.
  void Add(Listener listener, std::unique_ptr<ConnectionGate> gate);

  // Accepts from now on, in a thread of its own; the gRPC server must have been started.
  // kResourceExhausted: the system has no more file descriptors.
  absl::Status Start();

  // There are now; were turned away so far. Thread-safe.
  uint32_t connections() const { return connections_.load(std::memory_order_relaxed); }
  uint64_t rejected() const { return rejected_.load(std::memory_order_relaxed); }

 private:
  struct Door {
    Listener listener;
    std::unique_ptr<ConnectionGate> gate;
  };

  void Run();
  void Accept(int socket, Door& door);
  void TurnAwayWithSpare(int socket);
  bool Watch(int fd);

  const uint32_t max_connections_;
  std::vector<std::unique_ptr<Door>> doors_;
  absl::flat_hash_map<int, Door*> door_of_;  // by listening socket
  FileDescriptor epoll_;
  FileDescriptor stop_;
  // Of the thread.
  FileDescriptor spare_;
  absl::flat_hash_map<int, FileDescriptor> watched_;  // duplicates of connections, by number
  std::atomic<uint32_t> connections_ = 0;
  std::atomic<uint64_t> rejected_ = 0;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace opserve::server
