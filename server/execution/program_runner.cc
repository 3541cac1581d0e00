#include "server/execution/program_runner.h"

#include <algorithm>
#include <cstring>
#include <optional>
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

}  // namespace

// The steps of a run.
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
      result_.outputs.push_back(
          {source, invocation.op->descriptor->output.name, invocation.output, PinnedBuffer()});
      ProgramResult::Output& output = result_.outputs.back();
      if (invocation.window) output.range = program_.windows[*invocation.window].range;
      if (invocation.window && !program_.windows[*invocation.window].IsStaged()) continue;
      OPSERVE_ASSIGN_OR_RETURN(output.data, context_.pinned.Allocate(NumBytes(invocation.output),
                                                                     context_.pinned_allowance));
    }
    for (size_t i = 0; i < program_.windows.size(); ++i) {
      PinnedBuffer& buffer = staged_windows_.emplace_back();
      if (!program_.windows[i].IsStaged() || IsDestination(i)) continue;
      OPSERVE_ASSIGN_OR_RETURN(buffer, context_.pinned.Allocate(program_.windows[i].range.size(),
                                                                context_.pinned_allowance));
    }
    PlanPieces();
    OPSERVE_ASSIGN_OR_RETURN(
        memory_, context_.lane.device().memory().Allocate(AllocationUntil(call_.deadline()),
                                                          &result_.pool_outcome));
    result_.device_memory_bytes = memory_.size();
    return absl::OkStatus();
  }

  // As TakeMemory, of what is free now. False: it is not; then nothing was taken.
  bool TryTakeMemory() {
    for (uint32_t source : program_.results) {
      const BoundInvocation& invocation = program_.invocations[source];
      std::optional<PinnedBuffer> buffer =
          context_.pinned.TryAllocate(NumBytes(invocation.output), context_.pinned_allowance);
      if (!buffer) return false;
      result_.outputs.push_back(
          {source, invocation.op->descriptor->output.name, invocation.output, *std::move(buffer)});
    }
    PlanPieces();
    std::optional<DeviceBuffer> memory = context_.lane.device().memory().TryAllocate(
        AllocationUntil(absl::InfinitePast()), &result_.pool_outcome);
    if (!memory) return false;
    memory_ = *std::move(memory);
    result_.device_memory_bytes = memory_.size();
    return true;
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
      OPSERVE_ASSIGN_OR_RETURN(const absl::string_view contents, ContentsOf(i));
      OPSERVE_RETURN_IF_ERROR(
          CopyToDevice(contents, static_cast<char*>(At(memory_plan_.windows[i]))));
      result_.shared_to_device_bytes += bytes;
    }
    return absl::OkStatus();
  }

  // Whether the payloads, as they lie in device memory, fit the staging buffer.
  bool FitsStaging() {
    staged_begin_ = UINT64_MAX;
    staged_end_ = 0;
    for (size_t i = 0; i < payloads_.size(); ++i) {
      if (payloads_[i].size == 0) continue;
      staged_begin_ = std::min(staged_begin_, memory_plan_.payloads[i]);
      staged_end_ = std::max(staged_end_, memory_plan_.payloads[i] + payloads_[i].size);
    }
    return staged_end_ == 0 || staged_end_ - staged_begin_ <= context_.staging.size();
  }

  // All payloads by one copy from page-locked memory. What lies between them is not written before
  // its own use, but may not be what an earlier request left in the staging buffer.
  absl::Status CopyPayloadsFromStaging() {
    if (staged_end_ == 0) return absl::OkStatus();
    const size_t bytes = staged_end_ - staged_begin_;
    char* const staging = context_.staging.data();
    uint64_t previous_end = staged_begin_;
    for (size_t i : PayloadsByOffset()) {
      char* to = staging + (memory_plan_.payloads[i] - staged_begin_);
      std::memset(staging + (previous_end - staged_begin_), 0,
                  memory_plan_.payloads[i] - previous_end);
      for (absl::string_view piece : payloads_[i].pieces) {
        std::memcpy(to, piece.data(), piece.size());
        to += piece.size();
      }
      previous_end = memory_plan_.payloads[i] + payloads_[i].size;
      result_.copied_to_device_bytes += payloads_[i].size;
    }
    return AclCallStatus(acl_, "aclrtMemcpyAsync",
                         acl_.aclrtMemcpyAsync(At(staged_begin_), bytes, staging, bytes,
                                               ACL_MEMCPY_HOST_TO_DEVICE, context_.lane.stream()));
  }

  absl::Status LaunchAll() {
    for (uint32_t i = 0; i < program_.invocations.size(); ++i) {
      OPSERVE_RETURN_IF_ERROR(InInvocation(program_, i, Launch(i)));
    }
    return absl::OkStatus();
  }

  absl::Status QueueResultCopies() {
    for (ProgramResult::Output& output : result_.outputs) {
      const size_t bytes = output.data.size();
      if (bytes == 0) continue;
      OPSERVE_RETURN_IF_ERROR(
          AclCallStatus(acl_, "aclrtMemcpyAsync",
                        acl_.aclrtMemcpyAsync(output.data.data(), bytes,
                                              At(memory_plan_.outputs[output.invocation]), bytes,
                                              ACL_MEMCPY_DEVICE_TO_HOST, context_.lane.stream())));
      result_.copied_from_device_bytes += bytes;
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
      const bool is_staged = window && program_.windows[*window].IsStaged();
      void* const to = window && !is_staged ? program_.windows[*window].data() : output.data.data();
      const size_t bytes = window ? output.range->size() : output.data.size();
      if (bytes == 0) continue;
      OPSERVE_RETURN_IF_ERROR(
          AclCallStatus(acl_, "aclrtMemcpy",
                        acl_.aclrtMemcpy(to, bytes, At(memory_plan_.outputs[output.invocation]),
                                         bytes, ACL_MEMCPY_DEVICE_TO_HOST)));
      if (is_staged) {
        OPSERVE_RETURN_IF_ERROR(program_.windows[*window].region->Write(
            output.range->offset(), {static_cast<const char*>(to), bytes}));
      }
      result_.copied_from_device_bytes += bytes;
      if (window) result_.shared_from_device_bytes += bytes;
    }
    return absl::OkStatus();
  }

  ProgramResult TakeResult() { return std::move(result_); }

  // Of what the device used in place.
  Registrations TakeRegistrations() { return std::move(registrations_); }

 private:
  void PlanPieces() {
    absl::InlinedVector<uint64_t, 4> payload_bytes;
    for (const codec::Payload& payload : payloads_) payload_bytes.push_back(payload.size);
    memory_plan_ = PlanMemory(program_, payload_bytes, workspace_bytes_, copied_windows_);
  }

  // Those with bytes, in the order in which they lie in device memory.
  absl::InlinedVector<size_t, 4> PayloadsByOffset() const {
    absl::InlinedVector<size_t, 4> order;
    for (size_t i = 0; i < payloads_.size(); ++i) {
      if (payloads_[i].size > 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return memory_plan_.payloads[a] < memory_plan_.payloads[b];
    });
    return order;
  }

  DeviceMemoryPool::Allocation AllocationUntil(absl::Time wait_until) const {
    return {.bytes = memory_plan_.total_bytes,
            .stream = context_.lane.stream(),
            .tenant = tenant_,
            .wait_until = wait_until,
            .is_cancelled = &call_.is_cancelled()};
  }

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

  // What is in a window that is copied.
  absl::StatusOr<absl::string_view> ContentsOf(size_t index) const {
    const SharedWindow& window = program_.windows[index];
    const uint64_t bytes = window.range.size();
    if (!window.IsStaged()) return absl::string_view(window.data(), bytes);
    auto* const to = static_cast<char*>(staged_windows_[index].data());
    OPSERVE_RETURN_IF_ERROR(window.region->Read(window.range.offset(), absl::MakeSpan(to, bytes)));
    return absl::string_view(to, bytes);
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
  std::vector<PinnedBuffer> staged_windows_;  // by window; empty: none
  MemoryPlan memory_plan_;
  uint64_t staged_begin_ = 0;  // of the payloads in the plan's block
  uint64_t staged_end_ = 0;
  DeviceBuffer memory_;
  ProgramResult result_;
};

namespace {

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

absl::Status AwaitStream(const Program& program, const CallState& call, LaneContext& context) {
  const absl::Status status = context.lane.Synchronize(context.execution_timeout, call.deadline());
  // The stream does not tell which of its kernels failed.
  return program.invocations.size() == 1 ? InInvocation(program, 0, status) : status;
}

absl::StatusOr<ProgramResult> RunOnStream(const Program& program, const CallState& call,
                                          ProgramRun& run, LaneContext& context,
                                          StageClock& clock) {
  OPSERVE_RETURN_IF_ERROR(CheckResidents(program, context.lane.device()));
  absl::Status status = run.FindPlans();
  clock.Book(Stage::kPrepare);
  OPSERVE_RETURN_IF_ERROR(status);
  context.BeginWait();
  status = run.TakeMemory();
  context.BeginStep();
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
  context.BeginStep();
  status = run.LaunchAll();
  if (status.ok()) {
    std::move(settle).Cancel();
    status = AwaitStream(program, call, context);
  }
  context.BeginStep();
  clock.Book(Stage::kExecute);
  OPSERVE_RETURN_IF_ERROR(status);

  status = run.CopyResultsToHost();
  clock.Book(Stage::kD2h);
  OPSERVE_RETURN_IF_ERROR(status);
  return run.TakeResult();
}

// Reports a device that broke, and tells the pool what became of the stream that was `stream`.
absl::StatusOr<ProgramResult> Conclude(absl::StatusOr<ProgramResult> result, aclrtStream stream,
                                       Registrations registrations, LaneContext& context) {
  // aclnn says of a lost device no more than that a runtime call failed: the stream knows.
  if (absl::IsInternal(result.status())) {
    if (absl::Status lost = context.lane.CheckDevice(); !lost.ok()) result = lost;
  }
  if (IsDeviceLoss(result.status())) context.lane.device().QuarantineLost(result.status());
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
    result = RunOnStream(program, call, run, context, clock);
    registrations = run.TakeRegistrations();
  }
  return Conclude(std::move(result), stream, std::move(registrations), context);
}

class PromptRun::State {
 public:
  State(const Program& program, absl::Span<const codec::Payload> payloads, const CallState& call,
        uint32_t tenant, LaneContext& context, StageClock& clock)
      : program_(program),
        call_(call),
        context_(context),
        clock_(clock),
        stream_(context.lane.stream()),
        run_(std::in_place, program, payloads, call, tenant, context) {}

  bool Start() {
    status_ = call_.Check();
    if (status_.ok()) status_ = CheckResidents(program_, context_.lane.device());
    if (!status_.ok()) return true;
    status_ = run_->FindPlans();
    clock_.Book(Stage::kPrepare);
    if (!status_.ok()) return true;
    if (!run_->TryTakeMemory() || !run_->FitsStaging()) return false;
    status_ = Queue();
    return true;
  }

  bool IsOver() const { return context_.lane.IsIdle(); }

  absl::StatusOr<ProgramResult> Finish() {
    // Also after an error half-way, which leaves work on the stream.
    const absl::Status ended = AwaitStream(program_, call_, context_);
    if (status_.ok()) status_ = ended;
    clock_.Book(Stage::kD2h);
    absl::StatusOr<ProgramResult> result = run_->TakeResult();
    if (!status_.ok()) result = status_;
    run_.reset();  // its memory is back before the stream is said to be idle
    return Conclude(std::move(result), stream_, /*registrations=*/{}, context_);
  }

 private:
  absl::Status Queue() {
    absl::Status status = run_->CopyPayloadsFromStaging();
    clock_.Book(Stage::kH2d);
    OPSERVE_RETURN_IF_ERROR(status);
    status = run_->LaunchAll();
    clock_.Book(Stage::kExecute);
    OPSERVE_RETURN_IF_ERROR(status);
    return run_->QueueResultCopies();
  }

  const Program& program_;
  const CallState& call_;
  LaneContext& context_;
  StageClock& clock_;
  const aclrtStream stream_;
  std::optional<ProgramRun> run_;
  absl::Status status_;
};

PromptRun::PromptRun(const Program& program, absl::Span<const codec::Payload> payloads,
                     const CallState& call, uint32_t tenant, LaneContext& lane, StageClock& clock)
    : state_(std::make_unique<State>(program, payloads, call, tenant, lane, clock)) {}

PromptRun::~PromptRun() = default;

bool PromptRun::Start() { return state_->Start(); }

bool PromptRun::IsOver() const { return state_->IsOver(); }

absl::StatusOr<ProgramResult> PromptRun::Finish() { return state_->Finish(); }

}  // namespace opserve::server
