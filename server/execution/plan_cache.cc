#include "server/execution/plan_cache.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "proto/dtypes/tensor_spec.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl_status.h"

namespace opserve::server {
namespace {

// Tensors without elements have no memory, but the setters of addresses want one; nothing is read
// there.
void* const kNoElements = reinterpret_cast<void*>(uintptr_t{64});

void* OrNoElements(void* address) { return address != nullptr ? address : kNoElements; }

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
    if (const auto* number = std::get_if<double>(&value)) {
      Number(std::bit_cast<int64_t>(*number));  // by bits: -0.0 is not 0.0, NaN is itself
    } else if (const auto* truth = std::get_if<bool>(&value)) {
      Number(*truth);
    } else {
      Number(std::get<int64_t>(value));
    }
  }

 private:
  std::string& key_;
};

std::string KeyOf(const BoundInvocation& invocation) {
  std::string key;
  key.reserve(512);
  KeyWriter writer(&key);
  writer.Number(invocation.op->index);
  for (const BoundInput& input : invocation.inputs) {
    writer.Number(input.spec.dtype);
    writer.Numbers(input.spec.shape);
    writer.Numbers(input.strides);
    writer.Number(input.offset);
    writer.Number(input.storage_elements);
  }
  writer.Number(invocation.output.dtype);
  writer.Numbers(invocation.output.shape);
  for (const catalog::AttributeValue& attribute : invocation.attributes) {
    writer.Attribute(attribute);
  }
  return key;
}

aclDataType ToAclDataType(Dtype dtype) {
  const DtypeFacts* const facts = FindDtype(dtype);
  return facts == nullptr ? ACL_DT_UNDEFINED : static_cast<aclDataType>(facts->acl);
}

absl::StatusOr<TensorDescriptor> Describe(const AclLibrary& acl, const TensorSpec& spec,
                                          const Shape& strides, int64_t offset,
                                          int64_t storage_elements, void* address) {
  const bool is_plain = offset == 0 && strides == ContiguousStrides(spec.shape);
  const Shape storage = is_plain ? spec.shape : Shape{std::max<int64_t>(storage_elements, 1)};
  aclTensor* tensor = acl.aclCreateTensor(spec.shape.data(), spec.shape.size(),
                                          ToAclDataType(spec.dtype), strides.data(), offset,
                                          ACL_FORMAT_ND, storage.data(), storage.size(), address);
  if (tensor == nullptr) return AclCallStatus(acl, "aclCreateTensor", ACL_ERROR_FAILURE);
  return TensorDescriptor(tensor, TensorDescriptor::deleter_type{&acl});
}

}  // namespace

absl::StatusOr<Plan::Descriptors> Plan::DescribeTensors(absl::Span<void* const> inputs,
                                                        void* output) const {
  Descriptors descriptors;
  for (size_t i = 0; i < call_.inputs.size(); ++i) {
    const BoundInput& input = call_.inputs[i];
    OPSERVE_ASSIGN_OR_RETURN(
        TensorDescriptor tensor,
        Describe(acl_, input.spec, input.strides, input.offset, input.storage_elements, inputs[i]));
    descriptors.inputs.push_back(std::move(tensor));
  }
  OPSERVE_ASSIGN_OR_RETURN(descriptors.output,
                           Describe(acl_, call_.output, ContiguousStrides(call_.output.shape),
                                    /*offset=*/0, NumElements(call_.output.shape), output));
  return descriptors;
}

absl::StatusOr<ExecutorHandle> Plan::RunStageOne(const Descriptors& descriptors,
                                                 uint64_t* workspace_bytes) const {
  absl::InlinedVector<aclTensor*, 3> inputs;
  for (const TensorDescriptor& input : descriptors.inputs) inputs.push_back(input.get());
  aclOpExecutor* executor = nullptr;
  const catalog::Binding& binding = op().descriptor->binding;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl_, binding.stage_one,
                    binding.call_stage_one(op().stage_one, {.inputs = inputs,
                                                            .attributes = call_.attributes,
                                                            .output = descriptors.output.get(),
                                                            .workspace_bytes = workspace_bytes,
                                                            .executor = &executor})));
  return ExecutorHandle(executor, ExecutorHandle::deleter_type{&acl_});
}

absl::Status Plan::Prepare() {
  const absl::InlinedVector<void*, 3> no_addresses(call_.inputs.size(), nullptr);
  OPSERVE_ASSIGN_OR_RETURN(descriptors_, DescribeTensors(no_addresses, nullptr));
  OPSERVE_ASSIGN_OR_RETURN(executor_, RunStageOne(descriptors_, &workspace_bytes_));
  const int code = acl_.HasRepeatableExecutors()
                       ? acl_.aclSetAclOpExecutorRepeatable(executor_.get())
                       : ACLNN_ERR_INNER;
  if (code == ACLNN_ERR_INNER) {  // this call's executor can run only once
    executor_.reset();
    return absl::OkStatus();
  }
  return AclCallStatus(acl_, "aclSetAclOpExecutorRepeatable", code);
}

absl::Status Plan::SetAddresses(absl::Span<void* const> inputs, void* output) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    OPSERVE_RETURN_IF_ERROR(
        AclCallStatus(acl_, "aclSetInputTensorAddr",
                      acl_.aclSetInputTensorAddr(executor_.get(), i, descriptors_.inputs[i].get(),
                                                 OrNoElements(inputs[i]))));
  }
  return AclCallStatus(acl_, "aclSetOutputTensorAddr",
                       acl_.aclSetOutputTensorAddr(executor_.get(), 0, descriptors_.output.get(),
                                                   OrNoElements(output)));
}

absl::Status Plan::LaunchOnce(absl::Span<void* const> inputs, void* output, void* workspace,
                              aclrtStream stream) {
  OPSERVE_ASSIGN_OR_RETURN(Descriptors made, DescribeTensors(inputs, output));
  const Descriptors& descriptors = launched_.emplace_back(std::move(made));
  uint64_t bytes = 0;
  OPSERVE_ASSIGN_OR_RETURN(ExecutorHandle executor, RunStageOne(descriptors, &bytes));
  if (bytes > workspace_bytes_) {
    const uint64_t had = std::exchange(workspace_bytes_, bytes);
    return MakeError(Reason::kDeviceMemory,
                     absl::StrCat("stage one asks for ", bytes, " bytes of workspace, ", had,
                                  " were set aside; repeat the call"));
  }
  // Stage two takes the executor over, also when it fails.
  return AclCallStatus(acl_, op().descriptor->binding.stage_two,
                       op().stage_two(workspace, bytes, executor.release(), stream));
}

absl::Status Plan::Launch(absl::Span<void* const> inputs, void* output, void* workspace,
                          aclrtStream stream) {
  if (executor_ == nullptr) return LaunchOnce(inputs, output, workspace, stream);
  absl::Status status = SetAddresses(inputs, output);
  if (status.ok()) {
    status = AclCallStatus(acl_, op().descriptor->binding.stage_two,
                           op().stage_two(workspace, workspace_bytes_, executor_.get(), stream));
  }
  is_broken_ = !status.ok();
  return status;
}

PlanCache::~PlanCache() {
  while (!entries_.empty()) Remove(entries_.begin());
}

void PlanCache::Remove(std::list<Entry>::iterator entry) {
  counters_.of[entry->op].entries.fetch_sub(1, std::memory_order_relaxed);
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

absl::StatusOr<PlanCache::Lease> PlanCache::Acquire(const BoundInvocation& invocation) {
  std::string key = KeyOf(invocation);
  auto found = by_key_.find(key);
  if (found != by_key_.end() && found->second->plan->is_broken_) {
    Remove(found->second);
    found = by_key_.end();
  }
  if (found != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->plan->launched_.clear();
    // A plan that runs once remembers the workspace only.
    return Lease{found->second->plan, /*is_hit=*/found->second->plan->executor_ != nullptr};
  }
  PlanCacheCounters::Operator& counters = counters_.of[invocation.op->index];
  auto plan = std::shared_ptr<Plan>(new Plan(acl_, invocation));
  if (absl::Status status = plan->Prepare(); !status.ok()) {
    counters.misses.fetch_add(1, std::memory_order_relaxed);
    return status;
  }
  if (entries_.size() == capacity_) {
    counters_.of[entries_.back().op].evictions.fetch_add(1, std::memory_order_relaxed);
    Remove(std::prev(entries_.end()));
  }
  entries_.push_front({std::move(key), invocation.op->index, plan});
  by_key_.emplace(entries_.front().key, entries_.begin());
  counters.entries.fetch_add(1, std::memory_order_relaxed);
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
