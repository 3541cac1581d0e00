#include "server/access/connection_acceptor.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace opserve::server {
namespace {

// The system takes twice as much, and as much of the kernel's memory for each connection at most.
constexpr int kUnixSendBufferBytes = 1 << 20;

constexpr absl::Duration kTakenPeriod = absl::Milliseconds(1);

}  // namespace

void ConnectionAcceptor::Add(Listener listener, std::unique_ptr<ConnectionGate> gate) {
  doors_.push_back(std::make_unique<Door>(Door{std::move(listener), std::move(gate)}));
}

absl::Status ConnectionAcceptor::Start() {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool is_complete = epoll_.get() >= 0 && spare_.Open();
  const auto watch = [&](int fd) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    is_complete = is_complete && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  watch(stop_.get());
  for (const std::unique_ptr<Door>& door : doors_) {
    for (const FileDescriptor& socket : door->listener->sockets()) {
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

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

void ConnectionAcceptor::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
  for (const std::unique_ptr<Door>& door : doors_) door->listener.reset();
}

void ConnectionAcceptor::AwaitTaken(absl::Time deadline) const {
  while (!IsTaken() && absl::Now() < deadline) absl::SleepFor(kTakenPeriod);
}

// The system counts what a Unix socket's peer has not read, and what a TCP peer has not confirmed.
bool ConnectionAcceptor::IsTaken() const {
  return std::all_of(watched_.begin(), watched_.end(), [](const auto& connection) {
    int unsent = 0;
    return ioctl(connection.first, SIOCOUTQ, &unsent) != 0 || unsent == 0;
  });
}

void ConnectionAcceptor::EndConnections() const {
  for (const auto& [fd, connection] : watched_) shutdown(fd, SHUT_RDWR);
}

void ConnectionAcceptor::Run() {
  std::array<epoll_event, 64> events;
  const absl::Duration period = stall_timeout_ / 8;
  absl::Time next_look = absl::Now() + period;
  for (;;) {
    const int64_t wait_ms = absl::ToInt64Milliseconds(next_look - absl::Now());
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(),
                                 static_cast<int>(std::max<int64_t>(wait_ms + 1, 0)));
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == stop_.get()) return;
      HandleEvent(events[i].data.fd, events[i].events);
    }
    if (const absl::Time now = absl::Now(); now >= next_look) {
      EndStalled(now);
      next_look = now + period;
    }
  }
}

void ConnectionAcceptor::HandleEvent(int fd, uint32_t events) {
  const auto door = door_of_.find(fd);
  if (door != door_of_.end()) {
    Accept(fd, *door->second);
    return;
  }
  const auto connection = watched_.find(fd);
  if ((events & EPOLLOUT) != 0 && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) {
    connection->second.full_since = absl::InfiniteFuture();
    Await(fd, connection->second, EPOLL_CTL_MOD);
    return;
  }
  watched_.erase(connection);
  connections_.fetch_sub(1, std::memory_order_relaxed);
}

void ConnectionAcceptor::EndStalled(absl::Time now) {
  std::vector<pollfd> sockets;
  sockets.reserve(watched_.size());
  for (const auto& [fd, connection] : watched_) sockets.push_back({fd, POLLOUT, 0});
  if (poll(sockets.data(), sockets.size(), /*timeout=*/0) < 0) return;
  for (const pollfd& socket : sockets) {
    if (socket.revents != 0) continue;  // it has room, or its end is about to be reported
    Connection& connection = watched_.find(socket.fd)->second;
    if (connection.full_since == absl::InfiniteFuture()) {
      connection.full_since = now;
      Await(socket.fd, connection, EPOLL_CTL_MOD);
    } else if (now - connection.full_since >= stall_timeout_) {
      // What is in the buffer would otherwise outlive the connection.
      const linger at_once = {.l_onoff = 1, .l_linger = 0};
      setsockopt(socket.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      shutdown(socket.fd, SHUT_RDWR);
      stalled_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

void ConnectionAcceptor::Accept(int socket, Door& door) {
  FileDescriptor fd(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() < 0) {
    if (errno == EMFILE || errno == ENFILE) {
      spare_.TurnAway(socket);
      rejected_.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  if (connections() >= max_connections_ || !Watch(fd.get())) {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (door.listener->address().is_unix) {
    // Packaged systems give 208 KiB, which stops a large result many times on its way.
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kUnixSendBufferBytes,
               sizeof(kUnixSendBufferBytes));
  } else {
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  GrpcAcceptor& acceptor = door.gate->For(fd.get());
  if (ledger_ != nullptr) ledger_->Register(fd.get());
  GrpcAcceptor::NewConnectionParameters connection;
  connection.listener_fd = socket;
  connection.fd = fd.release();
  acceptor.HandleNewConnection(&connection);
}

// Watches a duplicate for the end of the connection: gRPC shuts a socket down when it is done with
// it, and that shows at every descriptor of the socket.
bool ConnectionAcceptor::Watch(int fd) {
  Connection connection = {.duplicate = FileDescriptor(fcntl(fd, F_DUPFD_CLOEXEC, 0))};
  const int number = connection.duplicate.get();
  if (number < 0 || !Await(number, connection, EPOLL_CTL_ADD)) return false;
  watched_.emplace(number, std::move(connection));
  connections_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool ConnectionAcceptor::Await(int fd, const Connection& connection, int operation) {
  const bool is_full = connection.full_since != absl::InfiniteFuture();
  epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = fd}};
  if (is_full) event.events |= EPOLLOUT;
  return epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

}  // namespace opserve::server
