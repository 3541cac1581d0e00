#include "server/identity/tenants.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// Tenants that there can ever have been: reloads with ever new names would fill the memory.
constexpr size_t kMaxTenantsEver = 20000;
// How many seconds of its rate a tenant may use at once, after it was quiet.
constexpr uint32_t kBurstSeconds = 1;
// Until some of a tenant's requests have ended.
constexpr int64_t kPendingPushbackMs = 100;

std::string DigestOf(absl::string_view token) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::optional<TokenBucket> BucketFor(uint64_t per_second) {
  // Without a rate configured there is no limit, and no bucket.
  if (per_second == 0) return std::nullopt;
  const auto rate = static_cast<double>(per_second);
  return std::make_optional<TokenBucket>(rate, rate * kBurstSeconds);
}

MemoryLimits ToLimits(const ZoneConfig& zone) {
  return {zone.reserved_bytes, zone.soft_bytes, zone.hard_bytes};
}

absl::Status RateLimited(absl::string_view tenant, absl::string_view what, uint64_t per_second,
                         absl::Duration retry) {
  return MakeError(
      Reason::kRateLimited,
      absl::StrCat("tenant ", tenant, " may send ", per_second, " ", what, " per second"),
      std::max<int64_t>(absl::ToInt64Milliseconds(retry), 1));
}

}  // namespace

Tenant::Settings::Settings(TenantConfig tenant_config)
    : config(std::move(tenant_config)),
      requests(BucketFor(config.requests_per_second)),
      bytes(BucketFor(config.bytes_per_second)) {}

Tenant::Tenant(uint32_t id, TenantConfig config)
    : id_(id),
      name_(config.name),
      max_pending_(config.max_pending_requests),
      may_call_all_(config.operators.empty()),
      settings_(std::make_shared<Settings>(std::move(config))) {}

std::shared_ptr<Tenant::Settings> Tenant::settings() const {
  absl::MutexLock lock(&mutex_);
  return settings_;
}

std::shared_ptr<const TenantConfig> Tenant::config() const {
  const std::shared_ptr<Settings> settings = this->settings();
  // Points to a part of the settings, and keeps them all.
  return {settings, &settings->config};
}

void Tenant::Set(TenantConfig config) {
  // Full buckets: a reload gives the tenant its burst again. Calls under way keep the old settings.
  auto settings = std::make_shared<Settings>(std::move(config));
  absl::MutexLock lock(&mutex_);
  max_pending_.store(settings->config.max_pending_requests, std::memory_order_relaxed);
  may_call_all_.store(settings->config.operators.empty(), std::memory_order_relaxed);
  settings_ = std::move(settings);
}

void Tenant::CountEnded(bool is_ok, absl::Duration took, uint64_t request_bytes,
                        uint64_t response_bytes) {
  ended_.fetch_add(1, std::memory_order_relaxed);
  if (is_ok) {
    success_ns_.fetch_add(absl::ToInt64Nanoseconds(took), std::memory_order_relaxed);
  } else {
    failed_.fetch_add(1, std::memory_order_relaxed);
  }
  request_bytes_.fetch_add(request_bytes, std::memory_order_relaxed);
  response_bytes_.fetch_add(response_bytes, std::memory_order_relaxed);
}

RequestTotals Tenant::totals() const {
  const absl::Duration success = absl::Nanoseconds(success_ns_.load(std::memory_order_relaxed));
  // Counters are read one after the other, so a failure may be counted in between.
  const uint64_t failed = failed_.load(std::memory_order_relaxed);
  return {.requests = std::max(failed, ended_.load(std::memory_order_relaxed)),
          .failed = failed,
          .success_seconds = absl::ToDoubleSeconds(success),
          .request_bytes = request_bytes_.load(std::memory_order_relaxed),
          .response_bytes = response_bytes_.load(std::memory_order_relaxed)};
}

absl::Status Tenant::BeginRequest(uint64_t message_bytes, absl::Time now) {
  const std::shared_ptr<Settings> settings = this->settings();
  const TenantConfig& config = settings->config;
  // Before the request counts as pending: it could never be let in.
  if (settings->bytes && message_bytes > config.bytes_per_second * kBurstSeconds) {
    return NeverFits(
        Reason::kRateLimited,
        absl::StrCat("a message of ", message_bytes, " bytes is more than tenant ", name_,
                     " may ever send at once (", config.bytes_per_second, " bytes per second)"));
  }
  // Counted first, so that two callers at once cannot both take the last place.
  if (pending_.fetch_add(1, std::memory_order_relaxed) >= config.max_pending_requests) {
    EndRequest();
    return MakeError(Reason::kTenantQueueFull,
                     absl::StrCat("tenant ", name_, " may have ", config.max_pending_requests,
                                  " requests in progress"),
                     kPendingPushbackMs);
  }
  std::optional<absl::Duration> retry;
  if (settings->requests && (retry = settings->requests->TryTake(1, now))) {
    EndRequest();
    return RateLimited(name_, "requests", config.requests_per_second, *retry);
  }
  // The token of the request stays spent, since an attempt is one even if its bytes are too many.
  if (settings->bytes &&
      (retry = settings->bytes->TryTake(static_cast<double>(message_bytes), now))) {
    EndRequest();
    return RateLimited(name_, "bytes", config.bytes_per_second, *retry);
  }
  return absl::OkStatus();
}

absl::Status Tenant::CheckMayCall(absl::string_view operator_name) const {
  // The usual case, without the lock.
  if (may_call_all_.load(std::memory_order_relaxed)) return absl::OkStatus();
  const std::shared_ptr<const TenantConfig> config = this->config();
  const std::vector<std::string>& allowed = config->operators;
  if (allowed.empty() ||
      std::find(allowed.begin(), allowed.end(), operator_name) != allowed.end()) {
    return absl::OkStatus();
  }
  return MakeError(Reason::kForbidden,
                   absl::StrCat(operator_name, ": tenant ", name_, " may not call this operator"));
}

// Cannot fail: a configuration has fewer tenants than a daemon may ever have known.
Tenants::Tenants(const TenantsConfig& config) { Set(config).IgnoreError(); }

absl::Status Tenants::CheckCanSet(const TenantsConfig& config) const {
  absl::ReaderMutexLock lock(&mutex_);
  return CheckRoom(config);
}

absl::Status Tenants::CheckRoom(const TenantsConfig& config) const {
  size_t added = 0;
  for (const TenantConfig& tenant : config.tenants) added += !by_name_.contains(tenant.name);
  if (all_.size() + added <= kMaxTenantsEver) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "there were ", all_.size(), " tenants already; restart the daemon to have ", added, " more"));
}

absl::Status Tenants::Set(const TenantsConfig& config) {
  absl::MutexLock lock(&mutex_);
  OPSERVE_RETURN_IF_ERROR(CheckRoom(config));
  // Made aside and put in place at the end, so that each call sees the credentials of one
  // configuration.
  auto directory = std::make_shared<Directory>();
  for (const TenantConfig& tenant_config : config.tenants) {
    Tenant*& tenant = by_name_[tenant_config.name];
    // A tenant that comes back has its former id, and so its tensors and accounts.
    if (tenant == nullptr) {
      all_.push_back(std::make_unique<Tenant>(static_cast<uint32_t>(all_.size()), tenant_config));
      tenant = all_.back().get();
    } else {
      tenant->Set(tenant_config);
    }
    for (const TokenDigest& digest : tenant_config.token_digests) {
      directory->by_token_digest[std::string(digest.begin(), digest.end())] = tenant;
    }
    for (const std::string& name : tenant_config.certificate_names) {
      directory->by_certificate_name[name] = tenant;
    }
    for (uint32_t uid : tenant_config.uids) directory->by_uid[uid] = tenant;
    if (tenant_config.name == config.anonymous) directory->anonymous = tenant;
    directory->tenants.push_back(tenant);
  }
  const bool names_any = !directory->by_token_digest.empty() ||
                         !directory->by_certificate_name.empty() || !directory->by_uid.empty();
  only_anonymous_.store(names_any ? nullptr : directory->anonymous, std::memory_order_release);
  directory_ = std::move(directory);
  return absl::OkStatus();
}

std::shared_ptr<const Tenants::Directory> Tenants::directory() const {
  absl::ReaderMutexLock lock(&mutex_);
  return directory_;
}

absl::StatusOr<Tenant*> Tenants::Identify(const Credentials& credentials) const {
  const std::shared_ptr<const Directory> directory = this->directory();
  const auto unknown = [](absl::string_view problem) {
    return MakeError(Reason::kUnauthenticated, problem);
  };
  if (credentials.token) {
    // The time for this depends on a guessed token only through its digest, which no client can
    // steer; the last comparison takes the same time for any two digests.
    const std::string digest = DigestOf(*credentials.token);
    const auto found = directory->by_token_digest.find(digest);
    if (found != directory->by_token_digest.end() &&
        CRYPTO_memcmp(found->first.data(), digest.data(), digest.size()) == 0) {
      return found->second;
    }
    return unknown("the bearer token is not known");
  }
  for (const std::string& name : credentials.certificate_names) {
    const auto found = directory->by_certificate_name.find(name);
    if (found != directory->by_certificate_name.end()) return found->second;
  }
  if (credentials.uid) {
    const auto found = directory->by_uid.find(*credentials.uid);
    if (found != directory->by_uid.end()) return found->second;
  }
  if (directory->anonymous != nullptr) return directory->anonymous;
  return unknown("no credentials that are known: send authorization: Bearer TOKEN");
}

Tenant* Tenants::Find(absl::string_view name) const {
  for (Tenant* tenant : directory()->tenants) {
    if (tenant->name() == name) return tenant;
  }
  return nullptr;
}

bool Tenants::HasUid(uint32_t uid) const { return directory()->by_uid.contains(uid); }

std::vector<std::string> Tenants::Names() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const std::unique_ptr<Tenant>& tenant : all_) names.push_back(tenant->name());
  return names;
}

std::vector<Tenant*> Tenants::Current() const { return directory()->tenants; }

std::vector<TenantSettings> Tenants::Settings() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<TenantSettings> settings;
  for (uint32_t id = 0; id < all_.size(); ++id)
    // A tenant that a reload removed keeps its id, and memory until its last request ends.
    settings.push_back({.tenant = id, .is_configured = false});
  for (const Tenant* tenant : directory_->tenants) {
    const std::shared_ptr<const TenantConfig> config = tenant->config();
    settings[tenant->id()].is_configured = true;
    settings[tenant->id()].weight = config->weight;
    settings[tenant->id()].memory = ToLimits(config->device_memory);
    settings[tenant->id()].pinned = ToLimits(config->pinned_memory);
  }
  return settings;
}

}  // namespace opserve::server
