// Tasks of many tenants that wait for the lanes of one device, in the order in which they should
// run: fairly between tenants (tenant_shares.h); inside a tenant by priority, then by deadline,
// then by arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/schedule/policy/tenant_shares.h"

namespace opserve::server {

enum class Priority { kHigh, kNormal, kLow };

struct FairQueueOptions {
  size_t capacity = 4096;
  size_t capacity_per_tenant = 256;
  uint64_t work_per_tenant = UINT64_MAX;  // in elements
  uint32_t lanes = 1;                     // for retry hints
  std::mt19937_64 random = {};            // spreads retry hints
};

// Whatever waits.
struct QueuedTask {
  virtual ~QueuedTask() = default;
};

struct QueueEntry {
  std::unique_ptr<QueuedTask> task;
  const void* key = nullptr;  // to remove it by: unique among waiting entries; null: never removed
  uint32_t tenant = 0;
  Priority priority = Priority::kNormal;
  bool may_hold = false;  // its results can stay in device memory instead of pinned_bytes
  // It keeps device_bytes beyond its end, and starts only when its tenant may.
  bool must_hold = false;
  absl::Time deadline = absl::InfiniteFuture();
  // From when on it is not worth starting, the deadline at the latest: it would not end in time.
  absl::Time expiry = absl::InfiniteFuture();
  absl::Duration estimate = absl::ZeroDuration();  // lane time it will probably take
  // Of it, the time that is known from enough executions to refuse other tasks for.
  absl::Duration known_time = absl::ZeroDuration();
  uint64_t work = 0;                          // in elements, as operators count it
  uint64_t device_bytes = 0;                  // device memory it needs while it runs
  uint64_t pinned_bytes = 0;                  // page-locked memory it needs for its results
  uint64_t connection = 0;                    // that will read them; 0: none that matters
  absl::Time arrival = absl::InfinitePast();  // set by Push
};

// Not thread-safe. Every call takes O(log n) of the waiting entries, except those which hand out
// many entries.
//
// Entries of a connection that cannot start now may be set aside, so that others of their tenant go
// before them; the connection's later entries join them.
//
// While a tenant's first entry waits for device memory, only those go before it that need none:
// they are steps of work which has its memory already, perhaps that very memory, and gives it back
// when it is done. Before one that must hold its memory all others go: it may wait for a client,
// which nothing else of the tenant does.
//
// Invariants: depth() <= capacity; depth(t) <= capacity_per_tenant and queued_work(t) <=
// work_per_tenant for every tenant t; of each connection at most a quarter of capacity_per_tenant
// is set aside; a tenant is waiting in shares_ if and only if it has entries that are not set
// aside, one of which may be handed out (TenantQueue::ready), and is not parked.
class FairQueue {
 public:
  using Entry = QueueEntry;

  struct Started {
    Entry entry;
    TenantShares::Charge charge;  // for Ended
  };

  explicit FairQueue(FairQueueOptions options) : options_(std::move(options)) {}

  // kInvalidArgument: not from 1 to TenantShares::kMaxWeight.
  absl::Status SetWeight(uint32_t tenant, uint32_t weight) {
    return shares_.SetWeight(tenant, weight);
  }
  // Drops an idle tenant's record, its weight as well; see TenantShares.
  bool Forget(uint32_t tenant) { return depth(tenant) == 0 && shares_.Forget(tenant); }

  // Takes *entry if and only if the result is OK.
  // kResourceExhausted (reason "queue_full" or "tenant_queue_full", or "work_limit" if the tenant's
  // entries are more work than work_per_tenant; with a retry hint): full, or too many entries of
  // its connection are set aside.
  absl::Status Push(Entry* entry, absl::Time now);

  // Whether Push would take the entry, were its connection to have none set aside. Errors: as Push.
  absl::Status CheckRoom(const Entry& entry);

  // Takes *entry, for which there is room, as Push and then PopNext would: without a place in the
  // order, so only while nothing waits (depth() is 0).
  Started Start(Entry* entry, absl::Time now);

  // The next entry; null: no waiting entry could start. Valid until the next call that is not
  // const.
  const Entry* Next() const;
  // Takes the next entry, which must exist, and charges its tenant for it.
  Started PopNext();
  // Has had a lane for `so_far`, longer than it was charged for, and goes on.
  void GoesOn(absl::Duration so_far, TenantShares::Charge* charge) {
    shares_.Raise(so_far, charge);
  }
  // Once for everything that PopNext returned: it had a lane for `actual`.
  void Ended(const TenantShares::Charge& charge, absl::Duration actual) {
    shares_.End(charge, actual);
  }

  // Passes a tenant that has entries over, until it is unparked or has none left.
  void Park(uint32_t tenant);
  // Its next entry waits for device memory: passes it over, and those that may not go before it.
  void ParkForMemory(uint32_t tenant);
  bool IsParkedForMemory(uint32_t tenant) const {
    const auto found = waiting_.find(tenant);
    return found != waiting_.end() && found->second.passed != Passed::kNone;
  }
  // Ends both.
  void Unpark(uint32_t tenant);

  // Sets the next entry aside; it must exist and have a connection.
  void SetNextAside();
  // Puts the first of the connection's entries that are set aside, if any, back into the order;
  // returns its tenant.
  std::optional<uint32_t> PutBack(uint64_t connection);
  // Whether the tenant has entries that are not set aside.
  bool HasOrdered(uint32_t tenant) const {
    const auto found = waiting_.find(tenant);
    return found != waiting_.end() && !found->second.order.empty();
  }

  // Takes the entry with this key, if it waits here.
  std::optional<Entry> Remove(const void* key);
  // Takes everything, in order of arrival.
  std::vector<Entry> TakeAll();
  // Takes the expired entries, in order of their expiries: `now` or earlier.
  std::vector<Entry> TakeExpired(absl::Time now);

  size_t depth() const { return arrivals_.size(); }
  size_t depth(uint32_t tenant) const {
    const auto found = waiting_.find(tenant);
    return found == waiting_.end() ? 0 : found->second.order.size() + found->second.aside;
  }
  // Lane time that a tenant's entries will probably take, without those that are set aside.
  absl::Duration queued_time(uint32_t tenant) const {
    const auto found = waiting_.find(tenant);
    return found == waiting_.end() ? absl::ZeroDuration() : found->second.time;
  }
  // Of it, the time that is known well enough to refuse a request for.
  absl::Duration known_time(uint32_t tenant) const {
    const auto found = waiting_.find(tenant);
    return found == waiting_.end() ? absl::ZeroDuration() : found->second.known_time;
  }
  // Work of a tenant's entries, in elements.
  uint64_t queued_work(uint32_t tenant) const {
    const auto found = waiting_.find(tenant);
    return found == waiting_.end() ? 0 : found->second.work;
  }
  // InfiniteFuture: nothing waits.
  absl::Time oldest_arrival() const {
    return arrivals_.empty() ? absl::InfiniteFuture() : arrivals_.front().entry.arrival;
  }
  absl::Time earliest_expiry() const {
    return expiries_.empty() ? absl::InfiniteFuture() : expiries_.begin()->first.time;
  }
  absl::Duration Lag(uint32_t tenant) const { return shares_.Lag(tenant); }
  void VisitLags(TenantShares::LagVisitor visit) const { shares_.VisitLags(visit); }
  size_t known_tenants() const { return shares_.known_tenants(); }

 private:
  // A decision costs about this; a tenant with work at no cost would never let another take its
  // turn.
  static constexpr absl::Duration kLeastEstimate = absl::Microseconds(1);

  struct Waiting {
    Entry entry;
    uint64_t number;  // in order of arrival
    bool is_aside = false;
  };
  using Arrivals = std::list<Waiting>;

  struct TurnInTenant {
    Priority priority;
    absl::Time deadline;
    uint64_t number;
    bool operator<(const TurnInTenant& other) const {
      if (priority != other.priority) return priority < other.priority;
      if (deadline != other.deadline) return deadline < other.deadline;
      return number < other.number;
    }
  };
  struct Expiry {
    absl::Time time;
    uint64_t number;
    bool operator<(const Expiry& other) const {
      return time != other.time ? time < other.time : number < other.number;
    }
  };
  using Order = absl::btree_map<TurnInTenant, Arrivals::iterator>;
  // Which of a tenant's entries are passed over, for one of them waits for memory.
  enum class Passed { kNone, kHolding, kAllWithMemory };
  struct TenantQueue {
    Order order;
    size_t aside = 0;     // entries that are not in it
    absl::Duration time;  // of those that are
    absl::Duration known_time;
    uint64_t work = 0;  // of all
    // Entries of `order`: that need not hold memory, and that need none.
    Order not_holding;
    Order without_memory;
    Passed passed = Passed::kNone;
    bool is_parked = false;  // all are passed over

    // Those that may be handed out, unless it is parked.
    const Order& ready() const {
      return passed == Passed::kNone      ? order
             : passed == Passed::kHolding ? not_holding
                                          : without_memory;
    }
  };

  static TurnInTenant TurnOf(const Waiting& waiting) {
    return {waiting.entry.priority, waiting.entry.deadline, waiting.number};
  }
  // Sets the times that depend on when the entry came.
  static void NoteArrival(Entry* entry, absl::Time now);
  // When a tenant's entries will have been served, at its share of the lanes.
  int64_t TenantPushback(uint32_t tenant);
  absl::Status CheckRoomAside(const Entry& entry);
  void PutInOrder(TenantQueue* queue, Arrivals::iterator waiting);
  // Returns whether the tenant has others that may be handed out.
  bool TakeOutOfOrder(TenantQueue* queue, Arrivals::iterator waiting);
  void TakeFromAside(TenantQueue* queue, Arrivals::iterator waiting);
  // Does everything but tell shares_; returns whether the tenant has entries left to hand out.
  std::pair<Entry, bool> Take(Arrivals::iterator waiting);
  Entry TakeAndStopWaiting(Arrivals::iterator waiting);

  FairQueueOptions options_;
  TenantShares shares_;
  Arrivals arrivals_;                                   // owns waiting entries, in order of arrival
  absl::flat_hash_map<uint32_t, TenantQueue> waiting_;  // tenants that have entries
  absl::flat_hash_map<uint64_t, Order> aside_;          // by connection; none is empty
  absl::btree_map<Expiry, Arrivals::iterator> expiries_;
  absl::flat_hash_map<const void*, Arrivals::iterator> keys_;
  absl::Duration queued_time_;
  uint64_t numbers_ = 0;
};

}  // namespace opserve::server
