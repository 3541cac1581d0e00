// The configuration's part about deposits of resident tensors between daemons, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/config/server_config.pb.h"

namespace opserve::server {

// A daemon that may deposit tensors here. It has exactly one of the first two.
struct PeerConfig {
  std::string certificate_name;  // canonical, as certificate_name.h says
  std::optional<uint32_t> uid;
  std::vector<std::string> tenants;  // names; at least one
  uint64_t max_bytes = 0;            // at least 1
};

// Where this daemon deposits its own tensors. The files are named if and only if the address is
// no Unix socket.
struct DepositConfig {
  std::string address;  // as gRPC takes it
  std::string ca;
  std::string certificate;
  std::string key;
  std::string server_name;     // empty: the address's host
  std::string client_address;  // never empty
};

// kInvalidArgument: names the peer, the field and its rule. Among others: a tenant that is not
// configured, a name that two peers or a peer and a tenant have.
absl::StatusOr<std::vector<PeerConfig>> PeersFrom(const config::ServerConfig& values);

// None: nothing is deposited. kInvalidArgument: names the field and its rule. Does not look at the
// files.
absl::StatusOr<std::optional<DepositConfig>> DepositFrom(const config::ServerConfig& values);

}  // namespace opserve::server
