#include "client/cpp/shared_memory_connection.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/message.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

// More than a list of all the regions a tenant can have takes.
constexpr size_t kMaxAnswerBytes = 64 << 10;

absl::Status Broken(absl::string_view what) {
  // The timeouts of the socket end a call with these.
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    return absl::DeadlineExceededError("the daemon did not answer about shared memory in time");
  }
  return absl::UnavailableError(
      absl::StrCat("the connection for shared memory broke: ", what, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedMemoryConnection>> SharedMemoryConnection::Open(
    const std::string& path, const SharedMemoryOptions& options) {
  // The daemon listens beside its socket for calls.
  const std::string socket_path = path + ".shm";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the socket's path with .shm behind it has ",
                                                   socket_path.size(), " bytes, at most ",
                                                   sizeof(address.sun_path) - 1, " allowed"));
  }
  socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  // Packets keep their bounds, so one is one message, and its descriptor cannot go to another.
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("no socket: ", std::strerror(errno)));
  }
  auto connection =
      std::shared_ptr<SharedMemoryConnection>(new SharedMemoryConnection(fd, options.token));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(absl::StrCat("no daemon takes shared memory at ", socket_path,
                                               ": ", std::strerror(errno),
                                               " (opserved needs --enable_shm)"));
  }
  const timeval timeout = absl::ToTimeval(options.timeout);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  return connection;
}

SharedMemoryConnection::~SharedMemoryConnection() { close(socket_); }

uint64_t SharedMemoryConnection::NextRegion() {
  absl::MutexLock lock(&mutex_);
  return ++regions_;
}

absl::StatusOr<v1::SharedMemoryResponse> SharedMemoryConnection::Call(
    v1::SharedMemoryRequest request, int fd) {
  absl::MutexLock lock(&mutex_);
  if (is_broken_) return absl::UnavailableError("the connection for shared memory broke before");
  // With the first request only: the daemon knows the connection from then on.
  request.set_token(std::exchange(token_, {}));
  // Broken until the answer is there: after a timeout it could still come, and be taken for the
  // next one's.
  is_broken_ = true;
  OPSERVE_RETURN_IF_ERROR(Send(request, fd));
  absl::StatusOr<v1::SharedMemoryResponse> response = Receive();
  if (!response.ok()) return response;
  is_broken_ = false;
  if (response->has_error()) return FromStatusDetails(response->error());
  return response;
}

absl::Status SharedMemoryConnection::Send(const v1::SharedMemoryRequest& request, int fd) {
  std::string bytes = request.SerializeAsString();
  iovec data = {bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0 ? absl::OkStatus() : Broken("sending");
}

absl::StatusOr<v1::SharedMemoryResponse> SharedMemoryConnection::Receive() {
  std::vector<char> bytes(kMaxAnswerBytes);
  ssize_t size = 0;
  // Signals interrupt a receive that has a timeout, even with SA_RESTART.
  do {
    size = recv(socket_, bytes.data(), bytes.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return Broken("receiving");
  // A packet of 0 bytes: the peer has closed.
  if (size == 0) return absl::UnavailableError("the daemon ended the connection for shared memory");
  v1::SharedMemoryResponse response;
  if (response.ParseFromArray(bytes.data(), static_cast<int>(size))) return response;
  return BadAnswer("about shared memory");
}

}  // namespace opserve
