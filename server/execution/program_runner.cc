#include "server/execution/program_runner.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "ops/catalog/error.h"
#include "ops/catalog/status_macros.h"
#include "server/device/acl_status.h"
#include "server/execution/memory_plan.h"

namespace opserve::server {
namespace {

// Puts operator and invocation in front of an error from below, which does not know them.
absl::Status InInvocation(const Program& program, uint32_t index, const absl::Status& status) {
  if (status.ok()) return status;
  const absl::string_view name = program.invocations[index].op->descriptor->name;
  absl::Status annotated(status.code(), absl::StrCat(name, ": ", status.message()));
  v1::ErrorDetail detail = catalog::GetErrorDetail(status).value_or(v1::ErrorDetail());
  detail.set_operator_(std::string(name));
  detail.set_invocation(index);
  catalog::SetErrorDetail(detail, &annotated);
  return annotated;
}

using Registrations = std::vector<std::shared_ptr<const HostRegistration>>;

class ProgramRun {
 public:
  ProgramRun(const Program& program, absl::Span<const codec::Payload> payloads,
             const CallState& call, uint32_t tenant, LaneContext& context)
      : program_(program),
        payloads_(payloads),
        call_(call),
        tenant_(tenant),
        context_(context),
        acl_(context.lane.device().acl()) {
    result_.device = context.lane.device().id();
    result_.lane = context.lane.index();
  }

  // Runs stage one of every invocation, or finds what it said before.
  absl::Status FindPlans() {
    for (uint32_t i = 0; i < program_.invocations.size(); ++i) {
      auto lease = context_.plans.Acquire(program_.invocations[i]);
      if (!lease.ok()) return InInvocation(program_, i, lease.status());
      ++(lease->is_hit ? result_.plan_hits : result_.plan_misses);
      const uint64_t bytes = lease->plan->workspace_bytes();
      OPSERVE_RETURN_IF_ERROR(InInvocation(program_, i, CheckWorkspace(bytes)));
      result_.workspace_bytes += bytes;
      workspace_bytes_.push_back(bytes);
      plans_.push_back(std::move(lease->plan));
    }
    return absl::OkStatus();
  }

  // All memory the program will need, results included, before anything is copied or launched.
  absl::Status TakeMemory() {
    OPSERVE_RETURN_IF_ERROR(MapWindows());
    for (uint32_t source : program_.results) {
      const BoundInvocation& invocation = program_.invocations[source];
      if (invocation.window) {
        result_.outputs.push_back({source, invocation.op->descriptor->output.name,
                                   invocation.output, PinnedBuffer(),
                                   program_.windows[*invocation.window].range});
        continue;
      }
      OPSERVE_ASSIGN_OR_RETURN(PinnedBuffer buffer,
                               context_.pinned.Allocate(catalog::NumBytes(invocation.output),
                                                        context_.pinned_allowance));
      result_.outputs.push_back(
          {source, invocation.op->descriptor->output.name, invocation.output, std::move(buffer)});
    }
    std::vector<uint64_t> payload_bytes;
    for (const codec::Payload& payload : payloads_) payload_bytes.push_back(payload.size);
    memory_plan_ = PlanMemory(program_, payload_bytes, workspace_bytes_, copied_windows_);
    OPSERVE_ASSIGN_OR_RETURN(
        memory_, context_.lane.device().memory().Allocate({.bytes = memory_plan_.total_bytes,
                                                           .stream = context_.lane.stream(),
                                                           .tenant = tenant_,
                                                           .wait_until = call_.deadline(),
                                                           .is_cancelled = &call_.is_cancelled()},
                                                          &result_.pool_outcome));
    result_.device_memory_bytes = memory_.size();
    return absl::OkStatus();
  }

  absl::Status CopyInputsToDevice() {
    for (size_t i = 0; i < payloads_.size(); ++i) {
      char* to = static_cast<char*>(At(memory_plan_.payloads[i]));
      for (absl::string_view piece : payloads_[i].pieces) {
        OPSERVE_RETURN_IF_ERROR(CopyToDevice(piece, to));
        to += piece.size();
      }
    }
    for (size_t i = 0; i < copied_windows_.size(); ++i) {
      const uint64_t bytes = program_.windows[i].range.size();
      if (!copied_windows_[i] || bytes == 0 || IsDestination(i)) continue;
      OPSERVE_RETURN_IF_ERROR(CopyToDevice({program_.windows[i].data(), bytes},
                                           static_cast<char*>(At(memory_plan_.windows[i]))));
      result_.shared_to_device_bytes += bytes;
    }
    return absl::OkStatus();
  }

  // Stage two of one invocation.
  absl::Status Launch(uint32_t index) {
    OPSERVE_RETURN_IF_ERROR(call_.Check());
    absl::InlinedVector<void*, 3> inputs;
    for (const BoundInput& input : program_.invocations[index].inputs) {
      inputs.push_back(AddressOf(input));
    }
    return plans_[index]->Launch(inputs, OutputAddress(index), At(memory_plan_.workspaces[index]),
                                 context_.lane.stream());
  }

  absl::Status CopyResultsToHost() {
    for (ProgramResult::Output& output : result_.outputs) {
      const std::optional<uint32_t> window = program_.invocations[output.invocation].window;
      if (window && !copied_windows_[*window]) continue;
      void* const to = window ? program_.windows[*window].data() : output.data.data();
      const size_t bytes = window ? output.range->size() : output.data.size();
      if (bytes == 0) continue;
      OPSERVE_RETURN_IF_ERROR(
          AclCallStatus(acl_, "aclrtMemcpy",
                        acl_.aclrtMemcpy(to, bytes, At(memory_plan_.outputs[output.invocation]),
                                         bytes, ACL_MEMCPY_DEVICE_TO_HOST)));
      result_.copied_from_device_bytes += bytes;
      if (window) result_.shared_from_device_bytes += bytes;
    }
    return absl::OkStatus();
  }

  ProgramResult TakeResult() { return std::move(result_); }

  // Of what the device used in place.
  Registrations TakeRegistrations() { return std::move(registrations_); }

 private:
  // Finds out which windows the device can use where they are.
  absl::Status MapWindows() {
    for (const SharedWindow& window : program_.windows) {
      const v1::SharedMemoryRange& range = window.range;
      std::shared_ptr<const HostRegistration> registration;
      if (window.region->FitsInPlace(range.offset(), range.size())) {
        OPSERVE_ASSIGN_OR_RETURN(
            registration, window.region->RegistrationOn(context_.lane.device(), call_.deadline()));
      }
      copied_windows_.push_back(registration == nullptr);
      registrations_.push_back(std::move(registration));
    }
    return absl::OkStatus();
  }

  bool IsDestination(size_t window) const {
    return std::any_of(program_.results.begin(), program_.results.end(), [&](uint32_t source) {
      return program_.invocations[source].window == window;
    });
  }

  absl::Status CopyToDevice(absl::string_view bytes, char* to) {
    result_.copied_to_device_bytes += bytes.size();
    return AclCallStatus(acl_, "aclrtMemcpyAsync",
                         acl_.aclrtMemcpyAsync(to, bytes.size(), bytes.data(), bytes.size(),
                                               ACL_MEMCPY_HOST_TO_DEVICE, context_.lane.stream()));
  }

  absl::Status CheckWorkspace(uint64_t bytes) const {
    const WorkspaceLimits& limits = context_.workspace_limits;
    if (bytes <= limits.max_bytes &&
        IsInProportion(bytes, program_.input_bytes, limits.max_ratio)) {
      return absl::OkStatus();
    }
    return catalog::ErrorWithPushback(
        absl::StatusCode::kFailedPrecondition, "amplification",
        absl::StrCat("needs ", bytes, " bytes of workspace for ", program_.input_bytes,
                     " bytes of inputs; at most ", limits.max_bytes, " bytes and ",
                     limits.max_ratio, " times the inputs are allowed"),
        /*pushback_ms=*/-1);
  }

  void* At(uint64_t offset) const {
    return memory_.data() == nullptr ? nullptr : static_cast<char*>(memory_.data()) + offset;
  }

  void* AddressOf(const BoundInput& input) const {
    if (const auto* payload = std::get_if<PayloadSource>(&input.source)) {
      return At(memory_plan_.payloads[payload->payload]);
    }
    if (const auto* resident = std::get_if<ResidentSource>(&input.source)) {
      return program_.residents[resident->resident]->memory.data();
    }
    if (const auto* shared = std::get_if<SharedSource>(&input.source)) {
      return copied_windows_[shared->window] ? At(memory_plan_.windows[shared->window])
                                             : InPlace(shared->window);
    }
    return OutputAddress(std::get<InvocationSource>(input.source).invocation);
  }

  void* OutputAddress(uint32_t invocation) const {
    const std::optional<uint32_t> window = program_.invocations[invocation].window;
    return window && !copied_windows_[*window] ? InPlace(*window)
                                               : At(memory_plan_.outputs[invocation]);
  }

  void* InPlace(uint32_t window) const {
    return registrations_[window]->device_address() + program_.windows[window].range.offset();
  }

  const Program& program_;
  const absl::Span<const codec::Payload> payloads_;
  const CallState& call_;
  const uint32_t tenant_;
  LaneContext& context_;
  const AclLibrary& acl_;
  std::vector<std::shared_ptr<Plan>> plans_;  // by invocation; leased until the lane is idle
  std::vector<uint64_t> workspace_bytes_;     // by invocation
  std::vector<bool> copied_windows_;          // whether the device cannot use it in place
  Registrations registrations_;               // by window; null: none
  MemoryPlan memory_plan_;
  DeviceBuffer memory_;
  ProgramResult result_;
};

absl::Status CheckResidents(const Program& program, const Device& device) {
  for (const std::shared_ptr<const ResidentTensor>& resident : program.residents) {
    if (resident->device_generation != device.generation()) {
      return catalog::ErrorWithReason(
          absl::StatusCode::kFailedPrecondition, "tensor_lost",
          "the device was reset since the resident tensor was uploaded; upload it again");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ProgramResult> RunOnStream(const Program& program, ProgramRun& run,
                                          LaneContext& context, StageClock& clock) {
  OPSERVE_RETURN_IF_ERROR(CheckResidents(program, context.lane.device()));
  absl::Status status = run.FindPlans();
  clock.Book(Stage::kPrepare);
  OPSERVE_RETURN_IF_ERROR(status);
  status = run.TakeMemory();
  clock.Book(Stage::kQueue);
  OPSERVE_RETURN_IF_ERROR(status);

  // An error half-way leaves work on the stream; its buffers and errors are this request's, so it
  // ends before the lane serves another.
  StreamLane& lane = context.lane;
  auto settle =
      absl::MakeCleanup([&] { lane.Synchronize(context.execution_timeout).IgnoreError(); });
  status = run.CopyInputsToDevice();
  clock.Book(Stage::kH2d);
  OPSERVE_RETURN_IF_ERROR(status);
  const auto count = static_cast<uint32_t>(program.invocations.size());
  for (uint32_t i = 0; i < count; ++i) {
    OPSERVE_RETURN_IF_ERROR(InInvocation(program, i, run.Launch(i)));
  }
  std::move(settle).Cancel();
  status = lane.Synchronize(context.execution_timeout);
  clock.Book(Stage::kExecute);
  // The stream does not tell which of its kernels failed.
  OPSERVE_RETURN_IF_ERROR(count == 1 ? InInvocation(program, 0, status) : status);

  status = run.CopyResultsToHost();
  clock.Book(Stage::kD2h);
  OPSERVE_RETURN_IF_ERROR(status);
  return run.TakeResult();
}

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const Program& program,
                                         absl::Span<const codec::Payload> payloads,
                                         const CallState& call, uint32_t tenant,
                                         LaneContext& context, StageClock& clock) {
  OPSERVE_RETURN_IF_ERROR(call.Check());
  const aclrtStream stream = context.lane.stream();
  absl::StatusOr<ProgramResult> result;
  Registrations registrations;
  {  // after it the memory is back in its pool
    ProgramRun run(program, payloads, call, tenant, context);
    result = RunOnStream(program, run, context, clock);
    registrations = run.TakeRegistrations();
  }
  // aclnn says of a lost device no more than that a runtime call failed: the stream knows.
  if (absl::IsInternal(result.status())) {
    if (absl::Status lost = context.lane.CheckDevice(); !lost.ok()) result = lost;
  }
  if (absl::IsUnavailable(result.status())) {
    context.lane.device().Quarantine(result.status().message());
  }
  // A stream that had to be given up keeps its blocks to itself.
  Device& device = context.lane.device();
  const bool is_idle =
      context.lane.stream() == stream && device.state() != DeviceState::kQuarantined;
  if (is_idle && result.ok()) device.memory().StreamIsIdle(stream);
  if (is_idle && !result.ok()) device.memory().StreamWasAborted(stream);
  // What could not be stopped may still use the caller's memory.
  for (size_t i = 0; i < registrations.size() && !is_idle; ++i) {
    if (registrations[i] != nullptr) device.KeepUntilReset(std::move(registrations[i]));
  }
  return result;
}

}  // namespace opserve::server
