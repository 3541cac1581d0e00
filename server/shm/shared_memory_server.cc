#include "server/shm/shared_memory_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/net/connection_limits.h"
#include "server/net/peer_name.h"

namespace opserve::server {
namespace {

// How often silent connections are looked at.
constexpr int kLookPeriodMs = 1000;

// More than a request may have, so that it can be told that it has too many.
constexpr size_t kMaxDescriptors = 4;

// The server reports ranks as they change.
std::optional<ConnectionSlots::Rank> RankAsReported(ConnectionSlots::Id /*id*/) {
  return ConnectionSlots::Rank::kSilent;
}

struct Received {
  ssize_t size = 0;  // 0: the peer has closed its end; below 0: an error
  bool is_whole = true;
  absl::InlinedVector<FileDescriptor, kMaxDescriptors> descriptors;
};

Received Receive(int socket, std::array<char, SharedMemorySession::kMaxPacketBytes>* buffer) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec data = {buffer->data(), buffer->size()};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  Received received;
  received.size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received.size < 0) return received;
  // The kernel has closed the descriptors that did not fit.
  received.is_whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      // Owned at once, so that every way out closes them.
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      received.descriptors.emplace_back(fd);
    }
  }
  return received;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemoryServer>> SharedMemoryServer::Start(
    const Config& config, std::vector<Listener> listeners,
    const SharedMemorySession::Parts& parts) {
  const ConnectionSlots::Limits limits = ConnectionLimits(config, listeners.size());
  auto server = std::unique_ptr<SharedMemoryServer>(
      new SharedMemoryServer(std::move(listeners), parts, limits));
  OPSERVE_RETURN_IF_ERROR(server->Watch());
  server->thread_ = std::thread([server = server.get()] { server->Run(); });
  return server;
}

bool SharedMemoryServer::Await(int fd) {
  epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

absl::Status SharedMemoryServer::Watch() {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool is_complete = spare_.Open() && Await(stop_.get());
  for (const Listener& listener : listeners_) {
    // A listener on a path has one socket.
    is_complete = is_complete && Await(listener.sockets()[0].get());
  }
  if (is_complete) return absl::OkStatus();
  return absl::ResourceExhaustedError("no more file descriptors for shared memory");
}

SharedMemoryServer::~SharedMemoryServer() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void SharedMemoryServer::Run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), events.size(),
                   // Without silent connections nothing is due, and the thread sleeps.
                   slots_.NextOverdue() == absl::InfiniteFuture() ? -1 : kLookPeriodMs);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) return;
      const auto connection = connections_.find(fd);
      if (connection == connections_.end()) {
        const auto listener =
            std::find_if(listeners_.begin(), listeners_.end(),
                         [fd](const Listener& l) { return l.sockets()[0].get() == fd; });
        // None: of a connection that an event before this one has ended.
        if (listener != listeners_.end()) {
          Accept(fd, static_cast<size_t>(listener - listeners_.begin()));
        }
        continue;
      }
      if (!Serve(connection->second)) {
        End(connection->second.id);
      } else if (connection->second.session->is_identified()) {
        slots_.Raise(connection->second.id, ConnectionSlots::Rank::kIdentified);
      }
    }
    EndSilent(absl::Now());
  }
}

void SharedMemoryServer::Accept(int socket, size_t listener) {
  FileDescriptor fd(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() < 0) {
    if (errno == EMFILE || errno == ENFILE) spare_.TurnAway(socket);
    return;
  }
  // The user is the identity unless the first request has a token.
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  const ConnectionSlots::Decision decision =
      slots_.Admit(listener, PeerOf(fd.get()), absl::Now(), &RankAsReported);
  if (decision.refused) return;
  for (const ConnectionSlots::Id evicted : decision.evicted) End(evicted);
  if (!Await(fd.get())) {
    slots_.Remove(decision.id);
    return;
  }
  const int number = fd.get();
  // The number identifies the connection in events until it is closed.
  connections_.emplace(
      number, Connection{.socket = std::move(fd),
                         .session = std::make_unique<SharedMemorySession>(parts_, peer.uid),
                         .id = decision.id});
  sockets_.emplace(decision.id, number);
}

void SharedMemoryServer::End(ConnectionSlots::Id id) {
  const auto found = sockets_.find(id);
  slots_.Remove(id);
  connections_.erase(found->second);
  sockets_.erase(found);
}

bool SharedMemoryServer::Serve(Connection& connection) {
  const int socket = connection.socket.get();
  std::array<char, SharedMemorySession::kMaxPacketBytes> buffer;
  Received received = Receive(socket, &buffer);
  if (received.size < 0) return errno == EAGAIN || errno == EINTR;
  if (received.size == 0) return false;
  const std::string answer =
      connection.session->Answer({.bytes = {buffer.data(), static_cast<size_t>(received.size)},
                                  .descriptors = received.descriptors,
                                  .is_whole = received.is_whole});
  // Before the answer: a client that has it may expect that they are closed.
  received.descriptors.clear();
  const ssize_t sent = send(socket, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  // An answer that does not fit means that the client does not read.
  return sent >= 0 && !connection.session->is_over();
}

void SharedMemoryServer::EndSilent(absl::Time now) {
  for (const ConnectionSlots::Id id : slots_.TakeOverdue(now, &RankAsReported)) End(id);
}

}  // namespace opserve::server
