#include "server/run/plan_cache.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "proto/dtypes/tensor_spec.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/program/host_bytes.h"

namespace opserve::server {
namespace {

// Host memory of an executor, and for each tensor in it. The host CANN's take from 700 bytes
// (Permute) to 15,000 (ApplyAdamWV2), mostly 2,500 to 4,000: so it is right for a program and not
// for each of its plans.
constexpr uint64_t kExecutorBytes = 2700;
constexpr uint64_t kExecutorTensorBytes = 200;

// Appends the bytes of numbers to a key. Each sequence is preceded by its length, so that no two
// calls have the same key.
class KeyWriter {
 public:
  explicit KeyWriter(std::string* key) : key_(*key) {}

  void Number(int64_t value) { key_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void Numbers(const Shape& values) {
    Number(static_cast<int64_t>(values.size()));
    for (int64_t value : values) Number(value);
  }
  void Attribute(const catalog::AttributeValue& value) {
    Number(static_cast<int64_t>(value.index()));
    std::visit(*this, value);
  }
  // The alternatives of an attribute.
  void operator()(std::monostate) {}
  void operator()(int64_t value) { Number(value); }
  void operator()(bool value) { Number(value); }
  // By bits: -0.0 is not 0.0, NaN is itself.
  void operator()(double value) { Number(std::bit_cast<int64_t>(value)); }
  void operator()(aclDataType value) { Number(value); }
  void operator()(const std::string& value) {
    Number(static_cast<int64_t>(value.size()));
    key_.append(value);
  }
  void operator()(const catalog::Scalar& value) {
    Number(value.dtype);
    Number(static_cast<int64_t>(value.value.index()));
    std::visit(*this, value.value);
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    Number(static_cast<int64_t>(values.size()));
    for (const T value : values) (*this)(value);
  }

 private:
  std::string& key_;
};

}  // namespace

std::string PlanKeyOf(const BoundInvocation& invocation) {
  std::string key;
  key.reserve(512);
  KeyWriter writer(&key);
  // Everything that stage one is told goes into the key, and no addresses: those are replaced when
  // a plan is used again.
  writer.Number(invocation.op->index);
  // The operator fixes the number of ends, so these need no length.
  for (const uint32_t end : invocation.input_ends) writer.Number(end);
  for (const BoundInput& input : invocation.inputs) {
    writer.Number(input.spec.dtype);
    writer.Numbers(input.spec.shape);
    if (input.output) continue;  // its copy is contiguous
    writer.Numbers(input.strides);
    writer.Number(input.offset);
    writer.Number(input.storage_elements);
  }
  for (const uint32_t end : invocation.output_ends) writer.Number(end);
  for (const BoundOutput& output : invocation.outputs) {
    writer.Number(output.spec.dtype);
    writer.Numbers(output.spec.shape);
  }
  for (const catalog::AttributeValue& attribute : invocation.attributes) {
    writer.Attribute(attribute);
  }
  return key;
}

std::shared_ptr<const Program> WithPlans(Program program) {
  for (BoundInvocation& invocation : program.invocations) {
    // Once, instead of for each run.
    invocation.plan_key = PlanKeyOf(invocation);
  }
  for (ContiguousCopy& copy : program.copies) copy.call.plan_key = PlanKeyOf(copy.call);
  program.workspace_plan = std::make_shared<WorkspacePlan>();
  return std::make_shared<const Program>(std::move(program));
}

absl::StatusOr<ExecutorHandle> Plan::RunStageOne(const StageOneArguments& arguments,
                                                 uint64_t* workspace_bytes) const {
  aclOpExecutor* executor = nullptr;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl_, op().descriptor->stage_one.c_str(),
                    op().call->Call(arguments.values(), workspace_bytes, &executor)));
  return ExecutorHandle(executor, ExecutorHandle::deleter_type{&acl_});
}

bool Plan::CanRepeat() const {
  const catalog::OperatorDescriptor& descriptor = *op().descriptor;
  const auto is_list = [](const auto& argument) { return argument.is_list; };
  // Lists need two functions more, which some versions of CANN lack.
  const bool has_lists = std::any_of(descriptor.inputs.begin(), descriptor.inputs.end(), is_list) ||
                         std::any_of(descriptor.outputs.begin(), descriptor.outputs.end(), is_list);
  return acl_.HasRepeatableExecutors() &&
         (!has_lists || (acl_.aclSetDynamicInputTensorAddr != nullptr &&
                         acl_.aclSetDynamicOutputTensorAddr != nullptr));
}

uint64_t Plan::HostBytes() const {
  const size_t tensors = call_.inputs.size() + call_.outputs.size();
  const uint64_t executor =
      executor_ == nullptr ? 0 : kExecutorBytes + kExecutorTensorBytes * tensors;
  // The plan's place in a cache: its key, a node of the list and a slot of the index, whose table
  // is about half full.
  const uint64_t entry = HeapPiece(sizeof(PlanCache::Entry) + 2 * sizeof(void*)) +
                         HeapBytes(call_.plan_key) + 2 * 3 * sizeof(void*);
  return HeapPiece(sizeof(Plan)) + HeapPiece(3 * sizeof(void*)) + HeapBytes(call_) +
         arguments_->HostBytes() + executor + entry;
}

absl::Status Plan::Prepare() {
  OPSERVE_ASSIGN_OR_RETURN(StageOneArguments arguments,
                           StageOneArguments::Make(acl_, call_, /*inputs=*/{}, /*outputs=*/{}));
  arguments_.emplace(std::move(arguments));
  OPSERVE_ASSIGN_OR_RETURN(executor_, RunStageOne(*arguments_, &workspace_bytes_));
  // Without the functions as if aclnn had refused: stage one runs for each launch.
  const int code =
      CanRepeat() ? acl_.aclSetAclOpExecutorRepeatable(executor_.get()) : ACLNN_ERR_INNER;
  if (code == ACLNN_ERR_INNER) {  // this call's executor can run only once
    executor_.reset();
    return absl::OkStatus();
  }
  return AclCallStatus(acl_, "aclSetAclOpExecutorRepeatable", code);
}

absl::Status Plan::LaunchOnce(absl::Span<void* const> inputs, absl::Span<void* const> outputs,
                              void* workspace, aclrtStream stream,
                              std::list<StageOneArguments>* launched) {
  OPSERVE_ASSIGN_OR_RETURN(StageOneArguments made,
                           StageOneArguments::Make(acl_, call_, inputs, outputs));
  const StageOneArguments& arguments = launched->emplace_back(std::move(made));
  uint64_t bytes = 0;
  OPSERVE_ASSIGN_OR_RETURN(ExecutorHandle executor, RunStageOne(arguments, &bytes));
  if (bytes > workspace_bytes_) {
    // Remembered, so that a repetition of the call sets enough aside.
    const uint64_t had = std::exchange(workspace_bytes_, bytes);
    return MakeError(Reason::kDeviceMemory,
                     absl::StrCat("stage one asks for ", bytes, " bytes of workspace, ", had,
                                  " were set aside; repeat the call"));
  }
  // Stage two takes the executor over, also when it fails.
  return AclCallStatus(acl_, op().descriptor->stage_two.c_str(),
                       op().stage_two(workspace, bytes, executor.release(), stream));
}

absl::Status Plan::Launch(absl::Span<void* const> inputs, absl::Span<void* const> outputs,
                          void* workspace, aclrtStream stream,
                          std::list<StageOneArguments>* launched) {
  if (executor_ == nullptr) return LaunchOnce(inputs, outputs, workspace, stream, launched);
  absl::Status status = arguments_->SetAddresses(executor_.get(), inputs, outputs);
  if (status.ok()) {
    status = AclCallStatus(acl_, op().descriptor->stage_two.c_str(),
                           op().stage_two(workspace, workspace_bytes_, executor_.get(), stream));
  }
  // Neither the executor nor its addresses are in a known state.
  is_broken_ = !status.ok();
  return status;
}

PlanCache::~PlanCache() {
  Entries removed;
  absl::MutexLock lock(&mutex_);
  while (!entries_.empty()) Remove(entries_.begin(), &removed);
}

void PlanCache::Remove(Entries::iterator entry, Entries* removed) {
  PlanCacheCounters::Operator& counters = counters_.of[entry->op];
  counters.entries.fetch_sub(1, std::memory_order_relaxed);
  counters.objects.fetch_sub(static_cast<int64_t>(entry->plan->arguments_->size()),
                             std::memory_order_relaxed);
  by_key_.erase(entry->key);
  removed->splice(removed->begin(), entries_, entry);
}

void PlanCache::Evict(Entries::iterator entry, Entries* removed) {
  counters_.of[entry->op].evictions.fetch_add(1, std::memory_order_relaxed);
  Remove(entry, removed);
}

void PlanCache::DropUnused() {
  Entries removed;
  absl::MutexLock lock(&mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    // Advanced first, since Evict takes the element away.
    const auto current = entry++;
    if (!current->plan->charge_.IsOver()) continue;
    // Not at once: another program may use it all the time, and takes it over when it does.
    if (std::exchange(current->is_unused, true)) Evict(current, &removed);
  }
}

bool PlanCache::MakeRoom(const HostAccount* account, const Plan& plan, Entries* removed) {
  // Plans of this run are in front of all others, and stay.
  const auto is_of_run = [this](const Entry& entry) { return entry.run == run_; };
  if (entries_.size() == capacity_) {
    if (is_of_run(entries_.back())) return false;
    Evict(std::prev(entries_.end()), removed);
  }
  if (account == nullptr) return true;
  const uint64_t bytes = plan.HostBytes();
  for (auto end = entries_.end(); !account->HasRoom(bytes);) {
    if (end == entries_.begin() || is_of_run(*std::prev(end))) return false;
    const auto oldest = std::prev(end);
    if (oldest->plan->charge_.IsBeside(*account)) {
      Evict(oldest, removed);
      removed->clear();  // its bytes are part of what the account has no room for
    } else {
      end = oldest;
    }
  }
  return true;
}

PlanCache::Entries::iterator PlanCache::Find(absl::string_view key) {
  // Often it is the one that was used last: comparing its key costs less than a hash.
  if (!entries_.empty() && entries_.front().key == key) return entries_.begin();
  const auto known = by_key_.find(key);
  return known == by_key_.end() ? entries_.end() : known->second;
}

absl::StatusOr<PlanCache::Lease> PlanCache::Acquire(const BoundInvocation& invocation,
                                                    HostAccount* account) {
  std::string made;
  if (invocation.plan_key.empty()) made = PlanKeyOf(invocation);
  const std::string& key = made.empty() ? invocation.plan_key : made;
  Entries removed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = Find(key);
    if (found != entries_.end() && !found->plan->is_broken_) {
      entries_.splice(entries_.begin(), entries_, found);
      found->run = run_;
      found->is_unused = false;
      found->plan->KeepFor(account);
      // A plan that runs once remembers the workspace only.
      return Lease{found->plan, /*is_hit=*/found->plan->executor_ != nullptr};
    }
    // Its launch failed, so stage one runs again.
    if (found != entries_.end()) Remove(found, &removed);
  }
  removed.clear();
  PlanCacheCounters::Operator& counters = counters_.of[invocation.op->index];
  auto plan = std::shared_ptr<Plan>(new Plan(acl_, invocation));
  if (absl::Status status = plan->Prepare(); !status.ok()) {
    // The caller gets no lease to Count.
    counters.misses.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  absl::MutexLock lock(&mutex_);
  // Only for a plan that was made: a call that fails evicts nothing.
  if (!MakeRoom(account, *plan, &removed)) return Lease{std::move(plan), /*is_hit=*/false};
  plan->KeepFor(account);
  entries_.push_front({key, invocation.op->index, plan, run_});
  // The text of the key is the entry's, which a list does not move.
  by_key_.emplace(entries_.front().key, entries_.begin());
  counters.entries.fetch_add(1, std::memory_order_relaxed);
  counters.objects.fetch_add(static_cast<int64_t>(plan->arguments_->size()),
                             std::memory_order_relaxed);
  return Lease{std::move(plan), /*is_hit=*/false};
}

void PlanCache::Count(const Lease& lease) {
  PlanCacheCounters::Operator& counters = counters_.of[lease.plan->op().index];
  (lease.is_hit ? counters.hits : counters.misses).fetch_add(1, std::memory_order_relaxed);
  if (lease.plan->executor_ == nullptr) {
    counters.uncacheable.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace opserve::server
