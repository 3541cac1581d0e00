// What tenants have of memory that they share with the daemon, all doors together.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/observability/tenant_amounts.h"

namespace opserve::server {

// Of one tenant.
struct SharedMemoryLimits {
  uint64_t max_bytes = 0;
  uint32_t max_regions = 0;
};

// Thread-safe. Outlives what is taken.
class SharedMemoryQuota {
 public:
  SharedMemoryQuota() = default;
  SharedMemoryQuota(const SharedMemoryQuota&) = delete;
  SharedMemoryQuota& operator=(const SharedMemoryQuota&) = delete;

  // Counts a region of `bytes` bytes until the result is destroyed.
  // kResourceExhausted (reason "tenant_memory", pushback -1): over the tenant's limits.
  absl::StatusOr<std::shared_ptr<void>> Take(uint32_t tenant, uint64_t bytes,
                                             const SharedMemoryLimits& limits)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What tenants have, without a lock.
  const TenantAmounts& tenant_bytes() const { return tenant_bytes_; }
  const TenantAmounts& tenant_regions() const { return tenant_regions_; }  // their number

 private:
  struct Usage {
    uint64_t bytes = 0;
    uint32_t regions = 0;
  };
  class Charge;

  void GiveBack(uint32_t tenant, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  absl::flat_hash_map<uint32_t, Usage> usage_ ABSL_GUARDED_BY(mutex_);  // without unused ones
  TenantAmounts tenant_bytes_;
  TenantAmounts tenant_regions_;
};

}  // namespace opserve::server
