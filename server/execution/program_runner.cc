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
#include "server/execution/window_transfer.h"

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
    windows_.reserve(program.windows.size());
    for (const SharedWindow& window : program.windows) windows_.emplace_back(window, context);
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
    for (WindowTransfer& window : windows_) {
      OPSERVE_RETURN_IF_ERROR(window.Prepare(call_.deadline()));
    }
    for (uint32_t source : program_.results) {
      const BoundInvocation& invocation = program_.invocations[source];
      result_.outputs.push_back(
          {source, invocation.op->descriptor->output.name, invocation.output, PinnedBuffer()});
      ProgramResult::Output& output = result_.outputs.back();
      if (invocation.window) {
        output.range = program_.windows[*invocation.window].range;
        continue;
      }
      OPSERVE_ASSIGN_OR_RETURN(output.data,
                               context_.pinned.Allocate(catalog::NumBytes(invocation.output),
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
      std::optional<PinnedBuffer> buffer = context_.pinned.TryAllocate(
          catalog::NumBytes(invocation.output), context_.pinned_allowance);
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
      char* to = static_cast<char*>(At(plan().payloads[i]));
      for (absl::string_view piece : payloads_[i].pieces) {
        OPSERVE_RETURN_IF_ERROR(CopyToDevice(piece, to));
        to += piece.size();
      }
    }
    for (size_t i = 0; i < windows_.size(); ++i) {
      OPSERVE_ASSIGN_OR_RETURN(const uint64_t bytes, windows_[i].CopyToDevice(MemoryOfWindow(i)));
      result_.copied_to_device_bytes += bytes;
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
      staged_begin_ = std::min(staged_begin_, plan().payloads[i]);
      staged_end_ = std::max(staged_end_, plan().payloads[i] + payloads_[i].size);
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
      char* to = staging + (plan().payloads[i] - staged_begin_);
      std::memset(staging + (previous_end - staged_begin_), 0, plan().payloads[i] - previous_end);
      for (absl::string_view piece : payloads_[i].pieces) {
        std::memcpy(to, piece.data(), piece.size());
        to += piece.size();
      }
      previous_end = plan().payloads[i] + payloads_[i].size;
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
      OPSERVE_RETURN_IF_ERROR(AclCallStatus(
          acl_, "aclrtMemcpyAsync",
          acl_.aclrtMemcpyAsync(output.data.data(), bytes, At(plan().outputs[output.invocation]),
                                bytes, ACL_MEMCPY_DEVICE_TO_HOST, context_.lane.stream())));
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
    return plans_[index]->Launch(inputs, OutputAddress(index), At(plan().workspaces[index]),
                                 context_.lane.stream());
  }

  absl::Status CopyResultsToHost() {
    for (ProgramResult::Output& output : result_.outputs) {
      const size_t bytes = output.data.size();
      if (bytes == 0) continue;
      OPSERVE_RETURN_IF_ERROR(AclCallStatus(
          acl_, "aclrtMemcpy",
          acl_.aclrtMemcpy(output.data.data(), bytes, At(plan().outputs[output.invocation]), bytes,
                           ACL_MEMCPY_DEVICE_TO_HOST)));
      result_.copied_from_device_bytes += bytes;
    }
    for (WindowTransfer& window : windows_) {
      OPSERVE_ASSIGN_OR_RETURN(const uint64_t bytes, window.Finish());
      result_.copied_from_device_bytes += bytes;
      result_.shared_from_device_bytes += bytes;
    }
    return absl::OkStatus();
  }

  ProgramResult TakeResult() { return std::move(result_); }

  std::vector<WindowTransfer> TakeWindows() { return std::move(windows_); }

 private:
  void PlanPieces() {
    std::vector<bool> copied_windows;
    for (const WindowTransfer& window : windows_) copied_windows.push_back(window.is_copied());
    const bool copies_any =
        std::find(copied_windows.begin(), copied_windows.end(), true) != copied_windows.end();
    if (result_.workspace_bytes == 0 && !copies_any) return;
    own_plan_ = PlanMemory(program_, program_.payload_sizes, workspace_bytes_, copied_windows);
  }

  const MemoryPlan& plan() const { return own_plan_ ? *own_plan_ : program_.memory_plan; }

  // Those with bytes, in the order in which they lie in device memory.
  absl::InlinedVector<size_t, 4> PayloadsByOffset() const {
    absl::InlinedVector<size_t, 4> order;
    for (size_t i = 0; i < payloads_.size(); ++i) {
      if (payloads_[i].size > 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [this](size_t a, size_t b) { return plan().payloads[a] < plan().payloads[b]; });
    return order;
  }

  DeviceMemoryPool::Allocation AllocationUntil(absl::Time wait_until) const {
    return {.bytes = plan().total_bytes,
            .stream = context_.lane.stream(),
            .tenant = tenant_,
            .wait_until = wait_until,
            .is_cancelled = &call_.is_cancelled()};
  }

  // The device memory of a window that is copied.
  void* MemoryOfWindow(size_t window) const {
    const std::optional<uint32_t> writer = program_.windows[window].writer;
    return At(writer ? plan().outputs[*writer] : plan().windows[window]);
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
      return At(plan().payloads[payload->payload]);
    }
    if (const auto* resident = std::get_if<ResidentSource>(&input.source)) {
      return program_.residents[resident->resident]->memory.data();
    }
    if (const auto* shared = std::get_if<SharedSource>(&input.source)) {
      return windows_[shared->window].Address();
    }
    return OutputAddress(std::get<InvocationSource>(input.source).invocation);
  }

  void* OutputAddress(uint32_t invocation) const {
    const std::optional<uint32_t> window = program_.invocations[invocation].window;
    return window ? windows_[*window].Address() : At(plan().outputs[invocation]);
  }

  const Program& program_;
  const absl::Span<const codec::Payload> payloads_;
  const CallState& call_;
  const uint32_t tenant_;
  LaneContext& context_;
  const AclLibrary& acl_;
  std::vector<std::shared_ptr<Plan>> plans_;  // by invocation; leased until the lane is idle
  std::vector<uint64_t> workspace_bytes_;     // by invocation
  std::vector<WindowTransfer> windows_;       // by window
  std::optional<MemoryPlan> own_plan_;        // none: the program's
  uint64_t staged_begin_ = 0;                 // of the payloads in the plan's block
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
                                       std::vector<WindowTransfer> windows, LaneContext& context) {
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
  for (size_t i = 0; i < windows.size() && !is_idle; ++i) {
    if (!windows[i].is_copied()) device.KeepUntilReset(windows[i].TakeRegistration());
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
  std::vector<WindowTransfer> windows;
  {  // after it the memory is back in its pool
    ProgramRun run(program, payloads, call, tenant, context);
    result = RunOnStream(program, call, run, context, clock);
    windows = run.TakeWindows();
  }
  return Conclude(std::move(result), stream, std::move(windows), context);
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
    return Conclude(std::move(result), stream_, /*windows=*/{}, context_);
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
