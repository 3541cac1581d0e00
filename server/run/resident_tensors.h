// Tensors that stay in device memory between calls, each the property of a tenant.
//
// A handle is 176 random bits, followed by the run of the daemon: so one from before a restart is
// told apart from one that never was, without remembering any. It does not say where the tensor is,
// which may change. Its first bytes are enough to tell it from the tenant's others. A tensor that
// another daemon deposited keeps the handle that it had there.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/program/resident_tensor.h"
#include "server/run/tensor_changes.h"
#include "server/run/tensor_claims.h"

namespace opserve::server {

struct ResidentLimits {
  uint64_t max_bytes_per_tenant = uint64_t{4} << 30;
  uint32_t max_tensors_per_tenant = 16384;
  absl::Duration default_lease = absl::Minutes(10);
  absl::Duration max_lease = absl::Hours(1);
  absl::Duration grace = absl::Seconds(30);
};

// kFailedPrecondition (reason "tensor_lost"): a request that worked in the tensor's memory failed.
// kUnavailable (reason "tensor_moved"): it was deposited at another daemon. For holders of a claim,
// which may have waited for either.
absl::Status CheckNotBroken(const ResidentTensor& tensor);

// Thread-safe. Outlived by the devices' pools.
class ResidentTensors {
 public:
  struct Usage {
    uint32_t tensors = 0;
    uint64_t bytes = 0;
  };

  // The right to keep a tensor of a certain size: counts against the tenant's quota until it is
  // destroyed or, if Add has taken it, until the tensor is released, has expired or was lost with
  // its device. Requests that still hold the tensor by then are not counted.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation();

   private:
    friend class ResidentTensors;
    void Release();
    Reservation(ResidentTensors* owner, uint32_t tenant, int32_t device, uint64_t bytes)
        : owner_(owner), tenant_(tenant), device_(device), bytes_(bytes) {}
    ResidentTensors* owner_ = nullptr;
    uint32_t tenant_ = 0;
    int32_t device_ = 0;
    uint64_t bytes_ = 0;
  };

  struct Added {
    std::string handle;
    absl::Time lease_end;
  };

  // A tensor as it is in the books.
  struct Listed {
    std::string handle;
    uint32_t tenant = 0;
    TensorSpec spec;
    int32_t device = 0;
    uint64_t bytes = 0;  // as reserved
    absl::Time creation;
    absl::Time lease_end;
  };

  // Handles that were lost with their device or deposited, and are answered so: as many as four
  // tenants have by default, so that one device's are remembered. Older ones are unknown.
  static constexpr size_t kMaxGoneHandles = size_t{4} * ResidentLimits().max_tensors_per_tenant;

  // `deposit_place`: the address of the daemon at which tensors are deposited, for clients.
  explicit ResidentTensors(const ResidentLimits& limits, std::string deposit_place = "");

  // kResourceExhausted (reason "tenant_memory", pushback -1 if the tensor alone exceeds the quota):
  // over the tenant's quota in bytes or tensors.
  absl::StatusOr<Reservation> Reserve(uint32_t tenant, int32_t device, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A tensor to become known, of the reserved size and on the reserved device.
  struct New {
    Reservation reservation;
    std::shared_ptr<ResidentTensor> tensor;
    absl::Duration lease;  // zero for the default, cut to the longest
  };

  // Makes the tensors known under new handles, which are given in their order: all or, on an error,
  // none.
  // kFailedPrecondition (reason "tensor_lost"): the device was reset since the tensors were begun.
  absl::StatusOr<std::vector<Added>> Add(std::vector<New> tensors, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // kNotFound (reason "tensor_unknown"), kFailedPrecondition (reason "tensor_lost"), kUnavailable
  // (reason "tensor_moved", or "tensor_arriving" with a retry hint).
  absl::StatusOr<std::shared_ptr<ResidentTensor>> Find(uint32_t tenant, absl::string_view handle,
                                                       absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // All of the tensors, each named once, in the order of `handles`. An error names the position.
  // Find's errors, and kInvalidArgument: one is named twice, or more are named than a tenant may
  // have.
  absl::StatusOr<std::vector<std::shared_ptr<ResidentTensor>>> FindAll(
      uint32_t tenant, absl::Span<const std::string* const> handles, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets each lease's end to `now` + `lease` unless it is later already. All or, on an error of
  // Find's, which names the position, none.
  absl::StatusOr<std::vector<absl::Time>> Renew(uint32_t tenant,
                                                absl::Span<const std::string> handles,
                                                absl::Duration lease, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets those of `handles` that are the tenant's; returns how many that were.
  uint32_t Release(uint32_t tenant, absl::Span<const std::string> handles)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The tenant's usable tensors with handles above `after`, in their order, at most `count`.
  std::vector<Listed> List(uint32_t tenant, absl::string_view after, size_t count,
                           absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

  struct Largest {
    std::vector<Listed> tensors;
    Usage all;  // those beyond `count` included
  };
  // The usable tensors of `tenant`, or of all tenants, from the largest on, at most `count`.
  Largest ListLargest(std::optional<uint32_t> tenant, size_t count, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets tensors whose lease and grace have passed, and ends waits for claims that have expired.
  void Expire(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Device `device` was reset and has `generation` now: forgets its tensors; their handles are
  // answered "tensor_lost" from now on.
  void DeviceWasReset(int32_t device, uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tenants with tensors on the device, those that are coming to it included: the last user first.
  std::vector<uint32_t> TenantsOn(int32_t device) const ABSL_LOCKS_EXCLUDED(mutex_);

  // A tensor to be moved to another device.
  struct Moving {
    std::shared_ptr<ResidentTensor> tensor;
    std::string handle;  // "": it was released, but requests hold it
    // The elements, there; after Move those that the tensor had before.
    std::shared_ptr<ResidentContent> content = nullptr;
  };
  // All tensors of the tenant that are on the device.
  std::vector<Moving> TensorsOn(int32_t device, uint32_t tenant) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives tensors that the caller has claimed for itself their contents on another device, which
  // has `generation`, and counts them there: all or, on an error, none.
  // kFailedPrecondition (reason "tensor_lost"): this device was reset, or one where they were.
  absl::Status Move(absl::Span<Moving> tensors, int32_t device, uint64_t generation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The last bytes of the handles that this object makes.
  const std::string& run() const { return run_; }
  static constexpr size_t kRunBytes = 8;

  // A tensor to be deposited at another daemon.
  struct Departing {
    std::shared_ptr<ResidentTensor> tensor;
    std::string handle;
    uint32_t tenant = 0;
    uint64_t bytes = 0;  // of its elements
    absl::Time lease_end;
  };
  // The usable tensors of all tenants: tenant by tenant, the last user first, and of each those
  // used last first. Without those that no request can use any more (is_broken).
  std::vector<Departing> TensorsToDeposit(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets tensors that the caller has claimed for itself: their handles are answered
  // "tensor_moved" from now on, and requests that wait for them likewise. Those that were released
  // since are left out of the result, which has the positions of the others.
  std::vector<size_t> GiveAway(absl::Span<const Departing> tensors) ABSL_LOCKS_EXCLUDED(mutex_);

  // For as long as one lives, handles of run `run` that are not here are answered
  // "tensor_arriving".
  class Expectation {
   public:
    Expectation() = default;
    Expectation(Expectation&& other) noexcept { *this = std::move(other); }
    Expectation& operator=(Expectation&& other) noexcept;
    ~Expectation() { End(); }

   private:
    friend class ResidentTensors;
    void End();
    ResidentTensors* owner_ = nullptr;
    std::string run_;
  };
  Expectation Expect(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);

  // A tensor from another daemon, complete, of the reserved size and on the reserved device.
  struct Arrived {
    std::string handle;  // of another run
    Reservation reservation;
    std::shared_ptr<ResidentTensor> tensor;
    absl::Time lease_end;  // cut to the longest lease
  };
  // Makes the tensors known under the handles that they had: all or, on an error, none.
  // kFailedPrecondition (reason "tensor_lost"): their device was reset since they were begun.
  // kAlreadyExists: a handle is known.
  absl::Status Adopt(std::vector<Arrived> tensors, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a tensor of that tenant has this handle, usable or not.
  bool Has(uint32_t tenant, absl::string_view handle) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it may be the handle of a tensor that the daemon with `run` made.
  static bool IsHandleOf(absl::string_view handle, absl::string_view run);

  // The device that holds most of the tenant's bytes, if it has any.
  std::optional<int32_t> DeviceOf(uint32_t tenant) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Reservations included.
  Usage UsageOfTenant(uint32_t tenant) const ABSL_LOCKS_EXCLUDED(mutex_);
  Usage Total() const ABSL_LOCKS_EXCLUDED(mutex_);
  Usage UsageOfDevice(int32_t device) const ABSL_LOCKS_EXCLUDED(mutex_);
  Usage UsageOn(int32_t device, uint32_t tenant) const ABSL_LOCKS_EXCLUDED(mutex_);

  const ResidentLimits& limits() const { return limits_; }

  // The users of the tensors, and the requests that wait for them.
  TensorClaims& claims() { return claims_; }
  const TensorClaims& claims() const { return claims_; }

  // Counts of the changes that requests made to the tensors.
  TensorChanges& changes() { return changes_; }
  const TensorChanges& changes() const { return changes_; }

 private:
  struct Entry {
    uint32_t tenant = 0;
    uint64_t bytes = 0;  // as reserved
    absl::Time creation;
    absl::Time lease_end;
    std::shared_ptr<ResidentTensor> tensor;
    mutable absl::Time last_use = creation;  // looked up for a request
  };
  // A tensor that left the books while requests held it.
  struct Released {
    uint32_t tenant = 0;
    std::weak_ptr<ResidentTensor> tensor;
  };
  using Entries = absl::flat_hash_map<std::string, Entry>;  // by handle
  // Tensors leave the books with mutex_ held, and memory when it is free again.
  using Forgotten = std::vector<std::shared_ptr<ResidentTensor>>;
  using TenantAndDevice = std::pair<uint32_t, int32_t>;
  static constexpr size_t kLeastReleased = 64;

  static Listed ToListed(const Entries::value_type& entry);
  bool IsUsable(const Entry& entry, uint32_t tenant, absl::Time now) const;
  absl::StatusOr<Entries::const_iterator> FindEntry(uint32_t tenant, absl::string_view handle,
                                                    absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Those that no request holds any more are forgotten.
  void PruneReleased() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration Lease(absl::Duration asked) const;
  std::string NewHandle() const;
  bool WasReset(int32_t device, uint64_t generation) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void RememberGone(std::string handle, uint32_t tenant, bool is_deposited)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Usage UsageOf(uint32_t tenant) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Uncount(const TenantAndDevice& key, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Entries::iterator entry, Forgotten* forgotten) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ResidentLimits limits_;
  const std::string deposit_place_;
  TensorClaims claims_;
  TensorChanges changes_;
  const std::string run_;  // random, in every handle of this object's
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  // The sums of entries and reservations. Without pairs that have none.
  absl::btree_map<TenantAndDevice, Usage> usage_ ABSL_GUARDED_BY(mutex_);
  std::vector<Released> released_ ABSL_GUARDED_BY(mutex_);
  size_t released_limit_ ABSL_GUARDED_BY(mutex_) = kLeastReleased;  // then they are pruned
  // A handle whose tensor was lost with its device, or deposited at another daemon.
  struct Gone {
    uint32_t tenant = 0;  // to no other one it is told
    bool is_deposited = false;
  };
  absl::flat_hash_map<std::string, Gone> gone_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> gone_order_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  // Runs of the Expectations, each as often as there are of it.
  std::vector<std::string> expected_ ABSL_GUARDED_BY(mutex_);
  // Of the devices that were reset, the newest; 0 for others.
  absl::flat_hash_map<int32_t, uint64_t> generations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
