// Says of each call whose it is, and lets those in that may.
//
// gRPC runs a processor for each call when its headers are there, before its message is read; what
// it refuses costs no body. Every listener has processors, except for plaintext to other machines,
// for which gRPC offers none: there the calls themselves find out whose they are, by the same
// rules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/server_context.h"
#include "server/access/connection_gate.h"
#include "server/access/connection_ledger.h"
#include "server/observability/request_metrics.h"
#include "server/scheduling/tenants.h"

namespace opserve::server {

// Outlived by tenants and metrics; outlives the server. Thread-safe.
class Authenticator {
 public:
  // What processors refuse is counted in `metrics`.
  // Connections whose calls are a tenant's are marked in `ledger`.
  Authenticator(const Tenants& tenants, RequestMetrics& metrics, ConnectionLedger& ledger)
      : tenants_(tenants), metrics_(metrics), ledger_(ledger) {}

  // For connections of a listener that clients use, and of the admin listener. `uid`: of the user
  // at the other end; null where the system does not tell.
  std::shared_ptr<grpc::AuthMetadataProcessor> ForClients(SharedUid uid) const;
  static std::shared_ptr<grpc::AuthMetadataProcessor> ForAdministrators(SharedUid uid);

  // Whose call this is. The context may not be used by others meanwhile.
  // kUnauthenticated (reason "unauthenticated"): nobody's.
  absl::StatusOr<Tenant*> TenantOf(const grpc::ServerContextBase& rpc) const;

  // The user id of the connection, where a processor knew it.
  static std::optional<uint32_t> UidOf(const grpc::ServerContextBase& rpc);

 private:
  const Tenants& tenants_;
  RequestMetrics& metrics_;
  ConnectionLedger& ledger_;
};

}  // namespace opserve::server
