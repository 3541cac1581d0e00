#include "tests/integration/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace opserve {
namespace {

constexpr int kLookMs = 10;  // for the proxy's end
constexpr size_t kPieceBytes = 64 << 10;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

bool SendAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

CuttingProxy::CuttingProxy(int target_port) : target_port_(target_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 8) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::perror("proxy");
    std::abort();
  }
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

CuttingProxy::~CuttingProxy() {
  is_stopping_ = true;
  thread_.join();
  close(listener_);
}

void CuttingProxy::CutAt(int pieces, bool for_good, std::function<void()> on_cut) {
  absl::MutexLock lock(&mutex_);
  pieces_left_ = pieces;
  for_good_ = for_good;
  was_cut_ = false;
  on_cut_ = std::move(on_cut);
}

bool CuttingProxy::was_cut() const {
  absl::MutexLock lock(&mutex_);
  return was_cut_;
}

bool CuttingProxy::Passes() {
  absl::MutexLock lock(&mutex_);
  if (pieces_left_ < 0) return true;
  if (pieces_left_-- > 0) return true;
  was_cut_ = true;
  if (on_cut_) on_cut_();
  return false;
}

void CuttingProxy::Run() {
  while (!is_stopping_) {
    pollfd waiting = {.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kLookMs) <= 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    bool is_open = true;
    {
      absl::MutexLock lock(&mutex_);
      is_open = !(was_cut_ && for_good_);
    }
    if (is_open) Forward(client);
    close(client);
  }
}

void CuttingProxy::Forward(int client) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in target = Loopback(target_port_);
  bool is_open = connect(server, reinterpret_cast<const sockaddr*>(&target), sizeof(target)) == 0;
  std::vector<char> piece(kPieceBytes);
  while (is_open && !is_stopping_) {
    pollfd sides[] = {{.fd = client, .events = POLLIN, .revents = 0},
                      {.fd = server, .events = POLLIN, .revents = 0}};
    if (poll(sides, 2, kLookMs) <= 0) continue;
    for (int side = 0; side < 2 && is_open; ++side) {
      if (sides[side].revents == 0) continue;
      const ssize_t size = recv(sides[side].fd, piece.data(), piece.size(), 0);
      is_open = size > 0 && Passes() &&
                SendAll(sides[1 - side].fd, piece.data(), static_cast<size_t>(size));
    }
  }
  close(server);
}

}  // namespace opserve
