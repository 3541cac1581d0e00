#include "server/grpc/authenticator.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/status/error.h"
#include "server/config/certificate_name.h"
#include "server/identity/audit.h"
#include "server/identity/method_rules.h"

namespace opserve::server {
namespace {

constexpr char kUidProperty[] = "opserve-uid";
constexpr absl::string_view kBearer = "bearer ";

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

template <typename Metadata>
absl::string_view Find(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? absl::string_view() : View(found->second);
}

std::vector<std::string> CertificateNames(const grpc::AuthContext& context) {
  std::vector<std::string> names;
  // Without a certificate the caller's identity is that of the connection, or unknown.
  if (!absl::StartsWith(context.GetPeerIdentityPropertyName(), "x509_")) return names;
  for (const grpc::string_ref& name : context.FindPropertyValues("peer_dns")) {
    names.push_back(CanonicalDnsName(View(name)));
  }
  // A URI that reads like a DNS name is still none: authorities check each kind in its own way.
  for (const auto& [property, kind] :
       {std::pair("peer_uri", "uri:"), std::pair("peer_email", "email:"),
        std::pair("peer_ip", "ip:")}) {
    for (const grpc::string_ref& name : context.FindPropertyValues(property)) {
      names.push_back(absl::StrCat(kind, View(name)));
    }
  }
  // Authorities often let the common name be any text, and it only counts where there is nothing
  // better.
  if (context.FindPropertyValues("x509_subject_alternative_name").empty()) {
    for (const grpc::string_ref& name : context.FindPropertyValues("x509_common_name")) {
      names.push_back(CanonicalDnsName(View(name)));
    }
  }
  return names;
}

std::optional<uint32_t> RememberedUid(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(kUidProperty);
  uint32_t uid = 0;
  if (values.empty() || !absl::SimpleAtoi(View(values[0]), &uid)) return std::nullopt;
  return uid;
}

// Calls `identify` with the credentials that a call shows and returns its result.
// `authorization`: that header's value.
template <typename Identify>
auto WithCredentials(const grpc::AuthContext& context, absl::string_view authorization,
                     Identify identify) -> decltype(identify(Credentials())) {
  const std::vector<std::string> names = CertificateNames(context);
  Credentials credentials;
  credentials.certificate_names = names;
  credentials.uid = RememberedUid(context);
  if (!authorization.empty()) {
    // A client with an unknown scheme claims an identity, so it is not treated as anonymous. Nor is
    // its credential compared with tokens: it may be a secret of another system.
    if (!absl::StartsWithIgnoreCase(authorization, kBearer)) {
      return MakeError(Reason::kUnauthenticated, "authorization must be: Bearer TOKEN");
    }
    credentials.token = authorization.substr(kBearer.size());
  }
  return identify(credentials);
}

// The tenant of calls without an `authorization` that need not be identified any further; null:
// this one must be. Most small pools name nobody. Reading a certificate and a user would then cost
// each call hundreds of instructions, and decide nothing.
Tenant* OnlyTenant(const Tenants& tenants, const Peers& peers, absl::string_view authorization) {
  return authorization.empty() && peers.empty() ? tenants.OnlyAnonymous() : nullptr;
}

absl::StatusOr<Tenant*> IdentifyTenant(const Tenants& tenants, const Peers& peers,
                                       const grpc::AuthContext& context,
                                       absl::string_view authorization) {
  return WithCredentials(
      context, authorization, [&](const Credentials& credentials) -> absl::StatusOr<Tenant*> {
        // Before the tenants, of which an anonymous one would take it.
        if (const Peer* peer = peers.Find(credentials)) {
          return MakeError(Reason::kForbidden, absl::StrCat("peer ", peer->name(),
                                                            " may deposit tensors and call "
                                                            "nothing else"));
        }
        return tenants.Identify(credentials);
      });
}

absl::StatusOr<Peer*> IdentifyPeer(const Peers& peers, const grpc::AuthContext& context,
                                   absl::string_view authorization) {
  return WithCredentials(
      context, authorization, [&](const Credentials& credentials) -> absl::StatusOr<Peer*> {
        if (Peer* peer = peers.Find(credentials)) return peer;
        return MakeError(Reason::kForbidden,
                         "only daemons that the configuration names as a peer may deposit "
                         "tensors, known by their certificate or, over a Unix socket, their user");
      });
}

class Processor final : public grpc::AuthMetadataProcessor {
 public:
  // For administrators all pointers are null.
  Processor(const Tenants* tenants, const Peers* peers, RequestMetrics* metrics, SharedUid uid)
      : tenants_(tenants), peers_(peers), metrics_(metrics), uid_(std::move(uid)) {}

  // Takes microseconds, less than handing it to another thread.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* /*consumed*/, OutputMetadata* /*response*/) override {
    const std::optional<uint32_t> uid = Uid();
    if (uid) Remember(*uid, context);
    const absl::string_view path = Find(metadata, ":path");
    const absl::Status status = Check(path, metadata, *context, uid);
    if (status.ok()) return grpc::Status::OK;
    AuditDenied(path, status, uid, CertificateNames(*context));
    if (metrics_ != nullptr) metrics_->RecordRejection(std::nullopt, status);
    return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
  }

 private:
  absl::Status Check(absl::string_view path, const InputMetadata& metadata,
                     const grpc::AuthContext& context, std::optional<uint32_t> uid) const {
    // A listener has methods of its own kind only. Those of the other one look like unknown
    // methods.
    const std::optional<Access> access = AccessTo(path);
    const bool is_admin_listener = tenants_ == nullptr;
    const bool is_for_clients = access == Access::kTenant || access == Access::kPeer;
    if (!access || (is_admin_listener ? is_for_clients : access == Access::kAdministrator)) {
      return absl::UnimplementedError("this listener has no such method");
    }
    if (*access == Access::kAnybody) return absl::OkStatus();
    if (is_admin_listener) {
      if (uid == 0 || uid == geteuid()) return absl::OkStatus();
      return absl::PermissionDeniedError("only the daemon's own user and root may administrate");
    }
    const absl::string_view authorization = Find(metadata, "authorization");
    if (access == Access::kPeer) return IdentifyPeer(*peers_, context, authorization).status();
    if (OnlyTenant(*tenants_, *peers_, authorization) != nullptr) return absl::OkStatus();
    return IdentifyTenant(*tenants_, *peers_, context, authorization).status();
  }

  std::optional<uint32_t> Uid() const {
    const int64_t uid = uid_ == nullptr ? kNoUid : uid_->load(std::memory_order_relaxed);
    if (uid == kNoUid) return std::nullopt;
    return static_cast<uint32_t>(uid);
  }

  // All calls of a connection share its context and arrive here concurrently: a property is added
  // once, visible to all of them, and never changes again.
  void Remember(uint32_t uid, grpc::AuthContext* context) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (context->FindPropertyValues(kUidProperty).empty()) {
      context->AddProperty(kUidProperty, absl::StrCat(uid));
    }
  }

  const Tenants* const tenants_;   // null on the admin listener
  const Peers* const peers_;       // likewise
  RequestMetrics* const metrics_;  // likewise
  const SharedUid uid_;            // null: the system does not tell
  absl::Mutex mutex_;              // contexts' properties, while they are looked at and added
};

}  // namespace

std::shared_ptr<grpc::AuthMetadataProcessor> Authenticator::ForClients(SharedUid uid) const {
  return std::make_shared<Processor>(&tenants_, &peers_, &metrics_, std::move(uid));
}

std::shared_ptr<grpc::AuthMetadataProcessor> Authenticator::ForAdministrators(SharedUid uid) {
  return std::make_shared<Processor>(nullptr, nullptr, nullptr, std::move(uid));
}

absl::StatusOr<Tenant*> Authenticator::TenantOf(const grpc::ServerContextBase& rpc,
                                                absl::string_view peer) const {
  const absl::string_view authorization = Find(rpc.client_metadata(), "authorization");
  absl::StatusOr<Tenant*> tenant = OnlyTenant(tenants_, peers_, authorization);
  // The context of a call is made when it is first asked for.
  if (*tenant == nullptr) {
    tenant = IdentifyTenant(tenants_, peers_, *rpc.auth_context(), authorization);
  }
  if (tenant.ok()) ledger_.MarkIdentified(peer);
  return tenant;
}

absl::StatusOr<Peer*> Authenticator::PeerOf(const grpc::ServerContextBase& rpc) const {
  absl::StatusOr<Peer*> peer =
      IdentifyPeer(peers_, *rpc.auth_context(), Find(rpc.client_metadata(), "authorization"));
  if (peer.ok()) ledger_.MarkIdentified(rpc.peer());
  return peer;
}

std::optional<uint32_t> Authenticator::UidOf(const grpc::ServerContextBase& rpc) {
  return RememberedUid(*rpc.auth_context());
}

}  // namespace opserve::server
