// Tasks of many tenants that wait for the lanes of one device, in the order in which they should
// run: fairly between tenants (tenant_shares.h); inside a tenant by priority, then by deadline,
// then by arrival.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/scheduling/retry_pushback.h"
#include "server/scheduling/tenant_shares.h"

namespace opserve::server {

enum class Priority { kHigh, kNormal, kLow };

struct FairQueueOptions {
  size_t capacity = 4096;
  size_t capacity_per_tenant = 256;
  uint64_t work_per_tenant = UINT64_MAX;  // in elements
  uint32_t lanes = 1;                     // for retry hints
  std::mt19937_64 random = {};            // spreads retry hints
};

// A task that waits. `Payload` is movable.
template <typename Payload>
struct QueueEntry {
  Payload payload;
  const void* key = nullptr;  // to remove it by: unique among waiting entries; null: never removed
  uint32_t tenant = 0;
  Priority priority = Priority::kNormal;
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
// Invariants: depth() <= capacity; depth(t) <= capacity_per_tenant and queued_work(t) <=
// work_per_tenant for every tenant t; of each connection at most a quarter of capacity_per_tenant
// is set aside; a tenant is waiting in shares_ if and only if it has entries that are not set aside
// and is not parked.
template <typename Payload>
class FairQueue {
 public:
  using Entry = QueueEntry<Payload>;

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
  using Order = absl::btree_map<TurnInTenant, typename Arrivals::iterator>;
  struct TenantQueue {
    Order order;
    size_t aside = 0;     // entries that are not in it
    absl::Duration time;  // of those that are
    absl::Duration known_time;
    uint64_t work = 0;  // of all
    bool is_parked = false;
  };

  static TurnInTenant TurnOf(const Waiting& waiting) {
    return {waiting.entry.priority, waiting.entry.deadline, waiting.number};
  }
  // Sets the times that depend on when the entry came.
  static void NoteArrival(Entry* entry, absl::Time now);
  // When a tenant's entries will have been served, at its share of the lanes.
  int64_t TenantPushback(uint32_t tenant);
  absl::Status CheckRoomAside(const Entry& entry);
  void PutInOrder(TenantQueue* queue, typename Arrivals::iterator waiting);
  void TakeOutOfOrder(TenantQueue* queue, typename Arrivals::iterator waiting);
  void TakeFromAside(TenantQueue* queue, typename Arrivals::iterator waiting);
  // Does everything but tell shares_; returns whether the tenant has entries left in its order.
  std::pair<Entry, bool> Take(typename Arrivals::iterator waiting);
  Entry TakeAndStopWaiting(typename Arrivals::iterator waiting);

  FairQueueOptions options_;
  TenantShares shares_;
  Arrivals arrivals_;                                   // owns waiting entries, in order of arrival
  absl::flat_hash_map<uint32_t, TenantQueue> waiting_;  // tenants that have entries
  absl::flat_hash_map<uint64_t, Order> aside_;          // by connection; none is empty
  absl::btree_map<Expiry, typename Arrivals::iterator> expiries_;
  absl::flat_hash_map<const void*, typename Arrivals::iterator> keys_;
  absl::Duration queued_time_;
  uint64_t numbers_ = 0;
};

template <typename Payload>
int64_t FairQueue<Payload>::TenantPushback(uint32_t tenant) {
  const auto others = static_cast<double>(shares_.waiting_weight());
  const double share = std::min(1.0, shares_.weight(tenant) / std::max(1.0, others));
  return PushbackMilliseconds(queued_time(tenant) / options_.lanes / share, options_.random);
}

template <typename Payload>
absl::Status FairQueue<Payload>::CheckRoom(const Entry& entry) {
  const uint32_t tenant = entry.tenant;
  if (depth(tenant) >= options_.capacity_per_tenant) {
    return MakeError(Reason::kTenantQueueFull,
                     absl::StrCat("the tenant's queue is full with ", depth(tenant), " requests"),
                     TenantPushback(tenant));
  }
  // Few requests can be more work than their count tells. The subtraction cannot overflow: the
  // waiting work is within the bound.
  if (entry.work > options_.work_per_tenant - queued_work(tenant)) {
    return MakeError(Reason::kWorkLimit,
                     absl::StrCat("the request computes ", entry.work,
                                  " elements; the tenant's queue has ", queued_work(tenant),
                                  ", at most ", options_.work_per_tenant, " may wait for a device"),
                     TenantPushback(tenant));
  }
  if (depth() >= options_.capacity) {
    return MakeError(Reason::kQueueFull,
                     absl::StrCat("the queue is full with ", depth(), " requests"),
                     PushbackMilliseconds(queued_time_ / options_.lanes, options_.random));
  }
  return absl::OkStatus();
}

template <typename Payload>
void FairQueue<Payload>::NoteArrival(Entry* entry, absl::Time now) {
  entry->arrival = now;
  entry->estimate = std::max(entry->estimate, kLeastEstimate);
  entry->expiry = std::min(entry->expiry, entry->deadline);
}

template <typename Payload>
typename FairQueue<Payload>::Started FairQueue<Payload>::Start(Entry* entry, absl::Time now) {
  NoteArrival(entry, now);
  const TenantShares::Charge charge =
      shares_.Start(entry->tenant, entry->estimate, /*waits_on=*/false);
  return {std::move(*entry), charge};
}

template <typename Payload>
absl::Status FairQueue<Payload>::Push(Entry* entry, absl::Time now) {
  const uint32_t tenant = entry->tenant;
  OPSERVE_RETURN_IF_ERROR(CheckRoom(*entry));
  OPSERVE_RETURN_IF_ERROR(CheckRoomAside(*entry));
  NoteArrival(entry, now);
  arrivals_.push_back({std::move(*entry), ++numbers_});
  const auto waiting = std::prev(arrivals_.end());
  const Entry& queued = waiting->entry;
  TenantQueue& queue = waiting_[tenant];
  queue.work += queued.work;
  const auto aside = aside_.find(queued.connection);
  if (aside != aside_.end()) {
    waiting->is_aside = true;
    aside->second.emplace(TurnOf(*waiting), waiting);
    ++queue.aside;
  } else {
    PutInOrder(&queue, waiting);
  }
  if (queued.expiry != absl::InfiniteFuture()) {
    expiries_.emplace(Expiry{queued.expiry, waiting->number}, waiting);
  }
  if (queued.key != nullptr) keys_.emplace(queued.key, waiting);
  return absl::OkStatus();
}

template <typename Payload>
absl::Status FairQueue<Payload>::CheckRoomAside(const Entry& entry) {
  const auto aside = aside_.find(entry.connection);
  if (aside == aside_.end()) return absl::OkStatus();
  const size_t most = std::max<size_t>(options_.capacity_per_tenant / 4, 1);
  if (aside->second.size() < most) return absl::OkStatus();
  return MakeError(
      Reason::kTenantQueueFull,
      absl::StrCat(aside->second.size(),
                   " requests of this connection wait until it has read "
                   "earlier results"),
      PushbackMilliseconds(queued_time(entry.tenant) / options_.lanes, options_.random));
}

template <typename Payload>
void FairQueue<Payload>::PutInOrder(TenantQueue* queue, typename Arrivals::iterator waiting) {
  const Entry& entry = waiting->entry;
  queue->order.emplace(TurnOf(*waiting), waiting);
  queue->time += entry.estimate;
  queue->known_time += entry.known_time;
  queued_time_ += entry.estimate;
  if (queue->order.size() == 1) shares_.StartWaiting(entry.tenant);
}

template <typename Payload>
void FairQueue<Payload>::TakeOutOfOrder(TenantQueue* queue, typename Arrivals::iterator waiting) {
  const Entry& entry = waiting->entry;
  queue->order.erase(TurnOf(*waiting));
  queue->time -= entry.estimate;
  queue->known_time -= entry.known_time;
  queued_time_ -= entry.estimate;
  if (queue->order.empty()) queue->is_parked = false;
}

template <typename Payload>
void FairQueue<Payload>::TakeFromAside(TenantQueue* queue, typename Arrivals::iterator waiting) {
  const auto aside = aside_.find(waiting->entry.connection);
  aside->second.erase(TurnOf(*waiting));
  if (aside->second.empty()) aside_.erase(aside);
  --queue->aside;
  waiting->is_aside = false;
}

template <typename Payload>
void FairQueue<Payload>::SetNextAside() {
  const uint32_t tenant = *shares_.Next();
  TenantQueue& queue = waiting_.find(tenant)->second;
  const auto waiting = queue.order.begin()->second;
  TakeOutOfOrder(&queue, waiting);
  if (queue.order.empty()) shares_.StopWaiting(tenant);
  waiting->is_aside = true;
  aside_[waiting->entry.connection].emplace(TurnOf(*waiting), waiting);
  ++queue.aside;
}

template <typename Payload>
std::optional<uint32_t> FairQueue<Payload>::PutBack(uint64_t connection) {
  const auto aside = aside_.find(connection);
  if (aside == aside_.end()) return std::nullopt;
  const auto waiting = aside->second.begin()->second;
  TenantQueue& queue = waiting_.find(waiting->entry.tenant)->second;
  TakeFromAside(&queue, waiting);
  PutInOrder(&queue, waiting);
  return waiting->entry.tenant;
}

template <typename Payload>
const QueueEntry<Payload>* FairQueue<Payload>::Next() const {
  const std::optional<uint32_t> tenant = shares_.Next();
  if (!tenant) return nullptr;
  return &waiting_.find(*tenant)->second.order.begin()->second->entry;
}

template <typename Payload>
typename FairQueue<Payload>::Started FairQueue<Payload>::PopNext() {
  const uint32_t tenant = *shares_.Next();
  auto [entry, waits_on] = Take(waiting_.find(tenant)->second.order.begin()->second);
  const TenantShares::Charge charge = shares_.Start(tenant, entry.estimate, waits_on);
  return {std::move(entry), charge};
}

template <typename Payload>
std::pair<QueueEntry<Payload>, bool> FairQueue<Payload>::Take(typename Arrivals::iterator waiting) {
  const auto queue = waiting_.find(waiting->entry.tenant);
  if (waiting->is_aside) {
    TakeFromAside(&queue->second, waiting);
  } else {
    TakeOutOfOrder(&queue->second, waiting);
  }
  Entry entry = std::move(waiting->entry);
  queue->second.work -= entry.work;
  const bool has_more = !queue->second.order.empty();
  if (!has_more && queue->second.aside == 0) waiting_.erase(queue);
  if (entry.expiry != absl::InfiniteFuture()) {
    expiries_.erase({entry.expiry, waiting->number});
  }
  if (entry.key != nullptr) keys_.erase(entry.key);
  arrivals_.erase(waiting);
  return {std::move(entry), has_more};
}

template <typename Payload>
QueueEntry<Payload> FairQueue<Payload>::TakeAndStopWaiting(typename Arrivals::iterator waiting) {
  auto [entry, has_more] = Take(waiting);
  if (!has_more) shares_.StopWaiting(entry.tenant);
  return std::move(entry);
}

template <typename Payload>
void FairQueue<Payload>::Park(uint32_t tenant) {
  waiting_.find(tenant)->second.is_parked = true;
  shares_.StopWaiting(tenant);
}

template <typename Payload>
void FairQueue<Payload>::Unpark(uint32_t tenant) {
  const auto queue = waiting_.find(tenant);
  if (queue == waiting_.end() || !queue->second.is_parked) return;
  queue->second.is_parked = false;
  shares_.StartWaiting(tenant);
}

template <typename Payload>
std::optional<QueueEntry<Payload>> FairQueue<Payload>::Remove(const void* key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  return TakeAndStopWaiting(found->second);
}

template <typename Payload>
std::vector<QueueEntry<Payload>> FairQueue<Payload>::TakeAll() {
  std::vector<Entry> entries;
  entries.reserve(depth());
  while (!arrivals_.empty()) entries.push_back(TakeAndStopWaiting(arrivals_.begin()));
  return entries;
}

template <typename Payload>
std::vector<QueueEntry<Payload>> FairQueue<Payload>::TakeExpired(absl::Time now) {
  std::vector<Entry> entries;
  while (!expiries_.empty() && expiries_.begin()->first.time <= now) {
    entries.push_back(TakeAndStopWaiting(expiries_.begin()->second));
  }
  return entries;
}

}  // namespace opserve::server
