// One address the daemon serves on: its sockets, the users that may connect, and the acceptors that
// bring connections into a gRPC server.
//
// The daemon accepts connections itself, which gRPC allows: so it knows the user at the other end
// of a Unix socket, bounds the number of connections, and decides per connection which credentials
// its calls have to show.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/listen_address.h"
#include "server/net/file_descriptor.h"

namespace opserve::server {

// Bound and listening; unbinds when it is destroyed.
class Listener {
 public:
  // A Unix socket gets `unix_mode` and is of `unix_type`. Binds every address that the host's name
  // has.
  //
  // kUnavailable: the address is in use, not this machine's, or unknown.  kFailedPrecondition: the
  // path cannot be used.
  static absl::StatusOr<Listener> Bind(const ListenAddress& address, unsigned unix_mode,
                                       int unix_type = SOCK_STREAM);

  Listener(Listener&& other) noexcept = default;
  Listener& operator=(Listener&& other) = delete;
  ~Listener();

  const ListenAddress& address() const { return address_; }  // with the port the system chose
  const std::vector<FileDescriptor>& sockets() const { return sockets_; }

 private:
  explicit Listener(ListenAddress address) : address_(std::move(address)) {}
  absl::Status BindHost();

  ListenAddress address_;
  std::vector<FileDescriptor> sockets_;
};

}  // namespace opserve::server
