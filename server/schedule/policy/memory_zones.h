// How much of one memory (a device's, page-locked or shared) each tenant may have at a time.
//
// A tenant has three limits: a reservation, which no other tenant gets even while it is idle; a
// soft limit, up to which it shares the unreserved memory with all others; and a hard one. Between
// soft and hard it gets only memory for which no tenant within its soft limit waits. A tenant
// without any memory counts as within, so every tenant makes progress.
//
// A waiting tenant is passed by others that need less, so that a lane does not stay idle for it,
// but not for ever: after kMostPasses the unreserved memory is held for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace opserve::server {

// Bytes: reserved <= soft <= hard.
struct MemoryLimits {
  uint64_t reserved = 0;
  uint64_t soft = UINT64_MAX;
  uint64_t hard = UINT64_MAX;
};

// Counts bytes; it has no memory itself. Not thread-safe. Every call takes O(log n) of the waiting
// tenants, except those which change reservations: O(n log n).
//
// Invariants: used() <= capacity; used(t) <= its hard limit when it was taken; the sum over all
// tenants of max(used, reserved) <= capacity, except after a reservation grew into lent memory,
// until that is given back.
class MemoryZones {
 public:
  static constexpr uint32_t kMostPasses = 64;

  explicit MemoryZones(uint64_t capacity) : capacity_(capacity) {}

  // A tenant without them has the default limits. A tenant above its new limits keeps its memory;
  // they hold for later requests.
  // kInvalidArgument: not in order.  kFailedPrecondition: more would be reserved than there is.
  absl::Status SetLimits(uint32_t tenant, const MemoryLimits& limits);

  // Drops a tenant's account and limits. False, and nothing happens: it has memory or
  // waits.
  bool Forget(uint32_t tenant);

  // Whether TryTake would succeed.
  bool WouldFit(uint32_t tenant, uint64_t bytes) const;
  // False: not now, and nothing happens.
  bool TryTake(uint32_t tenant, uint64_t bytes);
  // Gives back bytes that TryTake took.
  void Give(uint32_t tenant, uint64_t bytes);

  // Whether a tenant could have so much if the others used no more than their reservations.
  bool CanEverFit(uint32_t tenant, uint64_t bytes) const;
  // Whether it could never have so much because of its hard limit.
  bool IsAboveHardLimit(uint32_t tenant, uint64_t bytes) const;

  // The tenant waits for memory for one thing of `bytes`, until StopWaiting. Called again, it keeps
  // its turn.
  void Wait(uint32_t tenant, uint64_t bytes);
  void StopWaiting(uint32_t tenant);
  // A tenant that could have the bytes it waits for now, and was not told since its Wait.
  std::optional<uint32_t> NextThatFits() const;
  void Tell(uint32_t tenant);

  // Whether there is one that waits for memory which others have.
  bool AnybodyWaits() const {
    return !classes_[kWithin].turns.empty() || !classes_[kAbove].turns.empty();
  }

  // Tenants that wait, those included that wait for memory of their own.
  const absl::btree_set<uint32_t>& waiting() const { return waiting_; }

  MemoryLimits limits(uint32_t tenant) const;
  uint64_t used() const { return used_; }
  uint64_t used(uint32_t tenant) const;
  uint64_t capacity() const { return capacity_; }

 private:
  struct Waiting {
    uint64_t turn = 0;
    uint64_t bytes = 0;
    uint32_t passes = 0;  // others took memory meanwhile
    bool was_told = false;
  };
  struct Tenant {
    MemoryLimits limits;
    uint64_t used = 0;
    std::optional<Waiting> waiting;
  };
  struct Turn {
    uint64_t turn;
    uint32_t tenant;
    bool operator<(const Turn& other) const { return turn < other.turn; }
  };
  struct Need {
    uint64_t bytes;
    uint64_t turn;
    uint32_t tenant;
    bool operator<(const Need& other) const {
      return bytes != other.bytes ? bytes < other.bytes : turn < other.turn;
    }
  };
  // Waiting tenants that other tenants' memory could serve. (A tenant at its hard limit waits for
  // itself alone. One that changed limits have shut out must not keep others from memory.)
  struct Class {
    absl::btree_set<Turn> turns;
    absl::btree_set<Need> untold;  // by their need of unreserved memory
  };

  // Classes of asks: within the soft limit, or above it.
  static constexpr size_t kWithin = 0;
  static constexpr size_t kAbove = 1;
  static size_t ClassOf(const Tenant& tenant, uint64_t bytes);
  // Of the memory that is not reserved.
  static uint64_t NeedOf(const Tenant& tenant, uint64_t bytes);
  static bool IsWithinHard(const Tenant& tenant, uint64_t bytes) {
    return tenant.used <= tenant.limits.hard && bytes <= tenant.limits.hard - tenant.used;
  }

  uint64_t FreeUnreserved() const { return capacity_ > promised_ ? capacity_ - promised_ : 0; }
  bool Fits(uint32_t id, const Tenant& tenant, uint64_t bytes) const;
  bool MustLeaveToOthers(uint32_t id, const Tenant& tenant, uint64_t bytes) const;
  void CountPass(uint32_t taker, size_t class_index);

  // A waiting tenant's order depends on its memory: it is delisted while that changes.
  void Enlist(uint32_t id, const Tenant& tenant);
  void Delist(uint32_t id, const Tenant& tenant);
  void Change(uint32_t id, Tenant* tenant, const MemoryLimits& limits, uint64_t used);
  // Changes which waiting requests can ever be served, of all tenants.
  void SetReserved(uint64_t reserved);

  const uint64_t capacity_;
  absl::flat_hash_map<uint32_t, Tenant> tenants_;
  absl::btree_set<uint32_t> waiting_;  // tenants
  Class classes_[2];
  uint64_t reserved_ = 0;  // sum over tenants
  uint64_t used_ = 0;
  uint64_t promised_ = 0;  // sum over tenants of max(used, reserved)
  uint64_t turns_ = 0;
};

}  // namespace opserve::server
