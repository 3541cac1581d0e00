// How much of a device's memory each tenant's resident tensors have, uploads included, and may
// have.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {

// Counts bytes; it has no memory itself. Not thread-safe.
class ResidentShares {
 public:
  // Holds for bytes taken from now on. A tenant without a limit may take any number.
  void SetLimit(uint32_t tenant, uint64_t bytes) { tenants_[tenant].limit = bytes; }

  // OK: the tenant may add `bytes`.
  // kFailedPrecondition (reason "tenant_memory", pushback -1): more than the limit.
  // kResourceExhausted (reason "tenant_memory", with a retry hint): more than is left of it.
  absl::Status Check(uint32_t tenant, uint64_t bytes) const {
    const Tenant known = Of(tenant);
    if (bytes <= Left(known)) return absl::OkStatus();
    const bool can_fit = bytes <= known.limit;
    return MakeError(
        Reason::kTenantMemory,
        can_fit ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kFailedPrecondition,
        absl::StrCat(bytes,
                     " bytes more for resident tensors exceed the tenant's part of the "
                     "device, ",
                     known.limit, " bytes, of which ", known.used,
                     " are in use; it is the tenant's device_memory.soft_bytes or, without "
                     "that, its part of --workspace_max_bytes by its weight"),
        can_fit ? kPushbackMs : -1);
  }
  void Add(uint32_t tenant, uint64_t bytes) { tenants_[tenant].used += bytes; }
  void Subtract(uint32_t tenant, uint64_t bytes) { tenants_[tenant].used -= bytes; }

  // The bytes that the tenant may still add.
  uint64_t Left(uint32_t tenant) const { return Left(Of(tenant)); }

 private:
  // The tenant itself makes room, when it releases a tensor.
  static constexpr int64_t kPushbackMs = 1000;

  struct Tenant {
    uint64_t limit = UINT64_MAX;
    uint64_t used = 0;
  };
  Tenant Of(uint32_t tenant) const {
    const auto found = tenants_.find(tenant);
    return found == tenants_.end() ? Tenant() : found->second;
  }
  static uint64_t Left(const Tenant& tenant) {
    return tenant.used < tenant.limit ? tenant.limit - tenant.used : 0;
  }

  absl::flat_hash_map<uint32_t, Tenant> tenants_;
};

}  // namespace opserve::server
