// Addresses a daemon listens on.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opserve::server {

struct ListenAddress {
  bool is_unix = false;
  std::string path;  // is_unix
  std::string host;  // otherwise; without the brackets of an IPv6 address
  int port = 0;      // otherwise; 0: the system chooses

  // Whether only programs of this machine can connect.
  bool is_local() const;
  // As gRPC and the user write it: "unix:/run/x.sock", "127.0.0.1:8470", "[::1]:8470".
  std::string ToString() const;

  friend bool operator==(const ListenAddress& a, const ListenAddress& b) = default;
};

// Parses "unix:PATH", "HOST:PORT" or "[IPV6]:PORT". kInvalidArgument names the error.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Where a daemon that serves on the Unix socket `path` takes shared memory, if it does.
inline std::string SharedMemoryPath(const std::string& path) { return path + ".shm"; }

// Where daemon and clients meet if nobody says otherwise: opserve.sock in $XDG_RUNTIME_DIR/opserve,
// or in /tmp/opserve-UID where that variable is not set.
std::string DefaultSocketPath();

}  // namespace opserve::server
