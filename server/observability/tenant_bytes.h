// Bytes of some memory that tenants have now, for metrics.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "server/observability/tenant_slot.h"

namespace opserve::server {

// Takes no locks. Thread-safe.
class TenantBytes {
 public:
  void Add(uint32_t tenant, uint64_t bytes) {
    bytes_[TenantSlot(tenant)].fetch_add(bytes, std::memory_order_relaxed);
  }
  void Subtract(uint32_t tenant, uint64_t bytes) {
    bytes_[TenantSlot(tenant)].fetch_sub(bytes, std::memory_order_relaxed);
  }
  uint64_t OfSlot(size_t slot) const { return bytes_[slot].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kTenantSlots> bytes_ = {};
};

}  // namespace opserve::server
