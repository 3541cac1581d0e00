#include "server/program/program.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rules.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/memory/pinned_pool.h"
#include "server/program/tensor_view.h"

namespace opserve::server {
namespace {

// Puts the tensors' specs, which rules read, one after the other.
absl::InlinedVector<catalog::Spec, 3> SpecsOf(const BoundInvocation& bound) {
  absl::InlinedVector<catalog::Spec, 3> specs;
  for (const BoundInput& input : bound.inputs) {
    specs.push_back({catalog::ToAcl(input.spec.dtype), input.spec.shape});
  }
  return specs;
}

}  // namespace

std::string BoundInvocation::OutputName(uint32_t output) const {
  size_t index = 0;
  while (output_ends[index] <= output) ++index;
  const catalog::OutputDescriptor& descriptor = op->descriptor->outputs[index];
  if (!descriptor.is_list) return descriptor.name;
  return absl::StrCat(descriptor.name, ".", output - (index == 0 ? 0 : output_ends[index - 1]));
}

std::optional<uint32_t> BoundInvocation::FindOutput(absl::string_view name) const {
  uint32_t begin = 0;
  for (size_t i = 0; i < output_ends.size(); begin = output_ends[i++]) {
    const catalog::OutputDescriptor& descriptor = op->descriptor->outputs[i];
    // An optional output that is not wanted has no tensor.
    if (!descriptor.is_list && descriptor.name == name && begin < output_ends[i]) return begin;
    absl::string_view number = name;
    uint32_t position = 0;
    if (descriptor.is_list && absl::ConsumePrefix(&number, descriptor.name) &&
        absl::ConsumePrefix(&number, ".") && absl::SimpleAtoi(number, &position) &&
        // "out.02" would be a second name.
        position < output_ends[i] - begin && number == absl::StrCat(position)) {
      return begin + position;
    }
  }
  return std::nullopt;
}

absl::Status JudgeCall(absl::Span<const bool> wanted,
                       absl::Span<const std::optional<aclDataType>> asked, BoundInvocation* bound) {
  const catalog::OperatorDescriptor& descriptor = *bound->op->descriptor;
  const absl::InlinedVector<catalog::Spec, 3> specs = SpecsOf(*bound);
  const catalog::CallSpec call{specs, bound->input_ends, bound->attributes};
  catalog::Judge judge(descriptor, call, catalog::Names::kCatalogue);
  catalog::Results results;
  // The operator's own rules, its outputs, then the limits of the daemon's data path.
  if (!judge.Check() || !judge.Infer(wanted, asked, &results) || !judge.CheckForDaemon(results)) {
    return InvalidCall(descriptor.name, judge.problem().argument, judge.problem().text);
  }
  const int64_t work = judge.CountWork(results);
  bound->work = static_cast<uint64_t>(work);
  bound->charge = static_cast<uint64_t>(judge.CountCharge(work, results));
  // The call may have been judged before, with other attributes.
  bound->outputs.clear();
  bound->output_ends.assign(results.ends.begin(), results.ends.end());
  size_t argument = 0;
  for (size_t i = 0; i < results.tensors.size(); ++i) {
    catalog::Spec& spec = results.tensors[i];
    while (results.ends[argument] <= i) ++argument;
    bound->outputs.push_back({TensorSpec{catalog::ToWire(spec.dtype), std::move(spec.shape)},
                              descriptor.outputs[argument].is_unwritten});
  }
  // Inputs that are changed in place are told their outputs, tensor by tensor for lists.
  for (size_t i = 0; i < descriptor.inputs.size(); ++i) {
    const std::optional<size_t> output = descriptor.inputs[i].output;
    if (!output) continue;
    const uint32_t begin = i == 0 ? 0 : bound->input_ends[i - 1];
    const uint32_t to = *output == 0 ? 0 : bound->output_ends[*output - 1];
    for (uint32_t k = begin; k < bound->input_ends[i]; ++k)
      bound->inputs[k].output = to + k - begin;
  }
  return absl::OkStatus();
}

absl::Status ProgramCall::CheckOneDevice() const {
  for (const BoundResident& resident : residents) {
    if (resident.tensor->device == *device()) continue;
    return MakeError(
        Reason::kInvalid, absl::StatusCode::kFailedPrecondition,
        absl::StrCat("a resident tensor of the request is on device ", resident.tensor->device,
                     ", another one on device ", *device(), "; upload them to one device"));
  }
  if (apart.empty() || apart.front()->device == *device()) return absl::OkStatus();
  return MakeError(Reason::kDeviceUnavailable,
                   absl::StrCat("the payloads came to device ", apart.front()->device,
                                ", which the request's resident tensors have left for device ",
                                *device(), " meanwhile"));
}

const LoadedOperator* Program::MissingOn(int32_t device) const {
  for (const LoadedOperator* op : operators) {
    if (!op->offer->IsOfferedBy(device)) return op;
  }
  // All copies are of one operator.
  if (!copies.empty() && !copies.front().call.op->offer->IsOfferedBy(device)) {
    return copies.front().call.op;
  }
  return nullptr;
}

void Program::ComputeFacts(absl::Span<const uint64_t> sizes) {
  // A program may have many invocations, but only as many operators as the catalogue.
  absl::flat_hash_set<const LoadedOperator*> seen;
  operators.clear();
  for (const BoundInvocation& invocation : invocations) {
    if (invocations.size() == 1 || seen.insert(invocation.op).second) {
      operators.push_back(invocation.op);
    }
  }
  payload_sizes.assign(sizes.begin(), sizes.end());
  payload_bytes = 0;
  for (const uint64_t bytes : sizes) payload_bytes += bytes;
  result_bytes = 0;
  pinned_bytes = 0;
  kept_bytes = 0;
  for (const KeptOutput& one : kept) {
    if (!one.is_in_place) kept_bytes += KeptBytes(one);
  }
  for (const BoundResult& result : results) {
    if (result.is_kept || output(result.source).window) continue;
    const auto bytes = static_cast<uint64_t>(NumBytes(output(result.source).spec));
    result_bytes += bytes;
    pinned_bytes += PinnedPool::BlockBytes(bytes);
  }
  const absl::InlinedVector<uint64_t, 4> no_workspaces(invocations.size());
  memory_plan = PlanMemory(*this, payload_sizes, no_workspaces);
}

bool IsInProportion(uint64_t bytes, uint64_t input_bytes, uint64_t ratio) {
  constexpr uint64_t kAlwaysAllowed = 1 << 20;
  if (bytes <= kAlwaysAllowed) return true;
  const uint64_t above = bytes - kAlwaysAllowed;
  // Rounded up, and without a product that could wrap.
  return above / ratio + (above % ratio != 0) <= input_bytes;
}

Shape ContiguousStrides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) {
    // An extent of 0 must not make the other strides 0.
    strides[axis - 1] = strides[axis] * std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

}  // namespace opserve::server
