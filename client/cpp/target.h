// Internal: where daemons listen, as the users of a client write it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opserve {

struct Target {
  // As gRPC takes it.
  std::string uri = {};

  // Whether there may be several daemons, between which calls are balanced.
  bool is_balanced = false;

  // Whether nothing of a connection leaves this machine: Unix sockets and loopback addresses.
  bool is_local = false;

  // Of one daemon's Unix socket; empty: it is something else.
  std::string socket_path = {};

  // The daemon's name in requests, if gRPC cannot tell it from the target.
  std::string authority = {};
};

// `text`: one of
//   unix:PATH            a daemon's Unix socket
//   HOST:PORT            one daemon; the first address of HOST that answers
//   dns:///HOST:PORT     a daemon at each address of HOST
//   A,B,...              several daemons: each a unix:PATH, each IPV4:PORT or each [IPV6]:PORT
//
// kInvalidArgument: it is none of these.
absl::StatusOr<Target> ParseTarget(absl::string_view text);

}  // namespace opserve
