#include "server/net/socket_functions.h"

#include <dlfcn.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/net/socket_table.h"

namespace opserve::server {
namespace {

// The function that would be called if this program had none of that name. (Sanitizers have
// functions of these names, too; theirs come next.)
template <typename Function>
Function* Next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();  // gRPC could not have been loaded without it
  return reinterpret_cast<Function*>(found);
}

// The open connection of `fd`; null: the descriptor is something else.
SocketEntry* OpenConnection(int fd) {
  SocketEntry* const entry = socket_table::Find(fd);
  return entry != nullptr && entry->facts.is_open() ? entry : nullptr;
}

// Writes the made-up address as the system would: as much as there is room for, and its length.
void FillName(const SocketEntry& entry, int fd, sockaddr* address, socklen_t* size) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = socket_table::PeerText({fd, entry.facts.generation()}, entry.is_unix);
  const absl::string_view path = absl::string_view(text).substr(text.find(':') + 1);
  // A name with a leading zero byte is abstract; without it, it is a path, and ends with one.
  std::memcpy(name.sun_path + (entry.is_unix ? 0 : 1), path.data(), path.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  std::memcpy(address, &name, std::min(length, *size));
  *size = length;
}

// TLS sessions remember their connection, in a word of their own, as long as they live.
int SessionIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// The connection that `session` decrypts; found by the random number of its client's hello.
std::optional<SocketName> ConnectionOf(SSL* session) {
  // The word holds the descriptor in its upper half and the generation in its lower; 0 says that
  // the connection has not been looked for yet.
  const auto word = reinterpret_cast<uintptr_t>(SSL_get_ex_data(session, SessionIndex()));
  static_assert(sizeof(word) == sizeof(uint64_t));
  if (word != 0) {
    return SocketName{static_cast<int>(word >> 32), static_cast<uint32_t>(word)};
  }
  ClientRandom random;
  if (SSL_get_client_random(session, random.data(), random.size()) != random.size()) {
    return std::nullopt;
  }
  const std::optional<SocketName> name = socket_table::FindSession(random);
  if (name) {
    const auto known = static_cast<uintptr_t>(name->fd) << 32 | name->generation;
    SSL_set_ex_data(session, SessionIndex(), reinterpret_cast<void*>(known));
  }
  return name;
}

}  // namespace

int RealPeerName(int fd, sockaddr* address, socklen_t* size) {
  static auto* const next = Next<int(int, sockaddr*, socklen_t*)>("getpeername");
  return next(fd, address, size);
}

absl::Status CheckSocketFunctions() {
  // The search is the one by which gRPC and the TLS library found theirs, so it shows which
  // function they call.
  const auto check = [](const char* name, void* own) {
    if (dlsym(RTLD_DEFAULT, name) == own) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(name, " is not the daemon's own"));
  };
  absl::Status status = check("recvmsg", reinterpret_cast<void*>(&recvmsg));
  status.Update(check("sendmsg", reinterpret_cast<void*>(&sendmsg)));
  status.Update(check("close", reinterpret_cast<void*>(&close)));
  status.Update(check("getpeername", reinterpret_cast<void*>(&getpeername)));
  status.Update(check("SSL_read", reinterpret_cast<void*>(&SSL_read)));
  return status;
}

}  // namespace opserve::server

// Signatures are the libraries'. NOLINTBEGIN(google-build-using-namespace)
#define OPSERVE_EXPORTED __attribute__((visibility("default"), used))

extern "C" {

OPSERVE_EXPORTED ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using namespace opserve::server;
  static auto* const next = Next<ssize_t(int, msghdr*, int)>("recvmsg");
  SocketEntry* const entry = OpenConnection(fd);
  if (entry == nullptr) return next(fd, message, flags);
  if (!entry->guard.has_ended()) {
    const ssize_t size = next(fd, message, flags);
    if (size <= 0) return size;
    if (entry->guard.Received(fd, entry->facts, *message, static_cast<size_t>(size))) return size;
  }
  errno = ECONNRESET;
  return -1;
}

OPSERVE_EXPORTED ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  using namespace opserve::server;
  static auto* const next = Next<ssize_t(int, const msghdr*, int)>("sendmsg");
  const ssize_t size = next(fd, message, flags);
  if (size > 0) {
    if (SocketEntry* const entry = OpenConnection(fd)) {
      entry->guard.Sent(static_cast<size_t>(size));
    }
  }
  return size;
}

OPSERVE_EXPORTED int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  using namespace opserve::server;
  const SocketEntry* const entry = OpenConnection(fd);
  if (entry == nullptr) return RealPeerName(fd, address, size);
  FillName(*entry, fd, address, size);
  return 0;
}

// The number may be given to another socket as soon as this returns, so the connection ends before.
OPSERVE_EXPORTED int close(int fd) {
  using namespace opserve::server;
  static auto* const next = Next<int(int)>("close");
  if (SocketEntry* const entry = OpenConnection(fd)) {
    entry->guard.Closes(entry->facts);
    entry->facts.End();
  }
  return next(fd);
}

// Bytes that must not be seen are decrypted and dropped, so that the session then asks for more,
// which gRPC takes as it is; it would write a line to the log for each failure.
OPSERVE_EXPORTED int SSL_read(SSL* session, void* buffer, int capacity) {
  using namespace opserve::server;
  static auto* const next = Next<int(SSL*, void*, int)>("SSL_read");
  if (SSL_is_server(session) == 0) return next(session, buffer, capacity);
  const std::optional<SocketName> name = ConnectionOf(session);
  // A session without a connection has hidden its number; its bytes could not be inspected. If the
  // connection is closed, its remaining bytes are of no use.
  SocketEntry* const entry = name ? OpenConnection(name->fd) : nullptr;
  const bool is_known = entry != nullptr && entry->facts.generation() == name->generation;
  for (;;) {
    const int size = next(session, buffer, capacity);
    if (size <= 0) return size;
    const absl::string_view bytes(static_cast<const char*>(buffer), static_cast<size_t>(size));
    if (is_known && entry->guard.Decrypted(name->fd, entry->facts, bytes)) return size;
  }
}

}  // extern "C"
// NOLINTEND
