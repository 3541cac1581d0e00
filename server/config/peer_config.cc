#include "server/config/peer_config.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/status/status_macros.h"
#include "server/config/certificate_name.h"
#include "server/config/listen_address.h"
#include "server/config/tenant_config.h"

namespace opserve::server {
namespace {

absl::Status InvalidSetting(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
}

// The identities that are taken, as "uid 7" or a canonical certificate name.
class Identities {
 public:
  explicit Identities(const TenantsConfig& config) {
    for (const TenantConfig& tenant : config.tenants) {
      tenants_.insert(tenant.name);
      for (const std::string& name : tenant.certificate_names) taken_.insert(name);
      for (const uint32_t uid : tenant.uids) taken_.insert(absl::StrCat("uid ", uid));
    }
  }

  bool HasTenant(const std::string& name) const { return tenants_.contains(name); }
  // False: a tenant or another peer has it.
  bool Take(const std::string& identity) { return taken_.insert(identity).second; }

 private:
  absl::flat_hash_set<std::string> tenants_;
  absl::flat_hash_set<std::string> taken_;
};

absl::StatusOr<PeerConfig> ToPeer(const config::Peer& from, Identities* identities) {
  if (from.has_uid() == !from.certificate_name().empty()) {
    return absl::InvalidArgumentError("needs certificate_name or uid, and not both");
  }
  PeerConfig peer;
  std::string identity;
  if (from.has_uid()) {
    peer.uid = from.uid();
    identity = absl::StrCat("uid ", from.uid());
  } else {
    absl::StatusOr<std::string> canonical = CanonicalCertificateName(from.certificate_name());
    if (!canonical.ok()) return InvalidSetting("certificate_name", canonical.status().message());
    peer.certificate_name = *canonical;
    identity = *std::move(canonical);
  }
  if (!identities->Take(identity)) {
    // A caller with this identity would be a tenant and a peer.
    return absl::InvalidArgumentError(
        absl::StrCat(identity, " is that of a tenant or of another peer, too"));
  }
  if (from.tenant().empty())
    return InvalidSetting("tenant", "is missing: nothing could be deposited");
  for (const std::string& tenant : from.tenant()) {
    if (!identities->HasTenant(tenant)) {
      return InvalidSetting("tenant", absl::StrCat("there is no tenant \"", tenant, "\""));
    }
    peer.tenants.push_back(tenant);
  }
  if (from.max_bytes() == 0) return InvalidSetting("max_bytes", "must be at least 1");
  peer.max_bytes = from.max_bytes();
  return peer;
}

}  // namespace

absl::StatusOr<std::vector<PeerConfig>> PeersFrom(const config::ServerConfig& values) {
  std::vector<PeerConfig> peers;
  // Without peers the tenants' mistakes are reported elsewhere.
  if (values.peer().empty()) return peers;
  OPSERVE_ASSIGN_OR_RETURN(const TenantsConfig tenants, TenantsFrom(values));
  Identities identities(tenants);
  for (int i = 0; i < values.peer_size(); ++i) {
    absl::StatusOr<PeerConfig> peer = ToPeer(values.peer(i), &identities);
    if (!peer.ok()) return InvalidSetting(absl::StrCat("peer[", i, "]"), peer.status().message());
    // Clients show certificates only where the daemon asks for them.
    if (!peer->certificate_name.empty() && values.tls_client_ca().empty()) {
      return InvalidSetting(absl::StrCat("peer[", i, "]"),
                            "certificate_name: needs tls_client_ca, without which no peer shows a "
                            "certificate");
    }
    peers.push_back(*std::move(peer));
  }
  return peers;
}

absl::StatusOr<std::optional<DepositConfig>> DepositFrom(const config::ServerConfig& values) {
  if (!values.has_deposit()) return std::nullopt;
  const config::Deposit& from = values.deposit();
  const auto address = ParseListenAddress(from.address());
  if (!address.ok()) return InvalidSetting("deposit.address", address.status().message());
  if (!address->is_unix && address->port == 0)
    return InvalidSetting("deposit.address", "needs a port");
  const bool has_files = !from.ca().empty() || !from.certificate().empty() || !from.key().empty();
  const bool has_all = !from.ca().empty() && !from.certificate().empty() && !from.key().empty();
  if (address->is_unix && (has_files || !from.server_name().empty())) {
    return InvalidSetting("deposit",
                          "a Unix socket has no TLS: leave ca, certificate, key and "
                          "server_name out");
  }
  if (!address->is_unix && !has_all) {
    return InvalidSetting("deposit",
                          "needs ca, certificate and key: tensors leave this machine through "
                          "TLS only, and the receiver knows this daemon by its certificate");
  }
  DepositConfig deposit{.address = address->ToString(),
                        .ca = from.ca(),
                        .certificate = from.certificate(),
                        .key = from.key(),
                        .server_name = from.server_name(),
                        .client_address = from.client_address()};
  // Clients reach the receiver as this daemon does, unless told otherwise.
  if (deposit.client_address.empty()) deposit.client_address = deposit.address;
  return deposit;
}

}  // namespace opserve::server
