#include "server/access/connection_acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace opserve::server {

void ConnectionAcceptor::Add(Listener listener, std::unique_ptr<ConnectionGate> gate) {
  doors_.push_back(std::make_unique<Door>(Door{std::move(listener), std::move(gate)}));
}

absl::Status ConnectionAcceptor::Start() {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  spare_ = FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  bool is_complete = epoll_.get() >= 0 && spare_.get() >= 0;
  const auto watch = [&](int fd) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    is_complete = is_complete && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  watch(stop_.get());
  for (const std::unique_ptr<Door>& door : doors_) {
    for (const FileDescriptor& socket : door->listener.sockets()) {
      door_of_[socket.get()] = door.get();
      watch(socket.get());
    }
  }
  if (!is_complete) {
    return absl::ResourceExhaustedError("no more file descriptors to accept connections with");
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

ConnectionAcceptor::~ConnectionAcceptor() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void ConnectionAcceptor::Run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) return;
      const auto door = door_of_.find(fd);
      if (door != door_of_.end()) {
        Accept(fd, *door->second);
      } else {
        watched_.erase(fd);
        connections_.fetch_sub(1, std::memory_order_relaxed);
      }
    }
  }
}

void ConnectionAcceptor::Accept(int socket, Door& door) {
  FileDescriptor fd(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() < 0) {
    if (errno == EMFILE || errno == ENFILE) TurnAwayWithSpare(socket);
    return;
  }
  if (connections() >= max_connections_ || !Watch(fd.get())) {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (!door.listener.address().is_unix) {
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  GrpcAcceptor& acceptor = door.gate->For(fd.get());
  GrpcAcceptor::NewConnectionParameters connection;
  connection.listener_fd = socket;
  connection.fd = fd.release();
  acceptor.HandleNewConnection(&connection);
}

// Watches a duplicate for the end of the connection: gRPC shuts a socket down when it is done with
// it, and that shows at every descriptor of the socket.
bool ConnectionAcceptor::Watch(int fd) {
  FileDescriptor duplicate(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = duplicate.get()}};
  if (duplicate.get() < 0 || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, duplicate.get(), &event) != 0) {
    return false;
  }
  const int number = duplicate.get();
  watched_.emplace(number, std::move(duplicate));
  connections_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Without a free descriptor a connection could not even be taken to be closed, and would be
// reported again and again.
void ConnectionAcceptor::TurnAwayWithSpare(int socket) {
  spare_ = FileDescriptor();
  { const FileDescriptor refused(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC)); }
  rejected_.fetch_add(1, std::memory_order_relaxed);
  spare_ = FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace opserve::server
