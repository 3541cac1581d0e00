#include "server/access/connection_ledger.h"

#include <sys/socket.h>

#include "server/access/socket_table.h"

namespace opserve::server {
namespace {

bool IsUnix(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

}  // namespace

void ConnectionLedger::Register(int fd) {
  SocketEntry* const entry = socket_table::FindOrMake(fd);
  if (entry == nullptr) {
    shutdown(fd, SHUT_RDWR);
    return;
  }
  entry->is_unix = IsUnix(fd);
  entry->facts.Begin();
}

void ConnectionLedger::Forget(int fd) {
  if (SocketEntry* const entry = socket_table::Find(fd)) entry->facts.End();
}

void ConnectionLedger::MarkIdentified(absl::string_view peer) {
  const std::optional<SocketName> name = socket_table::ParsePeer(peer);
  SocketEntry* const entry = name ? socket_table::Find(name->fd) : nullptr;
  if (entry != nullptr) entry->facts.AddIdentifiedCall(name->generation);
}

void ConnectionLedger::MarkHealthChecked(absl::string_view peer) {
  const std::optional<SocketName> name = socket_table::ParsePeer(peer);
  SocketEntry* const entry = name ? socket_table::Find(name->fd) : nullptr;
  if (entry != nullptr) entry->facts.SetHealthChecked(name->generation);
}

bool ConnectionLedger::IsIdentified(int fd) const {
  const SocketEntry* const entry = socket_table::Find(fd);
  return entry != nullptr && entry->facts.is_identified();
}

bool ConnectionLedger::HasHadAnswer(int fd) const {
  const SocketEntry* const entry = socket_table::Find(fd);
  return entry != nullptr && (entry->facts.is_identified() || entry->facts.is_health_checked());
}

bool ConnectionLedger::IsIdentified(absl::string_view peer) const {
  const std::optional<SocketName> name = socket_table::ParsePeer(peer);
  return name && IsIdentified(name->fd) &&
         socket_table::Find(name->fd)->facts.generation() == name->generation;
}

}  // namespace opserve::server
