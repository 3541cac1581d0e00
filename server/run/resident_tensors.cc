#include "server/run/resident_tensors.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/program/random_bytes.h"

namespace opserve::server {
namespace {

// A handle: the tensor itself, the run. The random part comes first, so that a few of its digits
// are enough to name a tensor on a command line.
constexpr size_t kRandomBytes = 22;  // 30 bytes with the run, the length in recorded calls
constexpr size_t kHandleBytes = kRandomBytes + ResidentTensors::kRunBytes;

// Until a tensor that is being deposited here may have arrived.
constexpr int64_t kArrivingPushbackMs = 100;

// A quota has room again when the tenant itself makes some, which nobody can foretell.
constexpr int64_t kQuotaPushbackMs = 1000;

absl::Status Lost(absl::string_view why) {
  return MakeError(Reason::kTensorLost,
                   absl::StrCat("the resident tensor was lost when ", why, "; upload it again"));
}

absl::Status Moved(const std::string& place) {
  return WithMovedTo(place, MakeError(Reason::kTensorMoved,
                                      absl::StrCat("the daemon ends and has deposited the resident "
                                                   "tensor at ",
                                                   place)));
}

absl::Status OverQuota(absl::string_view problem, int64_t pushback_ms) {
  return MakeError(Reason::kTenantMemory, problem, pushback_ms);
}

absl::Status AtPosition(size_t position, const absl::Status& status) {
  return WithMessage(absl::StrCat("handles[", position, "]: ", status.message()), status);
}

}  // namespace

absl::Status CheckNotBroken(const ResidentTensor& tensor) {
  if (const std::string* place = tensor.deposited_at) return Moved(*place);
  if (!tensor.is_broken) return absl::OkStatus();
  return MakeError(Reason::kTensorLost,
                   "a request that worked in the resident tensor's memory failed; upload it again");
}

ResidentTensors::Reservation::Reservation(Reservation&& other) noexcept {
  *this = std::move(other);
}

ResidentTensors::Reservation& ResidentTensors::Reservation::operator=(
    Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    // The room held so far is free now; from here on the object counts for the other's.
    owner_ = std::exchange(other.owner_, nullptr);
    tenant_ = other.tenant_;
    device_ = other.device_;
    bytes_ = other.bytes_;
  }
  return *this;
}

ResidentTensors::Reservation::~Reservation() { Release(); }

void ResidentTensors::Reservation::Release() {
  // Null after a move, or when Add has made an entry that counts instead.
  ResidentTensors* owner = std::exchange(owner_, nullptr);
  if (owner == nullptr) return;
  absl::MutexLock lock(&owner->mutex_);
  owner->Uncount({tenant_, device_}, bytes_);
}

ResidentTensors::ResidentTensors(const ResidentLimits& limits, std::string deposit_place)
    : limits_(limits), deposit_place_(std::move(deposit_place)), run_(RandomBytes(kRunBytes)) {}

absl::StatusOr<ResidentTensors::Reservation> ResidentTensors::Reserve(uint32_t tenant,
                                                                      int32_t device,
                                                                      uint64_t bytes) {
  // The tensor exceeds the quota alone, so no retry can succeed.
  if (bytes > limits_.max_bytes_per_tenant) {
    return OverQuota(
        absl::StrCat("a resident tensor of ", bytes, " bytes exceeds the quota of ",
                     limits_.max_bytes_per_tenant, " bytes (--resident_max_bytes_per_tenant)"),
        /*pushback_ms=*/-1);
  }
  absl::MutexLock lock(&mutex_);
  // Checked and booked under one lock, so that two requests cannot take the last room together.
  const Usage usage = UsageOf(tenant);
  if (usage.tensors >= limits_.max_tensors_per_tenant) {
    return OverQuota(absl::StrCat("there are ", usage.tensors, " resident tensors, at most ",
                                  limits_.max_tensors_per_tenant,
                                  " allowed (--resident_max_tensors_per_tenant)"),
                     kQuotaPushbackMs);
  }
  // No overflow: the bytes in use are within the limit, too.
  if (bytes > limits_.max_bytes_per_tenant - usage.bytes) {
    return OverQuota(
        absl::StrCat(bytes, " bytes more than the ", usage.bytes,
                     " bytes of resident tensors there are exceed the quota of ",
                     limits_.max_bytes_per_tenant, " bytes (--resident_max_bytes_per_tenant)"),
        kQuotaPushbackMs);
  }
  Usage& counted = usage_[{tenant, device}];
  ++counted.tensors;
  counted.bytes += bytes;
  return Reservation(this, tenant, device, bytes);
}

absl::StatusOr<std::vector<ResidentTensors::Added>> ResidentTensors::Add(std::vector<New> tensors,
                                                                         absl::Time now) {
  // Before the lock is taken: random bytes come from a system call.
  std::vector<Added> added;
  for (const New& one : tensors) added.push_back({NewHandle(), now + Lease(one.lease)});
  absl::MutexLock lock(&mutex_);
  // A reset that came while the content was written has lost it. All are checked before the first
  // is added.
  for (const New& one : tensors) {
    if (WasReset(one.tensor->device, one.tensor->device_generation)) {
      return Lost("its device was reset before it was complete");
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    Reservation& reservation = tensors[i].reservation;
    reservation.owner_ = nullptr;  // from now on the entry counts
    entries_.emplace(added[i].handle, Entry{.tenant = reservation.tenant_,
                                            .bytes = reservation.bytes_,
                                            .creation = now,
                                            .lease_end = added[i].lease_end,
                                            .tensor = std::move(tensors[i].tensor)});
  }
  return added;
}

absl::StatusOr<std::shared_ptr<ResidentTensor>> ResidentTensors::Find(uint32_t tenant,
                                                                      absl::string_view handle,
                                                                      absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  OPSERVE_ASSIGN_OR_RETURN(const auto entry, FindEntry(tenant, handle, now));
  entry->second.last_use = now;
  return entry->second.tensor;
}

absl::StatusOr<std::vector<std::shared_ptr<ResidentTensor>>> ResidentTensors::FindAll(
    uint32_t tenant, absl::Span<const std::string* const> handles, absl::Time now) const {
  // No tenant has more tensors, so a longer list is refused before the lock is held for it.
  if (handles.size() > limits_.max_tensors_per_tenant) {
    return MakeError(Reason::kInvalid,
                     absl::StrCat("handles: there are ", handles.size(), ", at most ",
                                  limits_.max_tensors_per_tenant,
                                  " allowed (--resident_max_tensors_per_tenant)"));
  }
  std::vector<std::shared_ptr<ResidentTensor>> found;
  absl::flat_hash_set<const ResidentTensor*> distinct;
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < handles.size(); ++i) {
    const auto entry = FindEntry(tenant, *handles[i], now);
    if (!entry.ok()) return AtPosition(i, entry.status());
    (*entry)->second.last_use = now;
    found.push_back((*entry)->second.tensor);
    if (!distinct.insert(found.back().get()).second) {
      return AtPosition(i, MakeError(Reason::kInvalid, "the tensor is named twice"));
    }
  }
  return found;
}

absl::StatusOr<std::vector<absl::Time>> ResidentTensors::Renew(
    uint32_t tenant, absl::Span<const std::string> handles, absl::Duration lease, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  // All are looked up first, so that an error leaves every lease as it was.
  for (size_t i = 0; i < handles.size(); ++i) {
    if (const auto found = FindEntry(tenant, handles[i], now); !found.ok()) {
      return AtPosition(i, found.status());
    }
  }
  std::vector<absl::Time> lease_ends;
  for (const std::string& handle : handles) {
    absl::Time& lease_end = entries_.find(handle)->second.lease_end;
    lease_end = std::max(lease_end, now + Lease(lease));
    lease_ends.push_back(lease_end);
  }
  return lease_ends;
}

uint32_t ResidentTensors::Release(uint32_t tenant, absl::Span<const std::string> handles) {
  // Declared before the lock, so destroyed after it: freeing a tensor takes locks of the pool and
  // of the queue.
  Forgotten forgotten;
  absl::MutexLock lock(&mutex_);
  for (const std::string& handle : handles) {
    const auto entry = entries_.find(handle);
    if (entry != entries_.end() && entry->second.tenant == tenant) Forget(entry, &forgotten);
  }
  return static_cast<uint32_t>(forgotten.size());
}

void ResidentTensors::Expire(absl::Time now) {
  claims_.Expire(now);
  Forgotten forgotten;
  absl::MutexLock lock(&mutex_);
  PruneReleased();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto current = entry++;
    if (!IsUsable(current->second, current->second.tenant, now)) Forget(current, &forgotten);
  }
}

void ResidentTensors::DeviceWasReset(int32_t device, uint64_t generation) {
  Forgotten forgotten;
  absl::MutexLock lock(&mutex_);
  uint64_t& newest = generations_[device];
  newest = std::max(newest, generation);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto current = entry++;
    const ResidentTensor& tensor = *current->second.tensor;
    if (!WasReset(tensor.device, tensor.device_generation)) continue;
    RememberGone(current->first, current->second.tenant, /*is_deposited=*/false);
    Forget(current, &forgotten);
  }
}

std::vector<uint32_t> ResidentTensors::TenantsOn(int32_t device) const {
  absl::MutexLock lock(&mutex_);
  absl::flat_hash_map<uint32_t, absl::Time> last_uses;
  // From the counts, since an upload under way has a reservation and no entry yet.
  for (const auto& [key, usage] : usage_) {
    if (key.second == device) last_uses.emplace(key.first, absl::InfinitePast());
  }
  for (const auto& [handle, entry] : entries_) {
    if (entry.tensor->device != device) continue;
    absl::Time& last_use = last_uses[entry.tenant];
    last_use = std::max(last_use, entry.last_use);
  }
  std::vector<uint32_t> tenants;
  for (const auto& [tenant, last_use] : last_uses) tenants.push_back(tenant);
  std::sort(tenants.begin(), tenants.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(last_uses[b], a) < std::tie(last_uses[a], b);
  });
  return tenants;
}

std::vector<ResidentTensors::Moving> ResidentTensors::TensorsOn(int32_t device,
                                                                uint32_t tenant) const {
  std::vector<Moving> found;
  absl::MutexLock lock(&mutex_);
  for (const auto& [handle, entry] : entries_) {
    if (entry.tenant == tenant && entry.tensor->device == device) {
      found.push_back({entry.tensor, handle});
    }
  }
  for (const Released& released : released_) {
    if (released.tenant != tenant) continue;
    // Released, but a request still uses it, so its content moves with the others. Where the device
    // was reset, there is nothing to move.
    std::shared_ptr<ResidentTensor> tensor = released.tensor.lock();
    if (tensor != nullptr && tensor->device == device &&
        !WasReset(device, tensor->device_generation)) {
      found.push_back({std::move(tensor), ""});
    }
  }
  return found;
}

// Under one lock, so that no request sees a part of the tensors on the new device.
absl::Status ResidentTensors::Move(absl::Span<Moving> tensors, int32_t device,
                                   uint64_t generation) {
  absl::MutexLock lock(&mutex_);
  if (WasReset(device, generation)) return Lost("the device that it moved to was reset");
  // Resets may have come while the contents were copied.
  for (const Moving& moving : tensors) {
    if (WasReset(moving.tensor->device, moving.tensor->device_generation)) {
      return Lost("its device was reset");
    }
  }
  // Nothing below fails.
  for (Moving& moving : tensors) {
    ResidentTensor& tensor = *moving.tensor;
    // It may have been released since, and counts no more then.
    if (const auto entry = entries_.find(moving.handle); entry != entries_.end()) {
      Uncount({entry->second.tenant, tensor.device}, entry->second.bytes);
      Usage& counted = usage_[{entry->second.tenant, device}];
      ++counted.tensors;
      counted.bytes += entry->second.bytes;
    }
    // The old content goes back to the caller, which frees it without this lock.
    tensor.content.swap(moving.content);
    tensor.device = device;
    tensor.device_generation = generation;
  }
  return absl::OkStatus();
}

std::vector<ResidentTensors::Departing> ResidentTensors::TensorsToDeposit(absl::Time now) const {
  struct Found {
    Departing tensor;
    absl::Time last_use;
  };
  std::vector<Found> found;
  absl::flat_hash_map<uint32_t, absl::Time> last_uses;  // of each tenant
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [handle, entry] : entries_) {
      if (!IsUsable(entry, entry.tenant, now) || entry.tensor->is_broken) continue;
      found.push_back({.tensor = {.tensor = entry.tensor,
                                  .handle = handle,
                                  .tenant = entry.tenant,
                                  .bytes = static_cast<uint64_t>(NumBytes(entry.tensor->spec)),
                                  .lease_end = entry.lease_end},
                       .last_use = entry.last_use});
      absl::Time& last_use =
          last_uses.try_emplace(entry.tenant, absl::InfinitePast()).first->second;
      last_use = std::max(last_use, entry.last_use);
    }
  }
  // Sorted without the lock, which requests need.
  std::sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    // Times in descending order; tenants with the same time, and tensors, by their names.
    return std::tie(last_uses[b.tensor.tenant], a.tensor.tenant, b.last_use, a.tensor.handle) <
           std::tie(last_uses[a.tensor.tenant], b.tensor.tenant, a.last_use, b.tensor.handle);
  });
  std::vector<Departing> departing;
  departing.reserve(found.size());
  for (Found& one : found) departing.push_back(std::move(one.tensor));
  return departing;
}

std::vector<size_t> ResidentTensors::GiveAway(absl::Span<const Departing> tensors) {
  Forgotten forgotten;
  std::vector<size_t> given;
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto entry = entries_.find(tensors[i].handle);
    // Released since it was claimed: the receiver must not keep it.
    if (entry == entries_.end()) continue;
    // Requests that wait for their claim have found the tensor already: they learn of its new place
    // from this (CheckNotBroken).
    entry->second.tensor->deposited_at = &deposit_place_;
    RememberGone(entry->first, entry->second.tenant, /*is_deposited=*/true);
    Forget(entry, &forgotten);
    given.push_back(i);
  }
  return given;
}

ResidentTensors::Expectation& ResidentTensors::Expectation::operator=(
    Expectation&& other) noexcept {
  if (this != &other) {
    End();
    owner_ = std::exchange(other.owner_, nullptr);
    run_ = std::move(other.run_);
  }
  return *this;
}

void ResidentTensors::Expectation::End() {
  ResidentTensors* owner = std::exchange(owner_, nullptr);
  if (owner == nullptr) return;
  absl::MutexLock lock(&owner->mutex_);
  // One of possibly several Expectations of this run ends, and the run may still be expected.
  owner->expected_.erase(std::find(owner->expected_.begin(), owner->expected_.end(), run_));
}

ResidentTensors::Expectation ResidentTensors::Expect(const std::string& run) {
  Expectation expectation;
  expectation.owner_ = this;
  expectation.run_ = run;
  absl::MutexLock lock(&mutex_);
  expected_.push_back(run);
  return expectation;
}

absl::Status ResidentTensors::Adopt(std::vector<Arrived> tensors, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  // As in Add, all are checked before the first one is added.
  for (const Arrived& one : tensors) {
    if (WasReset(one.tensor->device, one.tensor->device_generation)) {
      return Lost("its device was reset before it was complete");
    }
    if (entries_.contains(one.handle)) {
      return absl::AlreadyExistsError("a resident tensor has this handle already");
    }
  }
  for (Arrived& one : tensors) {
    one.reservation.owner_ = nullptr;  // from now on the entry counts
    entries_.emplace(std::move(one.handle),
                     Entry{.tenant = one.reservation.tenant_,
                           .bytes = one.reservation.bytes_,
                           .creation = now,
                           .lease_end = std::min(one.lease_end, now + limits_.max_lease),
                           .tensor = std::move(one.tensor)});
  }
  return absl::OkStatus();
}

bool ResidentTensors::Has(uint32_t tenant, absl::string_view handle) const {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(handle);
  return entry != entries_.end() && entry->second.tenant == tenant;
}

bool ResidentTensors::IsHandleOf(absl::string_view handle, absl::string_view run) {
  return handle.size() == kHandleBytes && handle.substr(kRandomBytes) == run;
}

std::optional<int32_t> ResidentTensors::DeviceOf(uint32_t tenant) const {
  absl::MutexLock lock(&mutex_);
  std::optional<int32_t> device;
  uint64_t most = 0;
  // The pairs of a tenant are adjacent, since the map is ordered by tenant first.
  for (auto it = usage_.lower_bound({tenant, INT32_MIN});
       it != usage_.end() && it->first.first == tenant; ++it) {
    if (device && it->second.bytes <= most) continue;
    device = it->first.second;
    most = it->second.bytes;
  }
  return device;
}

ResidentTensors::Usage ResidentTensors::UsageOfTenant(uint32_t tenant) const {
  absl::MutexLock lock(&mutex_);
  return UsageOf(tenant);
}

ResidentTensors::Usage ResidentTensors::Total() const {
  absl::MutexLock lock(&mutex_);
  Usage total;
  for (const auto& [key, usage] : usage_) {
    total.tensors += usage.tensors;
    total.bytes += usage.bytes;
  }
  return total;
}

ResidentTensors::Usage ResidentTensors::UsageOfDevice(int32_t device) const {
  absl::MutexLock lock(&mutex_);
  Usage total;
  for (const auto& [key, usage] : usage_) {
    if (key.second != device) continue;
    total.tensors += usage.tensors;
    total.bytes += usage.bytes;
  }
  return total;
}

ResidentTensors::Usage ResidentTensors::UsageOn(int32_t device, uint32_t tenant) const {
  absl::MutexLock lock(&mutex_);
  const auto counted = usage_.find({tenant, device});
  return counted == usage_.end() ? Usage() : counted->second;
}

std::vector<ResidentTensors::Listed> ResidentTensors::List(uint32_t tenant, absl::string_view after,
                                                           size_t count, absl::Time now) const {
  std::vector<const Entries::value_type*> found;
  absl::MutexLock lock(&mutex_);
  for (const auto& entry : entries_) {
    if (entry.first > after && IsUsable(entry.second, tenant, now)) found.push_back(&entry);
  }
  // Handles have no order in the table, and only a page of them is to be sorted.
  count = std::min(count, found.size());
  std::partial_sort(found.begin(), found.begin() + count, found.end(),
                    [](const auto* a, const auto* b) { return a->first < b->first; });
  std::vector<Listed> listed;
  for (size_t i = 0; i < count; ++i) listed.push_back(ToListed(*found[i]));
  return listed;
}

ResidentTensors::Largest ResidentTensors::ListLargest(std::optional<uint32_t> tenant, size_t count,
                                                      absl::Time now) const {
  Largest largest;
  std::vector<const Entries::value_type*> found;
  absl::MutexLock lock(&mutex_);
  for (const auto& entry : entries_) {
    // Without a tenant given, each tensor is asked about for its own.
    if (!IsUsable(entry.second, tenant.value_or(entry.second.tenant), now)) continue;
    found.push_back(&entry);
    ++largest.all.tensors;
    largest.all.bytes += entry.second.bytes;
  }
  count = std::min(count, found.size());
  std::partial_sort(
      found.begin(), found.begin() + count, found.end(), [](const auto* a, const auto* b) {
        return std::tie(b->second.bytes, a->first) < std::tie(a->second.bytes, b->first);
      });
  for (size_t i = 0; i < count; ++i) largest.tensors.push_back(ToListed(*found[i]));
  return largest;
}

ResidentTensors::Listed ResidentTensors::ToListed(const Entries::value_type& entry) {
  return {.handle = entry.first,
          .tenant = entry.second.tenant,
          .spec = entry.second.tensor->spec,
          .device = entry.second.tensor->device,
          .bytes = entry.second.bytes,
          .creation = entry.second.creation,
          .lease_end = entry.second.lease_end};
}

bool ResidentTensors::IsUsable(const Entry& entry, uint32_t tenant, absl::Time now) const {
  // A lease that has ended still holds for the grace, so that a late renewal finds its tensor.
  return entry.tenant == tenant && now < entry.lease_end + limits_.grace;
}

// From the most exact answer to the least: the tensor, its own fate, the fate of its daemon, and
// nothing.
absl::StatusOr<ResidentTensors::Entries::const_iterator> ResidentTensors::FindEntry(
    uint32_t tenant, absl::string_view handle, absl::Time now) const {
  const auto entry = entries_.find(handle);
  if (entry != entries_.end() && IsUsable(entry->second, tenant, now)) {
    if (entry->second.tensor->is_broken) return Lost("a request that worked in its memory failed");
    return entry;
  }
  // Nothing below depends on another tenant's tensors, so a handle of one is answered like one that
  // never was.
  const auto gone = gone_.find(handle);
  if (gone != gone_.end() && gone->second.tenant == tenant) {
    return gone->second.is_deposited ? Moved(deposit_place_) : Lost("its device was reset");
  }
  // The handle's last bytes name another run of this or another daemon.
  if (handle.size() == kHandleBytes && handle.substr(kRandomBytes) != run_) {
    const auto run = handle.substr(kRandomBytes);
    if (std::find(expected_.begin(), expected_.end(), run) == expected_.end()) {
      return Lost("its daemon ended");
    }
    return MakeError(Reason::kTensorArriving,
                     "the daemon that has the resident tensor ends and may deposit it here",
                     kArrivingPushbackMs);
  }
  return MakeError(Reason::kTensorUnknown,
                   "no resident tensor has this handle, or its lease has ended");
}

void ResidentTensors::RememberGone(std::string handle, uint32_t tenant, bool is_deposited) {
  // A tensor that was lost here may have come back, by another deposit, and go again.
  if (const auto known = gone_.find(handle); known != gone_.end()) {
    known->second = {tenant, is_deposited};
    return;
  }
  if (gone_order_.size() == kMaxGoneHandles) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
  gone_.emplace(handle, Gone{tenant, is_deposited});
  gone_order_.push_back(std::move(handle));
}

absl::Duration ResidentTensors::Lease(absl::Duration asked) const {
  return std::min(asked > absl::ZeroDuration() ? asked : limits_.default_lease, limits_.max_lease);
}

std::string ResidentTensors::NewHandle() const { return RandomBytes(kRandomBytes) + run_; }

bool ResidentTensors::WasReset(int32_t device, uint64_t generation) const {
  const auto newest = generations_.find(device);
  return newest != generations_.end() && generation < newest->second;
}

ResidentTensors::Usage ResidentTensors::UsageOf(uint32_t tenant) const {
  Usage total;
  for (auto it = usage_.lower_bound({tenant, INT32_MIN});
       it != usage_.end() && it->first.first == tenant; ++it) {
    total.tensors += it->second.tensors;
    total.bytes += it->second.bytes;
  }
  return total;
}

void ResidentTensors::Uncount(const TenantAndDevice& key, uint64_t bytes) {
  const auto counted = usage_.find(key);
  --counted->second.tensors;
  counted->second.bytes -= bytes;
  // The table has no entries of tenants that come and go.
  if (counted->second.tensors == 0) usage_.erase(counted);
}

void ResidentTensors::PruneReleased() {
  std::erase_if(released_, [](const Released& released) { return released.tensor.expired(); });
  // The limit follows the survivors, so that pruning costs each release a constant time on average.
  released_limit_ = std::max(kLeastReleased, 2 * released_.size());
}

void ResidentTensors::Forget(Entries::iterator entry, Forgotten* forgotten) {
  // A request holds it. It has no handle any more, but must be found if its device drains
  // (TensorsOn).
  if (entry->second.tensor.use_count() > 1) {
    if (released_.size() >= released_limit_) PruneReleased();
    released_.push_back({entry->second.tenant, entry->second.tensor});
  }
  Uncount({entry->second.tenant, entry->second.tensor->device}, entry->second.bytes);
  forgotten->push_back(std::move(entry->second.tensor));
  entries_.erase(entry);
}

}  // namespace opserve::server
