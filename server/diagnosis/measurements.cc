#include "server/diagnosis/measurements.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/run/golden_values.h"

namespace opserve::server {
namespace {

// Large enough that a copy takes much longer than its call.
constexpr size_t kCopyBytes = 16 << 20;
constexpr int kCopies = 5;
constexpr int kLaunches = 200;
// Of a golden case's tensor or workspace within one block of device memory.
constexpr uint64_t kAlignment = 512;

absl::StatusOr<DeviceBuffer> Allocate(size_t bytes, LaneContext& lane) {
  return lane.lane.device().memory().Allocate({.bytes = bytes,
                                               .stream = lane.lane.stream(),
                                               .tenant = 0,
                                               .wait_until = absl::InfinitePast(),
                                               .is_cancelled = nullptr});
}

absl::Duration Median(std::vector<absl::Duration> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

absl::StatusOr<uint64_t> Rate(LaneContext& lane, void* to, const void* from, aclrtMemcpyKind kind) {
  const AclLibrary& acl = lane.lane.device().acl();
  std::vector<absl::Duration> times;
  for (int i = 0; i < kCopies; ++i) {
    const absl::Time start = absl::Now();
    OPSERVE_RETURN_IF_ERROR(AclCallStatus(
        acl, "aclrtMemcpyAsync",
        acl.aclrtMemcpyAsync(to, kCopyBytes, from, kCopyBytes, kind, lane.lane.stream())));
    // Each copy alone, as a request's.
    OPSERVE_RETURN_IF_ERROR(lane.lane.Synchronize(lane.execution_timeout));
    times.push_back(absl::Now() - start);
  }
  const double seconds = std::max(absl::ToDoubleSeconds(Median(std::move(times))), 1e-9);
  return static_cast<uint64_t>(kCopyBytes / seconds);
}

}  // namespace

absl::StatusOr<CopyRates> MeasureCopies(LaneContext& lane) {
  OPSERVE_ASSIGN_OR_RETURN(const DeviceBuffer memory, Allocate(kCopyBytes, lane));
  OPSERVE_ASSIGN_OR_RETURN(const PinnedBuffer pinned, lane.pinned.Allocate(kCopyBytes));
  const std::vector<char> pageable(kCopyBytes);
  CopyRates rates;
  OPSERVE_ASSIGN_OR_RETURN(rates.to_device,
                           Rate(lane, memory.data(), pinned.data(), ACL_MEMCPY_HOST_TO_DEVICE));
  OPSERVE_ASSIGN_OR_RETURN(rates.from_device,
                           Rate(lane, pinned.data(), memory.data(), ACL_MEMCPY_DEVICE_TO_HOST));
  OPSERVE_ASSIGN_OR_RETURN(rates.from_pageable,
                           Rate(lane, memory.data(), pageable.data(), ACL_MEMCPY_HOST_TO_DEVICE));
  return rates;
}

absl::StatusOr<LaunchTimes> MeasureLaunches(const LoadedOperator& op, LaneContext& lane) {
  OPSERVE_ASSIGN_OR_RETURN(const ProgramCall call,
                           GoldenProgram(op, op.descriptor->golden.front()));
  const BoundInvocation& invocation = call.invocation(0);
  // The plan is kept, so that the launches measure stage two alone.
  OPSERVE_ASSIGN_OR_RETURN(PlanCache::Lease lease, lane.plans.Acquire(invocation));
  // The memory is left as it is: only times are measured, and the results are discarded.
  uint64_t bytes = 0;
  std::vector<uint64_t> offsets;
  const auto add = [&](uint64_t size) {
    offsets.push_back(bytes);
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (const BoundInput& input : invocation.inputs) add(NumBytes(input.spec));
  for (const BoundOutput& output : invocation.outputs) add(NumBytes(output.spec));
  add(lease.plan->workspace_bytes());
  // Slack for kernels that read behind the last tensor.
  OPSERVE_ASSIGN_OR_RETURN(const DeviceBuffer memory, Allocate(bytes + kAlignment, lane));
  const auto at = [&](size_t i) -> void* { return static_cast<char*>(memory.data()) + offsets[i]; };
  const size_t num_inputs = invocation.inputs.size();
  std::vector<void*> outputs;
  for (size_t i = 0; i < invocation.outputs.size(); ++i) outputs.push_back(at(num_inputs + i));
  std::vector<void*> inputs;
  for (size_t i = 0; i < num_inputs; ++i) {
    const std::optional<uint32_t> in_place = invocation.inputs[i].output;
    inputs.push_back(in_place ? outputs[*in_place] : at(i));
  }
  void* const workspace = at(num_inputs + outputs.size());

  std::vector<absl::Duration> queued;
  std::vector<absl::Duration> done;
  for (int i = 0; i < kLaunches; ++i) {
    const absl::Time start = absl::Now();
    OPSERVE_RETURN_IF_ERROR(lease.Launch(inputs, outputs, workspace, lane.lane.stream()));
    queued.push_back(absl::Now() - start);
    OPSERVE_RETURN_IF_ERROR(lane.lane.Synchronize(lane.execution_timeout));
    done.push_back(absl::Now() - start);
  }
  return LaunchTimes{Median(std::move(queued)), Median(std::move(done))};
}

}  // namespace opserve::server
