// The tenants that the daemon serves, with the counters of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/config/tenant_config.h"
#include "server/identity/token_bucket.h"
#include "server/observability/request_totals.h"
#include "server/schedule/policy/tenant_settings.h"

namespace opserve::server {

// A tenant, for as long as the daemon runs; a reload changes its permissions. Thread-safe.
class Tenant {
 public:
  Tenant(uint32_t id, TenantConfig config);

  uint32_t id() const { return id_; }  // small; never given to another tenant
  const std::string& name() const { return name_; }
  std::shared_ptr<const TenantConfig> config() const ABSL_LOCKS_EXCLUDED(mutex_);

  // kResourceExhausted (reason "rate_limited" or "tenant_queue_full", with a retry hint): one
  // request more, or one with so many bytes, is more than the tenant may send now.
  // kFailedPrecondition (reason "rate_limited", pushback -1): more bytes than ever at once.
  // Else the request is counted as pending until EndRequest.
  absl::Status BeginRequest(uint64_t message_bytes, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndRequest() { pending_.fetch_sub(1, std::memory_order_relaxed); }
  uint32_t pending() const { return pending_.load(std::memory_order_relaxed); }
  // How many may be. Takes no lock.
  uint32_t max_pending() const { return max_pending_.load(std::memory_order_relaxed); }

  // Every request that ended, let in or not. `took`: from receipt to answer.
  void CountEnded(bool is_ok, absl::Duration took, uint64_t request_bytes, uint64_t response_bytes);
  RequestTotals totals() const;

  // kPermissionDenied (reason "forbidden"): it may not call this operator.
  absl::Status CheckMayCall(absl::string_view operator_name) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Tenants;
  // The tenant's rates, with the tokens left.
  struct Settings {
    explicit Settings(TenantConfig config);
    const TenantConfig config;
    std::optional<TokenBucket> requests;  // none: any number
    std::optional<TokenBucket> bytes;
  };
  std::shared_ptr<Settings> settings() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Set(TenantConfig config) ABSL_LOCKS_EXCLUDED(mutex_);

  const uint32_t id_;
  const std::string name_;
  std::atomic<uint32_t> pending_ = 0;
  // As in settings_.
  std::atomic<uint32_t> max_pending_;
  std::atomic<bool> may_call_all_;
  std::atomic<uint64_t> ended_ = 0;
  std::atomic<uint64_t> failed_ = 0;
  std::atomic<int64_t> success_ns_ = 0;  // of those with success
  std::atomic<uint64_t> request_bytes_ = 0;
  std::atomic<uint64_t> response_bytes_ = 0;
  mutable absl::Mutex mutex_;
  std::shared_ptr<Settings> settings_ ABSL_GUARDED_BY(mutex_);
};

// The identification that a caller offers.
struct Credentials {
  std::optional<absl::string_view> token = std::nullopt;
  // Of a certificate that was verified; canonical, as server/config/certificate_name.h says.
  absl::Span<const std::string> certificate_names = {};
  std::optional<uint32_t> uid = std::nullopt;  // as the system says, of a Unix socket's peer
};

// Thread-safe.
class Tenants {
 public:
  explicit Tenants(const TenantsConfig& config);

  // Makes the tenants those of `config`, at once for calls that begin from now on. Those not in it
  // any more are unknown, but keep their ids and accounts.
  // kFailedPrecondition: more tenants than a daemon can ever have known; nothing is changed.
  absl::Status Set(const TenantsConfig& config) ABSL_LOCKS_EXCLUDED(mutex_);
  // The error that Set would give now; changes nothing.
  absl::Status CheckCanSet(const TenantsConfig& config) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The tenant of a caller: by its token if it shows one, else by its certificate, else by its user
  // id, else the anonymous one. Lives as long as the Tenants. kUnauthenticated (reason
  // "unauthenticated"): there is none.
  absl::StatusOr<Tenant*> Identify(const Credentials& credentials) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The anonymous tenant, if no tenant of now is known by credentials. Null: they decide. Takes no
  // lock.
  Tenant* OnlyAnonymous() const { return only_anonymous_.load(std::memory_order_acquire); }

  // The tenant of now with this name; null: there is none.
  Tenant* Find(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether some tenant is known by this user id.
  bool HasUid(uint32_t uid) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Those of now. Names of every tenant there ever was, by id.
  std::vector<Tenant*> Current() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::string> Names() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Each tenant's share of every device and of page-locked memory; removed tenants are marked as
  // not configured.
  std::vector<TenantSettings> Settings() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Maps each credential to its tenant; never changed once it is made.
  struct Directory {
    absl::flat_hash_map<std::string, Tenant*> by_token_digest;
    absl::flat_hash_map<std::string, Tenant*> by_certificate_name;
    absl::flat_hash_map<uint32_t, Tenant*> by_uid;
    Tenant* anonymous = nullptr;
    std::vector<Tenant*> tenants;
  };
  std::shared_ptr<const Directory> directory() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRoom(const TenantsConfig& config) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<Tenant>> all_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Tenant*> by_name_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Directory> directory_ ABSL_GUARDED_BY(mutex_);
  std::atomic<Tenant*> only_anonymous_ = nullptr;  // of directory_; written with mutex_ held
};

}  // namespace opserve::server
