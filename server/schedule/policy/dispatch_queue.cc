#include "server/schedule/policy/dispatch_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {

absl::Status DispatchQueue::SetTenant(uint32_t tenant, uint32_t weight,
                                      const MemoryLimits& limits) {
  OPSERVE_RETURN_IF_ERROR(TenantShares::CheckWeight(weight));
  OPSERVE_RETURN_IF_ERROR(memory_.SetLimits(tenant, limits));
  queue_.Unpark(tenant);  // it may have room now
  return queue_.SetWeight(tenant, weight);
}

absl::Status DispatchQueue::CheckCanEverFit(uint32_t tenant, uint64_t bytes) const {
  if (memory_.CanEverFit(tenant, bytes)) return absl::OkStatus();
  const bool is_own_limit = memory_.IsAboveHardLimit(tenant, bytes);
  return NeverFits(
      is_own_limit ? Reason::kTenantMemory : Reason::kDeviceMemory,
      is_own_limit
          ? absl::StrCat(bytes,
                         " bytes of device memory are needed, more than the tenant's limit of ",
                         memory_.limits(tenant).hard, " (device_memory.hard_bytes)")
          : absl::StrCat(bytes,
                         " bytes of device memory are needed, more than the tenant can ever "
                         "get of the daemon's ",
                         memory_.capacity(), " (--workspace_max_bytes)"));
}

absl::Status DispatchQueue::CheckCanEverFit(const Entry& entry) const {
  OPSERVE_RETURN_IF_ERROR(CheckCanEverFit(entry.tenant, entry.device_bytes));
  if (entry.must_hold) {
    absl::Status status = residents_.Check(entry.tenant, entry.device_bytes);
    if (absl::IsFailedPrecondition(status)) return status;
  }
  if (pinned_ == nullptr) return absl::OkStatus();
  absl::Status status = pinned_->CheckCanEverFit(entry.tenant, entry.pinned_bytes);
  const bool can_be_held = entry.may_hold && !absl::IsFailedPrecondition(residents_.Check(
                                                 entry.tenant, entry.device_bytes));
  return can_be_held ? absl::OkStatus() : status;
}

absl::Status DispatchQueue::Push(Entry* entry, absl::Time now) {
  OPSERVE_RETURN_IF_ERROR(CheckCanEverFit(*entry));
  const uint32_t tenant = entry->tenant;
  OPSERVE_RETURN_IF_ERROR(queue_.Push(entry, now));
  LookAgain(tenant);
  return absl::OkStatus();
}

std::optional<DispatchQueue::Started> DispatchQueue::TryStart(Entry* entry, absl::Time now) {
  // Memory that is refused here is refused again to the entry in the order, which then waits for it
  // in its turn.
  if (std::min(entry->expiry, entry->deadline) <= now || !queue_.CheckRoom(*entry).ok() ||
      !memory_.TryTake(entry->tenant, entry->device_bytes)) {
    return std::nullopt;
  }
  // Memory that is there now could ever be had. Ordinary memory in its place is for Push to judge.
  const bool is_held = IsHeld(*entry);
  if (entry->must_hold && !is_held) {
    memory_.Give(entry->tenant, entry->device_bytes);
    return std::nullopt;
  }
  PinnedZones::Taken pinned = TryTakePinned(*entry, is_held);
  if (!pinned.allowance || !pinned.allowance->is_pinned) {
    memory_.Give(entry->tenant, entry->device_bytes);
    return std::nullopt;
  }
  auto [started, charge] = queue_.Start(entry, now);
  const Lease lease = LeaseOf(started, charge, is_held);
  return Started{std::move(started), lease, *std::move(pinned.allowance)};
}

DispatchQueue::Popped DispatchQueue::Pop(absl::Time now) {
  Popped popped;
  popped.expired = TakeExpired(now);
  // One at a time: a tenant that is told in vain is parked again. This must not cost more than the
  // event that led here.
  if (const std::optional<uint32_t> tenant = memory_.NextThatFits()) {
    memory_.Tell(*tenant);
    queue_.Unpark(*tenant);
  }
  while (const Entry* next = queue_.Next()) {
    const uint32_t tenant = next->tenant;
    const uint64_t bytes = next->device_bytes;
    // An entry waits for one of the two at a time: a turn for memory that it could not use yet
    // would keep others from it.
    if (!memory_.WouldFit(tenant, bytes)) {
      memory_.Wait(tenant, bytes);
      StopWaitingForPinned(tenant);
      queue_.ParkForMemory(tenant);
      continue;
    }
    const bool is_held = IsHeld(*next);
    // Until it looks again, when some of the tenant's part comes back.
    if (next->must_hold && !is_held) {
      memory_.StopWaiting(tenant);
      StopWaitingForPinned(tenant);
      queue_.ParkForMemory(tenant);
      continue;
    }
    PinnedZones::Taken pinned = TryTakePinned(*next, is_held);
    if (pinned.is_connection_full) {
      queue_.SetNextAside();
      LookAgain(tenant);
      continue;
    }
    if (!pinned.allowance) {
      if (!queue_.IsParkedForMemory(tenant)) memory_.StopWaiting(tenant);
      if (bytes == 0) {
        queue_.Park(tenant);
      } else {
        queue_.ParkForMemory(tenant);
      }
      continue;
    }
    memory_.TryTake(tenant, bytes);
    // One that has passed others leaves them waiting.
    if (!queue_.IsParkedForMemory(tenant)) {
      memory_.StopWaiting(tenant);
      StopWaitingForPinned(tenant);
    }
    auto [entry, charge] = queue_.PopNext();
    PutBack(entry.connection);
    const Lease lease = LeaseOf(entry, charge, is_held);
    popped.started = Started{std::move(entry), lease, *std::move(pinned.allowance)};
    break;
  }
  return popped;
}

void DispatchQueue::GoesOn(absl::Duration so_far, Lease* lease) {
  queue_.GoesOn(so_far, &lease->charge);
}

void DispatchQueue::Ended(const Lease& lease, absl::Duration actual) {
  queue_.Ended(lease.charge, actual);
  memory_.Give(lease.charge.tenant, lease.device_bytes);
  if (lease.is_held) GiveResidentPart(lease.charge.tenant, lease.device_bytes);
}

std::optional<QueueEntry> DispatchQueue::Remove(const void* key) {
  std::optional<Entry> entry = queue_.Remove(key);
  if (entry) HasLeft(*entry);
  return entry;
}

std::vector<QueueEntry> DispatchQueue::TakeAll() {
  std::vector<Entry> entries = queue_.TakeAll();
  for (const Entry& entry : entries) LookAgain(entry.tenant);
  return entries;
}

std::vector<QueueEntry> DispatchQueue::TakeExpired(absl::Time now) {
  std::vector<Entry> entries = queue_.TakeExpired(now);
  for (const Entry& entry : entries) HasLeft(entry);
  return entries;
}

}  // namespace opserve::server
