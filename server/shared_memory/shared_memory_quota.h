// Accounts for the memory that tenants share with the daemon, through either interface.
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

// Thread-safe. Outlives the charges it gives out.
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

  // The tenants' bytes, without a lock.
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
