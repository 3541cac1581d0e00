// The sockets beside those for calls on which clients register shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/config.h"
#include "server/net/connection_slots.h"
#include "server/net/file_descriptor.h"
#include "server/net/listener.h"
#include "server/net/spare_descriptor.h"
#include "server/shm/shared_memory_session.h"

namespace opserve::server {

// One thread serves all connections, a packet of each in turn, and never waits for a peer: one that
// does not take its answers, or does not identify itself in time, is disconnected.
class SharedMemoryServer {
 public:
  // Serves on `listeners`, sockets of SOCK_SEQPACKET, with the limits on connections that `config`
  // has for calls. kResourceExhausted: the system has no more file descriptors.
  static absl::StatusOr<std::unique_ptr<SharedMemoryServer>> Start(
      const Config& config, std::vector<Listener> listeners,
      const SharedMemorySession::Parts& parts);

  // Ends the thread and all connections, and with them their regions.
  ~SharedMemoryServer();
  SharedMemoryServer(const SharedMemoryServer&) = delete;
  SharedMemoryServer& operator=(const SharedMemoryServer&) = delete;

 private:
  struct Connection {
    FileDescriptor socket;
    std::unique_ptr<SharedMemorySession> session;
    ConnectionSlots::Id id = 0;
  };

  SharedMemoryServer(std::vector<Listener> listeners, const SharedMemorySession::Parts& parts,
                     const ConnectionSlots::Limits& limits)
      : parts_(parts), listeners_(std::move(listeners)), slots_(limits) {}
  absl::Status Watch();
  bool Await(int fd);

  void Run();
  void Accept(int socket, size_t listener);
  void End(ConnectionSlots::Id id);
  // False: the connection is over.
  bool Serve(Connection& connection);
  void EndSilent(absl::Time now);

  const SharedMemorySession::Parts parts_;
  std::vector<Listener> listeners_;
  FileDescriptor epoll_;
  FileDescriptor stop_;
  // Of the thread.
  SpareDescriptor spare_;
  absl::flat_hash_map<int, Connection> connections_;  // by number of the socket
  ConnectionSlots slots_;
  absl::flat_hash_map<ConnectionSlots::Id, int> sockets_;  // of connections
  std::thread thread_;                                     // last: uses all of the above
};

}  // namespace opserve::server
