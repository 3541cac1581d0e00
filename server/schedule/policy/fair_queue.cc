#include "server/schedule/policy/fair_queue.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/schedule/policy/retry_pushback.h"

namespace opserve::server {

int64_t FairQueue::TenantPushback(uint32_t tenant) {
  const auto others = static_cast<double>(shares_.waiting_weight());
  const double share = std::min(1.0, shares_.weight(tenant) / std::max(1.0, others));
  return PushbackMilliseconds(queued_time(tenant) / options_.lanes / share, options_.random);
}

absl::Status FairQueue::CheckRoom(const Entry& entry) {
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

void FairQueue::NoteArrival(Entry* entry, absl::Time now) {
  entry->arrival = now;
  entry->estimate = std::max(entry->estimate, kLeastEstimate);
  entry->expiry = std::min(entry->expiry, entry->deadline);
}

FairQueue::Started FairQueue::Start(Entry* entry, absl::Time now) {
  NoteArrival(entry, now);
  const TenantShares::Charge charge =
      shares_.Start(entry->tenant, entry->estimate, /*waits_on=*/false);
  return {std::move(*entry), charge};
}

absl::Status FairQueue::Push(Entry* entry, absl::Time now) {
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

absl::Status FairQueue::CheckRoomAside(const Entry& entry) {
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

void FairQueue::PutInOrder(TenantQueue* queue, Arrivals::iterator waiting) {
  const Entry& entry = waiting->entry;
  queue->order.emplace(TurnOf(*waiting), waiting);
  if (!entry.must_hold) queue->not_holding.emplace(TurnOf(*waiting), waiting);
  if (entry.device_bytes == 0) queue->without_memory.emplace(TurnOf(*waiting), waiting);
  queue->time += entry.estimate;
  queue->known_time += entry.known_time;
  queued_time_ += entry.estimate;
  if (queue->order.size() == 1) shares_.StartWaiting(entry.tenant);
}

bool FairQueue::TakeOutOfOrder(TenantQueue* queue, Arrivals::iterator waiting) {
  const Entry& entry = waiting->entry;
  queue->order.erase(TurnOf(*waiting));
  queue->not_holding.erase(TurnOf(*waiting));
  queue->without_memory.erase(TurnOf(*waiting));
  queue->time -= entry.estimate;
  queue->known_time -= entry.known_time;
  queued_time_ -= entry.estimate;
  if (queue->order.empty()) {
    queue->passed = Passed::kNone;
    queue->is_parked = false;
  } else if (queue->ready().empty()) {
    queue->is_parked = true;
  }
  return !queue->ready().empty() && !queue->is_parked;
}

void FairQueue::TakeFromAside(TenantQueue* queue, Arrivals::iterator waiting) {
  const auto aside = aside_.find(waiting->entry.connection);
  aside->second.erase(TurnOf(*waiting));
  if (aside->second.empty()) aside_.erase(aside);
  --queue->aside;
  waiting->is_aside = false;
}

void FairQueue::SetNextAside() {
  const uint32_t tenant = *shares_.Next();
  TenantQueue& queue = waiting_.find(tenant)->second;
  const auto waiting = queue.ready().begin()->second;
  if (!TakeOutOfOrder(&queue, waiting)) shares_.StopWaiting(tenant);
  waiting->is_aside = true;
  aside_[waiting->entry.connection].emplace(TurnOf(*waiting), waiting);
  ++queue.aside;
}

std::optional<uint32_t> FairQueue::PutBack(uint64_t connection) {
  const auto aside = aside_.find(connection);
  if (aside == aside_.end()) return std::nullopt;
  const auto waiting = aside->second.begin()->second;
  TenantQueue& queue = waiting_.find(waiting->entry.tenant)->second;
  TakeFromAside(&queue, waiting);
  PutInOrder(&queue, waiting);
  return waiting->entry.tenant;
}

const QueueEntry* FairQueue::Next() const {
  const std::optional<uint32_t> tenant = shares_.Next();
  if (!tenant) return nullptr;
  return &waiting_.find(*tenant)->second.ready().begin()->second->entry;
}

FairQueue::Started FairQueue::PopNext() {
  const uint32_t tenant = *shares_.Next();
  auto [entry, waits_on] = Take(waiting_.find(tenant)->second.ready().begin()->second);
  const TenantShares::Charge charge = shares_.Start(tenant, entry.estimate, waits_on);
  return {std::move(entry), charge};
}

std::pair<QueueEntry, bool> FairQueue::Take(Arrivals::iterator waiting) {
  const auto queue = waiting_.find(waiting->entry.tenant);
  bool has_more = true;
  if (waiting->is_aside) {
    TakeFromAside(&queue->second, waiting);
    has_more = !queue->second.order.empty();
  } else {
    has_more = TakeOutOfOrder(&queue->second, waiting);
  }
  Entry entry = std::move(waiting->entry);
  queue->second.work -= entry.work;
  if (queue->second.order.empty() && queue->second.aside == 0) waiting_.erase(queue);
  if (entry.expiry != absl::InfiniteFuture()) {
    expiries_.erase({entry.expiry, waiting->number});
  }
  if (entry.key != nullptr) keys_.erase(entry.key);
  arrivals_.erase(waiting);
  return {std::move(entry), has_more};
}

QueueEntry FairQueue::TakeAndStopWaiting(Arrivals::iterator waiting) {
  auto [entry, has_more] = Take(waiting);
  if (!has_more) shares_.StopWaiting(entry.tenant);
  return std::move(entry);
}

void FairQueue::Park(uint32_t tenant) {
  waiting_.find(tenant)->second.is_parked = true;
  shares_.StopWaiting(tenant);
}

void FairQueue::ParkForMemory(uint32_t tenant) {
  TenantQueue& queue = waiting_.find(tenant)->second;
  const bool holds = queue.ready().begin()->second->entry.must_hold;
  queue.passed = holds ? Passed::kHolding : Passed::kAllWithMemory;
  if (queue.ready().empty()) Park(tenant);
}

void FairQueue::Unpark(uint32_t tenant) {
  const auto queue = waiting_.find(tenant);
  if (queue == waiting_.end()) return;
  queue->second.passed = Passed::kNone;
  if (!std::exchange(queue->second.is_parked, false)) return;
  shares_.StartWaiting(tenant);
}

std::optional<QueueEntry> FairQueue::Remove(const void* key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  return TakeAndStopWaiting(found->second);
}

std::vector<QueueEntry> FairQueue::TakeAll() {
  std::vector<Entry> entries;
  entries.reserve(depth());
  while (!arrivals_.empty()) entries.push_back(TakeAndStopWaiting(arrivals_.begin()));
  return entries;
}

std::vector<QueueEntry> FairQueue::TakeExpired(absl::Time now) {
  std::vector<Entry> entries;
  while (!expiries_.empty() && expiries_.begin()->first.time <= now) {
    entries.push_back(TakeAndStopWaiting(expiries_.begin()->second));
  }
  return entries;
}

}  // namespace opserve::server
