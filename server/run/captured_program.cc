// ProgramRun: capture of a run, and replay of a captured one.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"
#include "server/run/program_runner.h"

namespace opserve::server {

void ProgramRun::TakeCapturedRun() {
  if (context_.captured == nullptr || !context_.captured->MayServe(bound_)) return;
  captured_ = context_.captured->Take(bound_, absl::Now());
  if (captured_ == nullptr) return;
  own_plan_ = captured_->memory_plan;
  stages_kept_ = true;
  workspace_bytes_ = captured_->workspace_bytes;
  for (const uint64_t bytes : workspace_bytes_) result_.workspace_bytes += bytes;
  result_.plan_hits = static_cast<uint32_t>(program_.invocations.size());
  memory_ = std::move(captured_->memory);
  // So that a stream that has to be given up keeps it, and others may wait for it.
  context_.lane.device().memory().JoinStream(memory_, stream_);
}

bool ProgramRun::IsCaptureDue() const {
  // An executor that runs once is gone after its launch, and what it keeps for its kernels.
  const auto is_repeatable = [](const PlanCache::Lease& lease) {
    return lease.plan->is_repeatable();
  };
  return context_.captured != nullptr && context_.captured->MayServe(bound_) &&
         context_.lane.device().state() == DeviceState::kReady &&
         std::all_of(leases_.begin(), leases_.end(), is_repeatable) &&
         std::all_of(copy_leases_.begin(), copy_leases_.end(), is_repeatable) &&
         IsAloneWithReplaced(bound_) && context_.captured->IsDue(bound_, absl::Now());
}

void ProgramRun::BeginCapture() {
  std::shared_ptr<const MemoryPlan> with_kept = own_plan_;
  if (!program_.kept.empty()) {
    with_kept = std::make_shared<const MemoryPlan>(
        PlanMemory(program_, program_.payload_sizes, workspace_bytes_, /*copied_windows=*/{},
                   /*stages_kept=*/true));
  }
  // Null: the program's own plan holds.
  const uint64_t bytes = with_kept == nullptr ? plan().total_bytes : with_kept->total_bytes;
  uint64_t plan_bytes = 0;
  for (const PlanCache::Lease& lease : leases_) {
    if (!lease.plan->IsKept()) plan_bytes += lease.plan->HostBytes();
  }
  captured_ = context_.captured->Begin(bound_, tenant_, bytes, absl::Now(), plan_bytes);
  if (captured_ == nullptr) return;
  own_plan_ = std::move(with_kept);
  stages_kept_ = true;
  captured_->memory_plan = own_plan_;
  captured_->workspace_bytes = workspace_bytes_;
}

// A launch reads them where they are. A captured run reads them in its own memory.
absl::Status ProgramRun::CopyPayloadsApart() {
  if (captured_ == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < bound_.apart.size(); ++i) {
    const uint64_t bytes = program_.payload_sizes[i];
    if (bytes == 0) continue;
    OPSERVE_RETURN_IF_ERROR(
        AclCallStatus(acl_, "aclrtMemcpyAsync",
                      acl_.aclrtMemcpyAsync(At(plan().payloads[i]), bytes,
                                            bound_.apart[i]->content->memory.data(), bytes,
                                            ACL_MEMCPY_DEVICE_TO_DEVICE, stream_)));
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::Start() {
  if (captured_ != nullptr) {
    OPSERVE_ASSIGN_OR_RETURN(const bool is_queued, Replay());
    if (is_queued) return absl::OkStatus();
    OPSERVE_RETURN_IF_ERROR(PrepareToLaunch());
  }
  is_launched_ = true;
  return LaunchAll(stream_);
}

absl::StatusOr<bool> ProgramRun::Replay() {
  result_.is_replayed = captured_->graph != nullptr;
  absl::Status status = captured_->graph != nullptr ? absl::OkStatus() : Capture();
  if (status.ok()) {
    status = AclCallStatus(acl_, "aclmdlRIExecuteAsync",
                           acl_.aclmdlRIExecuteAsync(captured_->graph.get(), stream_));
  }
  is_launched_ = status.ok();
  if (is_launched_) return true;
  // A call that has ended need not launch either.
  OPSERVE_RETURN_IF_ERROR(call_.Check());
  static LineLimiter lines(LimitedEvent::kCaptureFailed);
  if (lines.Admit(LogSeverity::kWarning, absl::Now())) {
    lines.Write(LogSeverity::kWarning, "capture_failed",
                {{"device", context_.lane.device().id()},
                 {"invocations", program_.invocations.size()},
                 {"reason", std::string(status.message())}});
  }
  return false;
}

absl::Status ProgramRun::Capture() {
  // Not the lane's: a stream whose capture cannot be ended takes nothing more.
  aclrtStream stream = nullptr;
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl_, "aclrtCreateStream", acl_.aclrtCreateStream(&stream)));
  const absl::Status status = CaptureOn(stream);
  // It has nothing to wait for. If it cannot go, others would pile up beside it.
  if (acl_.aclrtDestroyStream(stream) != ACL_SUCCESS) context_.captured->StopCapturing();
  return status;
}

absl::Status ProgramRun::CaptureOn(aclrtStream stream) {
  // In this mode no other thread's calls are refused meanwhile.
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl_, "aclmdlRICaptureBegin",
                    acl_.aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED)));
  absl::Status status = LaunchAll(stream);
  aclmdlRI graph = nullptr;
  int code = acl_.aclmdlRICaptureEnd(stream, &graph);
  // A call that fails may not have ended the capture. If it did, the next one says that there is
  // none.
  if (code != ACL_SUCCESS) code = acl_.aclmdlRICaptureEnd(stream, &graph);
  captured_->graph.reset(code == ACL_SUCCESS ? graph : nullptr);
  if (status.ok()) status = AclCallStatus(acl_, "aclmdlRICaptureEnd", code);
  if (!status.ok()) {
    captured_->graph.reset();
    return status;
  }
  captured_->plans.reserve(leases_.size() + copy_leases_.size());
  for (const PlanCache::Lease& lease : leases_) captured_->plans.push_back(lease.plan);
  for (const PlanCache::Lease& lease : copy_leases_) captured_->plans.push_back(lease.plan);
  std::sort(captured_->plans.begin(), captured_->plans.end());
  captured_->plans.erase(std::unique(captured_->plans.begin(), captured_->plans.end()),
                         captured_->plans.end());
  for (const std::shared_ptr<Plan>& plan : captured_->plans) {
    context_.plans.Keep(*plan, program_.host_account.get());
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::PrepareToLaunch() {
  if (captured_->is_new) {
    context_.captured->GiveUp(bound_, std::move(captured_), absl::Now());
  } else {
    context_.captured->Drop(bound_, std::move(captured_), CapturedRuns::kFailed, absl::Now());
  }
  result_.is_replayed = false;
  context_.plans.BeginRun();
  // Of a launch that failed in the capture, the plan is not used again; of a replay there are none.
  for (uint32_t i = 0; i < program_.invocations.size(); ++i) {
    OPSERVE_RETURN_IF_ERROR(Renew(bound_.invocation(i), i, i, &leases_));
  }
  for (size_t i = 0; i < program_.copies.size(); ++i) {
    const ContiguousCopy& copy = program_.copies[i];
    OPSERVE_RETURN_IF_ERROR(Renew(copy.call, copy.invocation, i, &copy_leases_));
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::Renew(const BoundInvocation& call, uint32_t index, size_t position,
                               absl::InlinedVector<PlanCache::Lease, 1>* leases) {
  const bool is_there = position < leases->size();
  if (is_there && !(*leases)[position].plan->is_broken()) return absl::OkStatus();
  auto lease = context_.plans.Acquire(call, program_.host_account.get());
  if (!lease.ok()) return InInvocation(index, lease.status());
  if (lease->plan->workspace_bytes() > workspace_bytes_[index]) {
    return MakeError(Reason::kDeviceMemory,
                     "stage one asks for more workspace than before; repeat the call");
  }
  if (is_there) {
    (*leases)[position] = *std::move(lease);
  } else {
    leases->push_back(*std::move(lease));
  }
  return absl::OkStatus();
}

// Not on the stream: a caller that cancels now would have the copies aborted half-way.
absl::Status ProgramRun::StoreKept() {
  for (size_t i = 0; i < program_.kept.size(); ++i) {
    const KeptOutput& kept = program_.kept[i];
    if (!IsStaged(i)) continue;
    const std::shared_ptr<ResidentContent>& content =
        kept.replaced ? bound_.residents[*kept.replaced].tensor->content : bound_.kept[i]->content;
    if (const size_t bytes = program_.KeptBytes(kept); bytes > 0) {
      is_storing_ = true;
      OPSERVE_RETURN_IF_ERROR(
          AclCallStatus(acl_, "aclrtMemcpy",
                        acl_.aclrtMemcpy(content->memory.data(), bytes, OutputAddress(kept.source),
                                         bytes, ACL_MEMCPY_DEVICE_TO_DEVICE)));
    }
  }
  for (size_t i = 0; i < program_.kept.size(); ++i) {
    // A replaced tensor keeps its memory, which has the new elements by now.
    const std::optional<uint32_t> replaced = program_.kept[i].replaced;
    if (replaced && IsStaged(i))
      bound_.kept[i]->content = bound_.residents[*replaced].tensor->content;
  }
  return absl::OkStatus();
}

void ProgramRun::GiveCapturedRunBack(bool is_idle) {
  CapturedRuns& captured = *context_.captured;
  if (captured_ == nullptr) {
    if (status_.ok() && captured.MayServeLater(bound_)) captured.NoteLaunched(bound_);
    return;
  }
  Device& device = context_.lane.device();
  if (!is_launched_ && is_idle) return ReturnCapturedRun();
  const DeviceState state = device.state();
  if (status_.ok() && is_idle && state == DeviceState::kReady) {
    device.memory().LeaveStream(memory_);
    captured_->memory = std::move(memory_);
    captured.Put(bound_, std::move(captured_), absl::Now());
    return;
  }
  memory_ = DeviceBuffer();
  // What a stream still runs ends with the device's reset: the graph, and what its kernels use.
  if (!is_idle) {
    captured_->graph.release();
    device.KeepUntilReset(
        std::make_shared<std::vector<std::shared_ptr<Plan>>>(std::move(captured_->plans)));
  }
  // After a run that went well: the device drains, or a fault took it out.
  const CapturedRuns::End left =
      state == DeviceState::kDraining ? CapturedRuns::kDrained : CapturedRuns::kClosed;
  captured.Drop(bound_, std::move(captured_),
                status_.ok()                 ? left
                : absl::IsCancelled(status_) ? CapturedRuns::kCancelled
                                             : CapturedRuns::kFailed,
                absl::Now());
}

void ProgramRun::ReturnCapturedRun() {
  // The memory was taken for this run alone.
  if (captured_->is_new) {
    memory_ = DeviceBuffer();
  } else {
    context_.lane.device().memory().LeaveStream(memory_);
    captured_->memory = std::move(memory_);
  }
  context_.captured->Return(bound_, std::move(captured_));
}

}  // namespace opserve::server
