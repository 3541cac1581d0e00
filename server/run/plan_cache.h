// Plans of one lane: the results of stage one for a call, kept for equal calls.
//
// A lane has one stream of one device under one setting of determinism and core limits for its
// whole life, and one thread: so each lane has a cache of its own, and none of these is part of the
// key. The key is everything else stage one sees: operator, dtypes, shapes,
// strides, offsets, storage shapes and attributes, compared in full. Addresses are not: a plan's
// executor is repeatable and gets them anew for every launch.
//
// A plan that is kept for a prepared program, here or by a captured run, counts as its tenant's
// host memory: in the account of the program that made it, or that uses it when that one has gone.
// If the tenant has no room, its oldest plans of the lane go first. When the program has gone, so
// do its plans soon, unless other calls use them.
//
// Some calls cannot have a repeatable executor (aclnn says 561000), and some versions of CANN have
// none at all. Then the cache remembers the workspace size only, and stage one runs for each
// launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/device/acl/acl_handles.h"
#include "server/program/host_account.h"
#include "server/program/program.h"
#include "server/run/stage_one_arguments.h"

namespace opserve::server {

// Invocations of all lanes of a device, by operator (LoadedOperator::index): stage one was saved,
// or not; of the latter, those whose executor can run only once, so that it never could be. Plans
// that were dropped, and that are kept. Thread-safe.
struct PlanCacheCounters {
  explicit PlanCacheCounters(size_t operators) : of(operators) {}
  struct Operator {
    std::atomic<uint64_t> hits = 0, misses = 0, evictions = 0, uncacheable = 0;
    std::atomic<int64_t> entries = 0;
    std::atomic<int64_t> objects = 0;  // of ACL that the entries keep, besides executors
  };
  std::vector<Operator> of;
};

// Stage one's result for one call. Used by its lane's thread.
class Plan {
 public:
  const LoadedOperator& op() const { return *call_.op; }
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether stage two runs with an executor that stays.
  bool is_repeatable() const { return executor_ != nullptr; }
  bool is_broken() const { return is_broken_; }
  // Host memory of the plan in a cache. That of ACL's objects is an estimate: ACL does not tell it.
  uint64_t HostBytes() const;
  bool IsKept() const { return charge_.Counts(); }

 private:
  friend class PlanCache;
  // As PlanCache::Keep.
  void KeepFor(HostAccount* account) {
    if (account == nullptr || charge_.IsIn(*account) || IsKept()) return;
    charge_ = account->Charge(HostBytes());
  }
  Plan(const AclLibrary& acl, const BoundInvocation& call) : acl_(acl), call_(call) {}

  // Finds out the workspace, and makes an executor to keep if there can be one.
  absl::Status Prepare();
  absl::StatusOr<ExecutorHandle> RunStageOne(const StageOneArguments& arguments,
                                             uint64_t* workspace_bytes) const;
  // Whether the libraries can give a repeatable executor other addresses.
  bool CanRepeat() const;
  absl::Status Launch(absl::Span<void* const> inputs, absl::Span<void* const> outputs,
                      void* workspace, aclrtStream stream, std::list<StageOneArguments>* launched);
  // Both stages, with an executor for this launch.
  absl::Status LaunchOnce(absl::Span<void* const> inputs, absl::Span<void* const> outputs,
                          void* workspace, aclrtStream stream,
                          std::list<StageOneArguments>* launched);

  const AclLibrary& acl_;
  const BoundInvocation call_;
  std::optional<StageOneArguments> arguments_;  // of Prepare
  ExecutorHandle executor_;                     // null: stage one runs for each launch
  bool is_broken_ = false;                      // a launch failed: not to be used again
  uint64_t workspace_bytes_ = 0;
  HostCharge charge_;  // written by the lane's thread, with the mutex of its cache held
};

// Everything of a call that its plan depends on, as bytes: equal for equal plans only.
std::string PlanKeyOf(const BoundInvocation& invocation);

// A copy of a program that is to run many times: it has the keys of its plans, and remembers the
// plan for its workspaces.
std::shared_ptr<const Program> WithPlans(Program program);

// Used by its lane's thread, but for DropUnused.
class PlanCache {
 public:
  // Keeps at most `capacity` plans (at least 1); counts in `counters`.
  PlanCache(const AclLibrary& acl, size_t capacity, PlanCacheCounters& counters)
      : acl_(acl), capacity_(capacity), counters_(counters) {}
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // The right to launch a plan. It keeps the plan, also when the cache evicts it, and the objects
  // that its launches use.
  struct Lease {
    std::shared_ptr<Plan> plan;
    bool is_hit = false;  // stage one did not run, and need not for the launch
    // Of launches whose executor runs once.
    std::list<StageOneArguments> launched = {};

    // Queues stage two of the call with these addresses on `stream`. Addresses are by tensor: null
    // only where a tensor has no elements; an input that is written in place has its output's.
    // `workspace`: workspace_bytes(). It and the lease stay alive until the stream is past the
    // call.
    //
    // kResourceExhausted: a call without a repeatable executor asks for more workspace than before.
    // Else AclCallStatus.
    absl::Status Launch(absl::Span<void* const> inputs, absl::Span<void* const> outputs,
                        void* workspace, aclrtStream stream) {
      return plan->Launch(inputs, outputs, workspace, stream, &launched);
    }
  };

  // A program begins. None of the plans that it acquires makes room for others of its own: of a
  // program with more than `capacity`, always the same ones would be missing, which are all of
  // them.
  void BeginRun() { ++run_; }

  // The plan of `invocation`, by running stage one if there is none or its launch failed. The least
  // recently used plan makes room, unless this run acquired it; then the lease alone has the new
  // one. `invocation` may have its key (BoundInvocation::plan_key). `account`: of its program;
  // null: the plan counts for nobody. Errors: AclCallStatus of stage one, which counts as a miss.
  absl::StatusOr<Lease> Acquire(const BoundInvocation& invocation, HostAccount* account = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A plan of this cache's stays for a program with this account, which may be null: it counts
  // there, unless it counts for a program already.
  void Keep(Plan& plan, HostAccount* account) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    plan.KeepFor(account);
  }

  // Drops plans that were kept for programs that have gone, and that nothing has acquired since the
  // call before. From any thread that is bound to the device; leases keep theirs.
  void DropUnused() ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts the invocation that a lease was acquired for: once, when it is certain to be run here.
  void Count(const Lease& lease);
  // Counts an invocation that a replay ran.
  void CountReplayed(const BoundInvocation& invocation) {
    counters_.of[invocation.op->index].hits.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  friend class Plan;
  struct Entry {
    std::string key;
    int op;
    std::shared_ptr<Plan> plan;
    uint64_t run;            // that acquired it last
    bool is_unused = false;  // since a call of DropUnused found its program gone
  };
  using Entries = std::list<Entry>;

  // The entry with this key, or the end.
  Entries::iterator Find(absl::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the entry out of the books, and out of the cache: to be destroyed without the lock where
  // others wait for it.
  void Remove(Entries::iterator entry, Entries* removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict(Entries::iterator entry, Entries* removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether one more plan may stay, after others have gone if need be.
  bool MakeRoom(const HostAccount* account, const Plan& plan, Entries* removed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AclLibrary& acl_;
  const size_t capacity_;
  PlanCacheCounters& counters_;
  uint64_t run_ = 0;  // of the lane's thread
  absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  absl::flat_hash_map<absl::string_view, Entries::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
