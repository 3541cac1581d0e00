#include "server/schedule/policy/pinned_zones.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {

std::shared_ptr<PinnedZones> PinnedZones::Create(uint64_t capacity, bool overflows) {
  return std::shared_ptr<PinnedZones>(new PinnedZones(capacity, overflows));
}

absl::Status PinnedZones::SetTenants(absl::Span<const TenantSettings> tenants) {
  absl::MutexLock lock(&mutex_);
  // First those that reserve less than before, so that there is room for the others.
  for (const bool may_reserve : {false, true}) {
    for (const TenantSettings& tenant : tenants) {
      MemoryLimits limits = tenant.pinned;
      if (!may_reserve) {
        limits.reserved = std::min(limits.reserved, zones_.limits(tenant.tenant).reserved);
      }
      if (absl::Status status = zones_.SetLimits(tenant.tenant, limits); !status.ok()) {
        return status;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PinnedZones::CheckCanEverFit(uint32_t tenant, uint64_t bytes) const {
  if (bytes == 0) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (zones_.CanEverFit(tenant, bytes)) return absl::OkStatus();
  const bool is_own_limit = zones_.IsAboveHardLimit(tenant, bytes);
  return NeverFits(
      is_own_limit ? Reason::kTenantMemory : Reason::kTooLarge,
      absl::StrCat(bytes, " bytes of page-locked memory are needed for the results, more than ",
                   is_own_limit ? "the tenant's limit" : "the tenant can ever get", " of the ",
                   capacity_, " there are (--pinned_pool_bytes)"));
}

bool PinnedZones::IsFull(const Connection& connection, uint32_t tenant, uint64_t bytes) const {
  // A limit above the pool means all of the pool.
  const uint64_t most = std::min(zones_.limits(tenant).hard, capacity_) / kConnectionPart;
  return connection.bytes >= most || bytes > most - connection.bytes;
}

PinnedZones::Taken PinnedZones::TryTake(Queue* queue, uint32_t tenant, uint64_t bytes,
                                        uint64_t connection) {
  if (bytes == 0) return {.allowance = PinnedAllowance()};
  absl::MutexLock lock(&mutex_);
  // A connection that has no results is not known: its first ones may be of any size.
  if (const auto known = connections_.find(connection);
      known != connections_.end() && IsFull(known->second, tenant, bytes)) {
    Told& waiting = known->second.waiting;
    if (waiting.empty()) full_connections_.fetch_add(1, std::memory_order_relaxed);
    if (std::find(waiting.begin(), waiting.end(), queue) == waiting.end()) {
      waiting.push_back(queue);
    }
    return {.allowance = std::nullopt, .is_connection_full = true};
  }
  const bool has_room = zones_.TryTake(tenant, bytes);
  // The caller has its answer in both cases, so it waits no longer.
  if (has_room || overflows_) {
    if (!waits_.empty()) Remove(queue, tenant);
    return {.allowance = has_room ? Charge(tenant, bytes, connection)
                                  : PinnedAllowance{.charge = nullptr, .is_pinned = false}};
  }
  Waits& waits = waits_[tenant];
  const auto found = std::find_if(waits.begin(), waits.end(),
                                  [queue](const Wait& wait) { return wait.queue == queue; });
  Wait& wait = found != waits.end() ? *found : waits.emplace_back();
  // A queue waits for one amount, that of its latest try.
  wait = {queue, bytes, /*was_told=*/false};
  Register(tenant);
  return {};
}

PinnedAllowance PinnedZones::Charge(uint32_t tenant, uint64_t bytes, uint64_t connection) {
  tenant_bytes_.Add(tenant, bytes);
  if (connection != 0) connections_[connection].bytes += bytes;
  // gRPC may keep a result longer than the daemon this.
  auto zones = shared_from_this();
  PinnedZones* const raw = zones.get();
  return {.charge =
              std::shared_ptr<void>(raw, [zones = std::move(zones), tenant, bytes, connection](
                                             void*) { zones->Give(tenant, bytes, connection); })};
}

void PinnedZones::Give(uint32_t tenant, uint64_t bytes, uint64_t connection) {
  // The lock is not needed for this.
  tenant_bytes_.Subtract(tenant, bytes);
  {
    absl::MutexLock lock(&mutex_);
    zones_.Give(tenant, bytes);
    if (connection != 0) GiveToConnection(connection, bytes);
  }
  // Without the lock: queues take their own, and call back here.
  TellWaiting();
}

void PinnedZones::GiveToConnection(uint64_t id, uint64_t bytes) {
  const auto found = connections_.find(id);
  Connection& connection = found->second;
  connection.bytes -= bytes;
  if (!connection.waiting.empty()) {
    // Whether this is enough for waiting entries, the queue finds out by trying.
    for (Queue* queue : connection.waiting) freed_.emplace_back(id, queue);
    any_freed_.store(true, std::memory_order_release);
    connection.waiting.clear();
    full_connections_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (connection.bytes == 0) connections_.erase(found);
}

void PinnedZones::TellReaders() {
  std::vector<std::pair<uint64_t, Queue*>> freed;
  {
    absl::MutexLock lock(&mutex_);
    freed.swap(freed_);
    any_freed_.store(false, std::memory_order_release);
  }
  for (const auto& [connection, queue] : freed) queue->ConnectionMayFit(connection);
}

void PinnedZones::StopWaiting(Queue* queue, uint32_t tenant) {
  // The usual case, without the lock.
  if (!anybody_waits_.load(std::memory_order_acquire)) return;
  absl::MutexLock lock(&mutex_);
  Remove(queue, tenant);
}

void PinnedZones::Remove(Queue* queue, uint32_t tenant) {
  const auto waits = waits_.find(tenant);
  if (waits == waits_.end()) return;
  const auto is_of_queue = [queue](const Wait& wait) { return wait.queue == queue; };
  waits->second.erase(std::remove_if(waits->second.begin(), waits->second.end(), is_of_queue),
                      waits->second.end());
  Register(tenant);
}

void PinnedZones::Register(uint32_t tenant) {
  const auto waits = waits_.find(tenant);
  std::optional<uint64_t> least;
  for (const Wait& wait : waits->second) {
    // A queue that was told tries again, and waits anew if that was in vain.
    if (!wait.was_told) least = std::min(least.value_or(wait.bytes), wait.bytes);
  }
  if (waits->second.empty()) {
    zones_.StopWaiting(tenant);
    waits_.erase(waits);
  } else if (least) {
    zones_.Wait(tenant, *least);
  } else {
    zones_.Tell(tenant);
  }
  anybody_waits_.store(!waits_.empty(), std::memory_order_release);
}

PinnedZones::Told PinnedZones::TakeNextToTell(uint32_t* tenant) {
  Told told;
  absl::MutexLock lock(&mutex_);
  const std::optional<uint32_t> next = zones_.NextThatFits();
  if (!next) return told;
  *tenant = *next;
  Waits& waits = waits_.find(*next)->second;
  // A queue that needs more would try in vain.
  uint64_t least = UINT64_MAX;
  for (const Wait& wait : waits) {
    if (!wait.was_told) least = std::min(least, wait.bytes);
  }
  for (Wait& wait : waits) {
    if (wait.was_told || wait.bytes > least) continue;
    wait.was_told = true;
    told.push_back(wait.queue);
  }
  // The tenant keeps its turn, and waits for the least that is left.
  Register(*next);
  return told;
}

void PinnedZones::TellWaiting() {
  if (!anybody_waits_.load(std::memory_order_acquire) &&
      !any_freed_.load(std::memory_order_acquire)) {
    return;
  }
  absl::MutexLock telling(&tell_mutex_);
  TellReaders();
  // A tenant is told once for each wait, so this ends.
  while (true) {
    uint32_t tenant = 0;
    const Told told = TakeNextToTell(&tenant);
    if (told.empty()) return;
    for (Queue* queue : told) queue->PinnedMemoryMayFit(tenant);
  }
}

void PinnedZones::Detach(Queue* queue) {
  {
    absl::MutexLock lock(&mutex_);
    std::vector<uint32_t> tenants;
    for (const auto& [tenant, waits] : waits_) tenants.push_back(tenant);
    for (uint32_t tenant : tenants) Remove(queue, tenant);
    for (auto& [id, connection] : connections_) {
      const auto waits = std::find(connection.waiting.begin(), connection.waiting.end(), queue);
      if (waits == connection.waiting.end()) continue;
      connection.waiting.erase(waits);
      if (connection.waiting.empty()) full_connections_.fetch_sub(1, std::memory_order_relaxed);
    }
    freed_.erase(std::remove_if(freed_.begin(), freed_.end(),
                                [queue](const auto& freed) { return freed.second == queue; }),
                 freed_.end());
  }
  TellWaiting();
  // After this, no thread is in a call on it any more.
  absl::MutexLock telling(&tell_mutex_);
}

}  // namespace opserve::server
