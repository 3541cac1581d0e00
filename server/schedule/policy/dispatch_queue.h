// The entries that wait for a device, in the order in which they may start: fairly between tenants
// (fair_queue.h), each within its device memory (memory_zones.h) and its page-locked memory
// (pinned_zones.h). A tenant without memory for its next entry is passed over until it has some,
// but for its entries that need none (fair_queue.h), so a lane is idle only if no waiting entry
// could run. An entry for a connection with too many unread results is set aside, so that it holds
// up no other connection of its tenant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/schedule/policy/fair_queue.h"
#include "server/schedule/policy/memory_zones.h"
#include "server/schedule/policy/pinned_zones.h"
#include "server/schedule/policy/resident_shares.h"

namespace opserve::server {

// Not thread-safe: its owner guards it. Every call takes O(log n) of the waiting entries on
// average, except those which hand out many entries.
class DispatchQueue {
 public:
  using Entry = QueueEntry;

  // An entry's resources, from its start to its end.
  struct Lease {
    TenantShares::Charge charge;
    uint64_t device_bytes = 0;
    bool is_held = false;  // the results may stay in it (Entry::may_hold), see residents()
  };
  struct Started {
    Entry entry;
    Lease lease;             // for Ended, once
    PinnedAllowance pinned;  // for the results, which may outlive the lease
  };
  struct Popped {
    std::optional<Started> started;
    std::vector<Entry> expired;  // their deadlines have passed: to be refused
  };

  // `pinned`: lends entries their page-locked memory; `self` waits there for it. Both null: any
  // amount is there.
  DispatchQueue(FairQueueOptions options, uint64_t device_bytes, PinnedZones* pinned = nullptr,
                PinnedZones::Queue* self = nullptr)
      : queue_(std::move(options)), memory_(device_bytes), pinned_(pinned), self_(self) {}

  // kInvalidArgument: weight or limits out of range.  kFailedPrecondition: more memory would be
  // reserved than there is. Then nothing has changed.
  absl::Status SetTenant(uint32_t tenant, uint32_t weight, const MemoryLimits& limits);
  // Drops an idle tenant's record and settings. False, and nothing happens: it is not idle, or had
  // more than its share a moment ago.
  bool Forget(uint32_t tenant) {
    return memory_.used(tenant) == 0 && queue_.Forget(tenant) && memory_.Forget(tenant);
  }

  // Takes *entry if and only if the result is OK.
  // kResourceExhausted (reason "queue_full", "tenant_queue_full" or "work_limit", with a retry
  // hint): full.
  // kFailedPrecondition (reason "tenant_memory", "device_memory" or "too_large", "never try
  // again"): its memory could not be had even if nothing else ran.
  absl::Status Push(Entry* entry, absl::Time now);

  // As Push and then Pop, while nothing waits (depth() is 0), without a place in the order. Nothing
  // is returned, and *entry is not taken, if it has to wait, is late already or would be refused:
  // Push it, then Pop.
  std::optional<Started> TryStart(Entry* entry, absl::Time now);

  // Takes the next entry that can start, if any, and the entries that waited in vain.
  Popped Pop(absl::Time now);
  // An entry that was started has had a lane for `so_far`, which is more than it was charged for.
  void GoesOn(absl::Duration so_far, Lease* lease);
  // An entry that was started has ended, well or badly, after it had a lane for `actual`.
  void Ended(const Lease& lease, absl::Duration actual);

  // Device memory beside that of entries. As MemoryZones.
  // kFailedPrecondition (reason "tenant_memory" or "device_memory", "never try again"): it could
  // not be had even if nothing else ran.
  absl::Status CheckCanEverFit(uint32_t tenant, uint64_t bytes) const;
  // Likewise of all of an entry's memory; errors: those of Push.
  absl::Status CheckCanEverFit(const Entry& entry) const;
  // Whether `bytes` more would put the tenant above its own hard limit.
  bool IsAboveHardLimit(uint32_t tenant, uint64_t bytes) const {
    return memory_.IsAboveHardLimit(tenant, memory_.used(tenant) + bytes);
  }
  bool TryTakeMemory(uint32_t tenant, uint64_t bytes) {
    if (!memory_.TryTake(tenant, bytes)) return false;
    residents_.Add(tenant, bytes);
    return true;
  }
  void GiveMemory(uint32_t tenant, uint64_t bytes) {
    memory_.Give(tenant, bytes);
    GiveResidentPart(tenant, bytes);
  }

  // Whether Pop is worth calling: false until a push, an end or a deadline changes something. May
  // be true when Pop finds nothing, but not again after that.
  bool MayStart() const { return queue_.Next() != nullptr || memory_.NextThatFits().has_value(); }

  // From PinnedZones: the memory that the tenant waits for may fit.
  void PinnedMemoryMayFit(uint32_t tenant) { LookAgain(tenant); }
  // Likewise of the first entry of a connection.
  void ConnectionMayFit(uint64_t connection) { PutBack(connection); }

  // As those of FairQueue.
  std::optional<Entry> Remove(const void* key);
  std::vector<Entry> TakeAll();
  std::vector<Entry> TakeExpired(absl::Time now);

  size_t depth() const { return queue_.depth(); }
  size_t depth(uint32_t tenant) const { return queue_.depth(tenant); }
  absl::Duration known_time(uint32_t tenant) const { return queue_.known_time(tenant); }
  absl::Time oldest_arrival() const { return queue_.oldest_arrival(); }
  absl::Time earliest_expiry() const { return queue_.earliest_expiry(); }
  absl::Duration Lag(uint32_t tenant) const { return queue_.Lag(tenant); }
  void VisitLags(TenantShares::LagVisitor visit) const { queue_.VisitLags(visit); }
  const MemoryZones& memory() const { return memory_; }
  // The parts of the tenants' memory that only their clients give back: that of TryTakeMemory, and
  // of entries whose results stay there.
  ResidentShares& residents() { return residents_; }

 private:
  // The tenant's next entry is another one, or gone.
  void LookAgain(uint32_t tenant) {
    if (!queue_.HasOrdered(tenant)) {
      memory_.StopWaiting(tenant);
      StopWaitingForPinned(tenant);
    } else {
      queue_.Unpark(tenant);
    }
  }
  void StopWaitingForPinned(uint32_t tenant) {
    if (pinned_ != nullptr) pinned_->StopWaiting(self_, tenant);
  }
  // Whether the entry's results are to stay in its device memory: its tenant has room for that.
  bool IsHeld(const Entry& entry) const {
    return (entry.may_hold || entry.must_hold) &&
           entry.device_bytes <= residents_.Left(entry.tenant);
  }
  // An entry whose results fit nowhere else may have waited for it.
  void GiveResidentPart(uint32_t tenant, uint64_t bytes) {
    residents_.Subtract(tenant, bytes);
    LookAgain(tenant);
  }
  PinnedZones::Taken TryTakePinned(const Entry& entry, bool is_held) {
    if (pinned_ == nullptr) return {.allowance = PinnedAllowance()};
    return pinned_->TryTake(self_, entry.tenant, is_held ? 0 : entry.pinned_bytes,
                            entry.connection);
  }
  // Of an entry whose memory is taken.
  Lease LeaseOf(const Entry& entry, TenantShares::Charge charge, bool is_held) {
    if (is_held) residents_.Add(entry.tenant, entry.device_bytes);
    return {charge, entry.device_bytes, is_held};
  }
  // Of a connection with entries set aside, one is in the order, or it waits in pinned_ and will be
  // told. So when one leaves, the next takes its place.
  void PutBack(uint64_t connection) {
    if (const auto tenant = queue_.PutBack(connection)) LookAgain(*tenant);
  }
  void HasLeft(const Entry& entry) {
    PutBack(entry.connection);
    LookAgain(entry.tenant);
  }

  FairQueue queue_;
  MemoryZones memory_;
  ResidentShares residents_;
  PinnedZones* const pinned_;
  PinnedZones::Queue* const self_;
};

}  // namespace opserve::server
