// Tenants as metrics count them: a bounded set, however many there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace opserve::server {

// The first tenants have a slot of their own; those beyond share one, and calls without a tenant
// another. TenantSeries has the labels.
inline constexpr size_t kNamedTenantSlots = 200;
inline constexpr size_t kOtherTenants = kNamedTenantSlots;
inline constexpr size_t kNobody = kNamedTenantSlots + 1;
inline constexpr size_t kTenantSlots = kNamedTenantSlots + 2;

// Stands in for an id where work is done for no tenant.
inline constexpr uint32_t kNobodysId = UINT32_MAX;

inline size_t TenantSlot(uint32_t id) {
  return id == kNobodysId ? kNobody : std::min<size_t>(id, kOtherTenants);
}

}  // namespace opserve::server
