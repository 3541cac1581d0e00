// The parts of the memories that tenants get when the configuration gives them none.
//
// Resident tensors and results that wait for their readers stay for as long as their owners want.
// Without bounds one tenant could keep all of a memory, and the others would wait for its leases
// or its readers. The weights decide the bounds, as they do for lane time. A tenant that is alone
// has none.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/schedule/policy/tenant_settings.h"

namespace opserve::server {

// Sets resident_bytes of each tenant for a device that lends `capacity` bytes: the soft limit of
// its device memory if the configuration has one, else its reservation and its part, by weight, of
// the unreserved memory. Without configured soft limits the sum is at most `capacity`.
void SetResidentBytes(uint64_t capacity, std::vector<TenantSettings>* tenants);

// The zones of `capacity` bytes of page-locked memory. Half of the memory that the configuration
// reserves for no tenant is divided, by weight, among the tenants without a reservation of their
// own, and reserved for them, so that their results never wait for another tenant's readers. The
// other half is lent: a tenant without a configured hard limit gets at most half of that, so that
// one tenant's readers cannot keep it from the others.
std::vector<TenantSettings> WithPinnedZones(absl::Span<const TenantSettings> tenants,
                                            uint64_t capacity);

}  // namespace opserve::server
