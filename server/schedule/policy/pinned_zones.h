// How much each tenant may have of the page-locked memory that holds results until gRPC has sent
// them. The devices share that memory (device/memory/pinned_pool.h), so there is one account for
// all their queues, and a result of any device may give back the memory that a queue waits for.
//
// A tenant waits for the least that any of the queues needs for it, in one turn. A queue is told
// once that it should try again; to try in vain is to wait again, without losing the turn.
//
// A connection of a tenant may have a quarter of the tenant's memory, or a single task's results if
// these are more. So a reader that takes nothing stops its own requests and leaves the tenant's
// other connections the rest. A wait for a connection's results to be read has no turn: only the
// same connection can end it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/device/memory/pinned_allowance.h"
#include "server/observability/tenant_amounts.h"
#include "server/schedule/policy/memory_zones.h"
#include "server/schedule/policy/tenant_settings.h"

namespace opserve::server {

// Thread-safe. Every call takes O(log n) of the tenants that wait; TellWaiting as much for each
// that it tells.
//
// Invariant, whenever mutex_ is free: a tenant waits in zones_ if and only if it has waits here;
// there it waits for the least that is untold, or has been told.
class PinnedZones : public std::enable_shared_from_this<PinnedZones> {
 public:
  // A queue that takes memory for tasks, and can wait for it.
  class Queue {
   public:
    virtual ~Queue() = default;
    // The memory that the tenant waits for here would fit now. Called on any thread with no lock of
    // the queue's held; must not block, nor call back.
    virtual void PinnedMemoryMayFit(uint32_t tenant) = 0;
    // Likewise for entries that wait here until this connection reads some of its results.
    virtual void ConnectionMayFit(uint64_t connection) = 0;
  };

  struct Taken {
    std::optional<PinnedAllowance> allowance;
    // Why there is none: the connection has enough unread results; others of its tenant may fit.
    bool is_connection_full = false;
  };

  // `overflows`: entries without room get ordinary memory instead of waiting.
  static std::shared_ptr<PinnedZones> Create(uint64_t capacity, bool overflows);
  PinnedZones(const PinnedZones&) = delete;
  PinnedZones& operator=(const PinnedZones&) = delete;

  // As MemoryZones::SetLimits, for all of them; waiting requests are not judged again.
  absl::Status SetTenants(absl::Span<const TenantSettings> tenants) ABSL_LOCKS_EXCLUDED(mutex_);

  // kFailedPrecondition (reason "tenant_memory" or "too_large", pushback -1): it could not be had
  // even if no other tenant had any memory.
  absl::Status CheckCanEverFit(uint32_t tenant, uint64_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_);

  // No allowance: not now, and `queue` is told when it is worth trying again. `connection`: that
  // will read the results, unique among all tenants' connections; 0: none. May be called with locks
  // of the queue's held, and so may StopWaiting; TellWaiting is to be called after both, without.
  Taken TryTake(Queue* queue, uint32_t tenant, uint64_t bytes, uint64_t connection = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void StopWaiting(Queue* queue, uint32_t tenant) ABSL_LOCKS_EXCLUDED(mutex_);
  void TellWaiting() ABSL_LOCKS_EXCLUDED(tell_mutex_, mutex_);

  // The queue waits for nothing any more and is not called after it.
  void Detach(Queue* queue) ABSL_LOCKS_EXCLUDED(tell_mutex_, mutex_);

  uint64_t capacity() const { return capacity_; }
  // Whether some tenant waits for memory; takes no lock.
  bool AnybodyWaits() const { return anybody_waits_.load(std::memory_order_relaxed); }
  // Whether requests wait until their connections read earlier results; takes no lock.
  bool WaitsForReaders() const { return full_connections_.load(std::memory_order_relaxed) > 0; }
  // The tenants' memory now, read without a lock.
  const TenantAmounts& tenant_bytes() const { return tenant_bytes_; }

 private:
  struct Wait {
    Queue* queue;
    uint64_t bytes;
    bool was_told;
  };
  using Waits = absl::InlinedVector<Wait, 2>;
  using Told = absl::InlinedVector<Queue*, 2>;
  struct Connection {
    uint64_t bytes = 0;  // of its results, not 0
    Told waiting;        // queues that wait until it has less
  };
  static constexpr uint64_t kConnectionPart = 4;

  PinnedZones(uint64_t capacity, bool overflows)
      : capacity_(capacity), overflows_(overflows), zones_(capacity) {}

  PinnedAllowance Charge(uint32_t tenant, uint64_t bytes, uint64_t connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Give(uint32_t tenant, uint64_t bytes, uint64_t connection)
      ABSL_LOCKS_EXCLUDED(tell_mutex_, mutex_);
  bool IsFull(const Connection& connection, uint32_t tenant, uint64_t bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void GiveToConnection(uint64_t id, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellReaders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(tell_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(Queue* queue, uint32_t tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After every change of a tenant's waits.
  void Register(uint32_t tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The queues to be told now, and the tenant they are told of.
  Told TakeNextToTell(uint32_t* tenant) ABSL_LOCKS_EXCLUDED(mutex_);

  const uint64_t capacity_;
  const bool overflows_;
  mutable absl::Mutex mutex_;
  // Held while queues are told, which may lock theirs, but not each other's.
  absl::Mutex tell_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  MemoryZones zones_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, Waits> waits_ ABSL_GUARDED_BY(mutex_);  // by tenant
  absl::flat_hash_map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // Connections that have given memory back, with the queues that are still to be told.
  std::vector<std::pair<uint64_t, Queue*>> freed_ ABSL_GUARDED_BY(mutex_);
  // Written with mutex_ held: whether waits_ and freed_ have any; connections queues wait for.
  std::atomic<bool> anybody_waits_ = false;
  std::atomic<bool> any_freed_ = false;
  std::atomic<uint64_t> full_connections_ = 0;
  TenantAmounts tenant_bytes_;
};

}  // namespace opserve::server
