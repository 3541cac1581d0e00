// How much of something tenants have now (bytes of a memory, requests that wait), for metrics.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "server/observability/tenant_slot.h"

namespace opserve::server {

// Takes no locks. Thread-safe.
class TenantAmounts {
 public:
  void Add(uint32_t tenant, uint64_t amount) {
    amounts_[TenantSlot(tenant)].fetch_add(amount, std::memory_order_relaxed);
  }
  void Subtract(uint32_t tenant, uint64_t amount) {
    amounts_[TenantSlot(tenant)].fetch_sub(amount, std::memory_order_relaxed);
  }
  uint64_t OfSlot(size_t slot) const { return amounts_[slot].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kTenantSlots> amounts_ = {};
};

}  // namespace opserve::server
