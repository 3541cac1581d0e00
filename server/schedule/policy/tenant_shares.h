// Which tenant goes next: start-time fair queueing of the time that tasks have a lane of one
// device.
//
// A tenant's virtual time is the lane time that it had, divided by its weight. The tenant with the
// least goes next. A task's cost is known only when it has ended, so an estimate is charged when it
// starts, raised while the task takes longer, and put right when it ends.
//
// The system's virtual time is that of the tenant which is served now. A tenant which comes back
// from being idle starts there: it cannot save up unused time, and it need not make up for the time
// that others lent it. Until its first task starts it goes before all others, so it waits for the
// first lane that becomes free, however the others' estimates turn out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace opserve::server {

// Knows which tenants wait, but not for which tasks. Not thread-safe. Each call takes O(log n) of
// the waiting tenants.
class TenantShares {
 public:
  static constexpr uint32_t kMaxWeight = 1000;

  // The amount charged to a tenant for a task at its start.
  struct Charge {
    uint32_t tenant = 0;
    uint32_t weight = 1;
    absl::Duration estimate;
  };

  // A tenant without it has the weight 1. Holds for tasks that start from now on.
  // kInvalidArgument: not from 1 to kMaxWeight.
  absl::Status SetWeight(uint32_t tenant, uint32_t weight);
  static absl::Status CheckWeight(uint32_t weight);

  // The tenant has, or has not, a task that could start. No effect if that is known.
  void StartWaiting(uint32_t tenant);
  void StopWaiting(uint32_t tenant);

  // The tenant that goes next; nullopt: none waits.
  std::optional<uint32_t> Next() const;

  // A task of a tenant that waits starts, or, while no tenant waits, of any tenant; `waits_on`: it
  // has another that could start. The charge is given to End once, when the task has ended after
  // `actual`.
  Charge Start(uint32_t tenant, absl::Duration estimate, bool waits_on);
  // The task has had more time than was charged for it: charges `so_far` in place of the estimate.
  void Raise(absl::Duration so_far, Charge* charge);
  void End(const Charge& charge, absl::Duration actual);

  // Drops a tenant's account and weight. False, and nothing happens: it waits, has tasks running,
  // or is ahead of the others: dropping its account would excuse it from the excess.
  bool Forget(uint32_t tenant);

  // Lane time by which the tenant is behind (negative: ahead of) its share by weight among the
  // tenants that wait. Zero if it does not wait or is about to be served first.
  absl::Duration Lag(uint32_t tenant) const;
  // Tells the lag of each tenant for which it is not zero for one of these reasons; O(n) of them.
  using LagVisitor = absl::FunctionRef<void(uint32_t tenant, absl::Duration lag)>;
  void VisitLags(LagVisitor visit) const;

  uint32_t weight(uint32_t tenant) const;
  // Of all tenants that wait.
  uint64_t waiting_weight() const { return waiting_weight_; }
  size_t known_tenants() const { return accounts_.size(); }

 private:
  // Units of 2^-20 ns for a weight of 1: even with the largest weight a microsecond is exact to
  // a millionth, and 128 bits last for ever.
  using VirtualTime = absl::int128;

  enum class Place { kAbsent, kReturned, kOrdered };

  struct Account {
    uint32_t weight = 1;
    uint32_t running = 0;
    Place place = Place::kAbsent;
    uint64_t turn = 0;       // of its place; first come, first served among equals
    VirtualTime finish = 0;  // the virtual time that it has had
    VirtualTime floor = 0;   // the system's time when it began to wait
    VirtualTime start() const { return finish > floor ? finish : floor; }
  };

  struct Ordered {
    VirtualTime start;
    uint64_t turn;
    uint32_t tenant;
    bool operator<(const Ordered& other) const {
      return start != other.start ? start < other.start : turn < other.turn;
    }
  };
  struct Returned {
    uint64_t turn;
    uint32_t tenant;
    bool operator<(const Returned& other) const { return turn < other.turn; }
  };

  static VirtualTime Scaled(absl::Duration time, uint32_t weight);

  VirtualTime Now() const;
  absl::Duration LagOf(const Account& account) const;  // which is ordered
  void Insert(uint32_t tenant, Account* account, Place place);
  void Erase(uint32_t tenant, Account* account);
  // Corrects an account by the difference between the charge and `actual`.
  void Correct(const Charge& charge, absl::Duration actual, Account* account);
  // Once no tenant waits or runs, past shares no longer count.
  void SettleIfIdle();

  absl::flat_hash_map<uint32_t, Account> accounts_;
  absl::btree_set<Ordered> ordered_;    // by start()
  absl::btree_set<Returned> returned_;  // had nothing since they were idle: go first
  VirtualTime last_start_ = 0;          // of the task that started last
  VirtualTime latest_finish_ = 0;
  uint64_t turns_ = 0;
  uint64_t running_ = 0;
  uint64_t waiting_weight_ = 0;
  // Of ordered_, for the average that a lag is measured from.
  uint64_t ordered_weight_ = 0;
  VirtualTime ordered_sum_ = 0;  // of weight * start()
};

}  // namespace opserve::server
