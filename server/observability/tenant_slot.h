// Tenants as metrics know them: a bounded set, however many there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace opserve::server {

// The first tenants have a slot of their own; those beyond share one, and calls that are nobody's
// another.
inline constexpr size_t kNamedTenantSlots = 200;
inline constexpr size_t kOtherTenants = kNamedTenantSlots;
inline constexpr size_t kNobody = kNamedTenantSlots + 1;
inline constexpr size_t kTenantSlots = kNamedTenantSlots + 2;

inline size_t TenantSlot(uint32_t id) { return std::min<size_t>(id, kOtherTenants); }

// The label's value. `names`: of tenants, by id.
inline std::string TenantLabel(size_t slot, absl::Span<const std::string> names) {
  if (slot == kOtherTenants) return "_other";
  return slot < names.size() ? names[slot] : "_nobody";
}

}  // namespace opserve::server
