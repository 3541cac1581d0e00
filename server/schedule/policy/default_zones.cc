#include "server/schedule/policy/default_zones.h"

#include <algorithm>

#include "absl/numeric/int128.h"

namespace opserve::server {
namespace {

constexpr uint64_t kNotConfigured = UINT64_MAX;

size_t CountConfigured(absl::Span<const TenantSettings> tenants) {
  return static_cast<size_t>(
      std::count_if(tenants.begin(), tenants.end(),
                    [](const TenantSettings& tenant) { return tenant.is_configured; }));
}

uint64_t Part(uint64_t bytes, uint64_t weight, uint64_t weights) {
  // In 128 bits, since bytes times weight may not fit 64.
  return static_cast<uint64_t>(absl::uint128(bytes) * weight / weights);
}

}  // namespace

void SetResidentBytes(uint64_t capacity, std::vector<TenantSettings>* tenants) {
  uint64_t unreserved = capacity;
  uint64_t weights = 0;
  for (const TenantSettings& tenant : *tenants) {
    unreserved -= std::min(unreserved, tenant.memory.reserved);
    if (tenant.is_configured) weights += tenant.weight;
  }
  const bool is_shared = CountConfigured(*tenants) > 1;
  for (TenantSettings& tenant : *tenants) {
    // The configuration's word, or no limit for a tenant that is alone.
    tenant.resident_bytes = tenant.memory.soft;
    if (tenant.memory.soft != kNotConfigured || !is_shared) continue;
    // A tenant that a reload has removed may keep its tensors, but gets no more memory.
    tenant.resident_bytes = tenant.is_configured
                                ? tenant.memory.reserved + Part(unreserved, tenant.weight, weights)
                                : 0;
  }
}

std::vector<TenantSettings> WithPinnedZones(absl::Span<const TenantSettings> tenants,
                                            uint64_t capacity) {
  std::vector<TenantSettings> zoned(tenants.begin(), tenants.end());
  // A tenant that is alone may have all of it.
  if (CountConfigured(tenants) < 2) return zoned;
  uint64_t unreserved = capacity;
  uint64_t weights = 0;
  for (const TenantSettings& tenant : tenants) {
    unreserved -= std::min(unreserved, tenant.pinned.reserved);
    if (tenant.is_configured && tenant.pinned.reserved == 0) weights += tenant.weight;
  }
  const uint64_t lent = unreserved / 2;
  for (TenantSettings& tenant : zoned) {
    if (!tenant.is_configured) continue;
    MemoryLimits& pinned = tenant.pinned;
    if (pinned.reserved == 0) {
      pinned.reserved = std::min(Part(unreserved - lent, tenant.weight, weights), pinned.soft);
    }
    if (pinned.hard == kNotConfigured) pinned.hard = pinned.reserved + lent / 2;
    // A soft limit that is configured stays, and the hard one is not below it.
    pinned.hard = std::max(pinned.hard, pinned.soft == kNotConfigured ? 0 : pinned.soft);
    pinned.soft = std::min(pinned.soft, pinned.hard);
  }
  return zoned;
}

}  // namespace opserve::server
