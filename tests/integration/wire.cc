#include "tests/integration/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/integration/unix_connection.h"

namespace opserve {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

server::FileDescriptor ConnectToPort(int port) {
  const sockaddr_in address = Loopback(port);
  server::FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    std::perror("connect");
    std::abort();
  }
  return fd;
}

}  // namespace

int UnusedPort() {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  const server::FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("bind");
    std::abort();
  }
  return ntohs(address.sin_port);
}

Wire::Wire(const WireTarget& target)
    : socket_(target.unix_path.empty() ? ConnectToPort(target.port)
                                       : ConnectToUnixSocket(target.unix_path)) {
  if (target.has_tls && !BeginTls()) {
    std::fprintf(stderr, "no TLS\n");
    std::abort();
  }
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

Wire::~Wire() {
  is_over_ = true;
  shutdown(socket_.get(), SHUT_RDWR);
  if (reader_.joinable()) reader_.join();
}

bool Wire::BeginTls() {
  absl::MutexLock lock(&mutex_);
  std::signal(SIGPIPE, SIG_IGN);  // which OpenSSL's writing raises
  context_.reset(SSL_CTX_new(TLS_client_method()));
  session_.reset(SSL_new(context_.get()));
  const unsigned char kH2[] = {2, 'h', '2'};
  SSL_set_mode(session_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return SSL_set_alpn_protos(session_.get(), kH2, sizeof(kH2)) == 0 &&
         SSL_set_fd(session_.get(), socket_.get()) == 1 && SSL_connect(session_.get()) == 1;
}

void Wire::DiscardAnswers() {
  reader_ = std::thread([this] {
    char buffer[16384];
    while (!is_over_) {
      const int size = TryRead(buffer, sizeof(buffer));
      if (size < 0) break;
      if (size == 0) AwaitSocket(POLLIN);
    }
    is_over_ = true;
  });
}

bool Wire::Send(absl::string_view bytes) {
  absl::Time last_progress = absl::Now();
  while (!bytes.empty() && !is_over_) {
    const int size = TryWrite(bytes);
    if (size < 0) is_over_ = true;
    if (size == 0) {
      AwaitSocket(POLLOUT);
      if (absl::Now() - last_progress < absl::Minutes(1)) continue;
      ADD_FAILURE() << "the daemon has neither read for a minute nor ended the connection";
      is_over_ = true;
    }
    if (size > 0) {
      bytes.remove_prefix(static_cast<size_t>(size));
      last_progress = absl::Now();
    }
  }
  return !is_over_;
}

int Wire::TryWrite(absl::string_view bytes) {
  if (session_ == nullptr) {
    const auto size =
        static_cast<int>(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    return size < 0 && errno == EAGAIN ? 0 : size;
  }
  absl::MutexLock lock(&mutex_);
  const int size = SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size()));
  const int error = SSL_get_error(session_.get(), size);
  if (size > 0) return size;
  return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? 0 : -1;
}

int Wire::TryRead(char* buffer, int capacity) {
  if (session_ == nullptr) {
    const auto size = static_cast<int>(recv(socket_.get(), buffer, capacity, 0));
    if (size == 0) return -1;
    return size < 0 && errno == EAGAIN ? 0 : size;
  }
  absl::MutexLock lock(&mutex_);
  const int size = SSL_read(session_.get(), buffer, capacity);
  const int error = SSL_get_error(session_.get(), size);
  if (size > 0) return size;
  return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? 0 : -1;
}

// Looks up now and then, since the other thread may have found the end.
void Wire::AwaitSocket(short events) const {
  pollfd socket = {.fd = socket_.get(), .events = events, .revents = 0};
  poll(&socket, 1, /*timeout=*/100);
}

}  // namespace opserve
