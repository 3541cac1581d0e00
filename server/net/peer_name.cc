#include "server/net/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace opserve::server {
namespace {

constexpr int kNetworkBytes = 8;  // of an IPv6 address

std::string Text(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, address, text, sizeof(text));
  return text;
}

}  // namespace

ConnectionSlots::Peer PeerOf(int fd) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
  if (storage.ss_family == AF_INET) {
    return {.name = Text(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr)};
  }
  if (storage.ss_family == AF_INET6) {
    in6_addr address = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    // An IPv4 peer of a listener for both families: the address is in the last four bytes.
    if (IN6_IS_ADDR_V4MAPPED(&address)) return {.name = Text(AF_INET, &address.s6_addr[12])};
    // The network's part alone, as a machine may use any address of its network.
    std::fill(address.s6_addr + kNetworkBytes, std::end(address.s6_addr), uint8_t{0});
    return {.name = Text(AF_INET6, &address)};
  }
  ucred peer = {};
  size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return {.name = "", .is_user = true};
  return {.name = absl::StrCat("uid ", peer.uid), .is_user = true};
}

}  // namespace opserve::server
