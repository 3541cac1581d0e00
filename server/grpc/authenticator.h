// Identifies the tenant of each call, and admits the calls that are allowed.
//
// gRPC runs a processor for each call once its headers are there, before its message is read, so a
// refused call costs no body. Every listener has processors, except for plaintext to other
// machines, for which gRPC offers none: those calls identify their tenant themselves, by the same
// rules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/server_context.h"
#include "server/identity/peers.h"
#include "server/identity/tenants.h"
#include "server/net/connection_gate.h"
#include "server/net/connection_ledger.h"
#include "server/observability/request_metrics.h"

namespace opserve::server {

// Outlived by tenants, peers, metrics and ledger; outlives the server. Thread-safe.
class Authenticator {
 public:
  // Refusals by processors are counted in `metrics`; the connection of a call with a known tenant
  // is marked in `ledger`.
  Authenticator(const Tenants& tenants, const Peers& peers, RequestMetrics& metrics,
                ConnectionLedger& ledger)
      : tenants_(tenants), peers_(peers), metrics_(metrics), ledger_(ledger) {}

  // For connections of a listener that clients use, and of the admin listener. `uid`: of the user
  // at the other end; null where the system does not tell.
  std::shared_ptr<grpc::AuthMetadataProcessor> ForClients(SharedUid uid) const;
  static std::shared_ptr<grpc::AuthMetadataProcessor> ForAdministrators(SharedUid uid);

  // The tenant that makes the call, on the connection `peer`: ServerContext::peer(), which costs as
  // much as all of this. The caller has the context to itself meanwhile.
  // kUnauthenticated (reason "unauthenticated"): no tenant.  kPermissionDenied (reason
  // "forbidden"): a peer, which may only deposit tensors.
  absl::StatusOr<Tenant*> TenantOf(const grpc::ServerContextBase& rpc,
                                   absl::string_view peer) const;

  // The peer that makes the call. kPermissionDenied (reason "forbidden"): none.
  // kUnauthenticated: as TenantOf, for a header that is no bearer token.
  absl::StatusOr<Peer*> PeerOf(const grpc::ServerContextBase& rpc) const;

  // The user id of the connection, where a processor knew it.
  static std::optional<uint32_t> UidOf(const grpc::ServerContextBase& rpc);

 private:
  const Tenants& tenants_;
  const Peers& peers_;
  RequestMetrics& metrics_;
  ConnectionLedger& ledger_;
};

}  // namespace opserve::server
