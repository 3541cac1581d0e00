// The tenants' part of the configuration, checked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/server_config.pb.h"

namespace opserve::server {

inline constexpr absl::string_view kDefaultTenantName = "default";

using TokenDigest = std::array<uint8_t, 32>;  // SHA-256

struct ZoneConfig {
  uint64_t reserved_bytes = 0;
  uint64_t soft_bytes = UINT64_MAX;  // at least reserved_bytes
  uint64_t hard_bytes = UINT64_MAX;  // at least soft_bytes

  friend bool operator==(const ZoneConfig&, const ZoneConfig&) = default;
};

struct TenantConfig {
  std::string name;
  std::vector<TokenDigest> token_digests;
  std::vector<std::string> certificate_names;  // canonical, as certificate_name.h says
  std::vector<uint32_t> uids;
  std::vector<std::string> operators;  // empty: all
  uint32_t weight = 1;
  uint64_t requests_per_second = 0;  // 0: any number
  uint64_t bytes_per_second = 0;
  uint32_t max_pending_requests = 1024;
  ZoneConfig device_memory;  // on each device
  ZoneConfig pinned_memory;
  uint64_t shared_memory_bytes = uint64_t{4} << 30;
  uint32_t shared_memory_regions = 256;
};

struct TenantsConfig {
  std::vector<TenantConfig> tenants;  // at least one; the built-in "default" if none is configured
  std::string anonymous;              // name of a tenant, or empty
};

// kInvalidArgument: names the tenant, the field and its rule. Among others: two tenants with the
// same name, token, certificate name or user id.
absl::StatusOr<TenantsConfig> TenantsFrom(const config::ServerConfig& values);

// Whether a reload may replace the tenants of `now` by those of `next`.
// kDataLoss: `now` has tenants and `next` has none; or some in `now` are known by tokens (or by
// certificates, or by users) and none in `next`. Allowed if `next` says allow_no_tenants.
absl::Status CheckKeepsTenants(const config::ServerConfig& now, const config::ServerConfig& next);
// Settings that are valid and probably not meant, a sentence each.
std::vector<std::string> TenantWarnings(const config::ServerConfig& values);

}  // namespace opserve::server
