#include "server/run/program_runner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/program/contiguous_copies.h"
#include "server/run/resident_tensors.h"

namespace opserve::server {
ProgramRun::ProgramRun(const ProgramCall& bound, absl::Span<const codec::Payload> payloads,
                       const CallState& call, uint32_t tenant, LaneContext& context,
                       StageClock& clock)
    : bound_(bound),
      program_(*bound.program),
      payloads_(payloads),
      call_(call),
      tenant_(tenant),
      context_(context),
      clock_(clock),
      acl_(context.lane.device().acl()),
      stream_(context.lane.stream()) {
  result_.device = context.lane.device().id();
  result_.lane = context.lane.index();
  result_.contiguous_copies = static_cast<uint32_t>(program_.copies.size());
  windows_.reserve(bound.windows.size());
  for (size_t i = 0; i < bound.windows.size(); ++i) {
    windows_.emplace_back(bound.windows[i], program_.windows[i].writer.has_value(), context);
  }
}

ProgramRun::~ProgramRun() {
  // Queue was false, so that nothing has happened.
  if (captured_ != nullptr) ReturnCapturedRun();
}

absl::Status ProgramRun::InInvocation(uint32_t index, const absl::Status& status) const {
  if (status.ok()) return status;
  const absl::string_view name = program_.invocations[index].op->descriptor->name;
  return AtPlace({.operator_name = name, .invocation = index},
                 WithMessage(absl::StrCat(name, ": ", status.message()), status));
}

bool ProgramRun::Queue() {
  status_ = call_.Check(context_.start);
  if (status_.ok()) status_ = CheckResidents();
  if (!status_.ok()) return true;
  TakeCapturedRun();
  // A captured run has its plans.
  if (captured_ == nullptr) status_ = FindPlans();
  // A call that was cancelled meanwhile gets no further than this stage; likewise below. Without a
  // stage one there was hardly a meanwhile.
  if (status_.ok() && result_.plan_misses > 0) status_ = call_.Check();
  clock_.Book(Stage::kPrepare);
  if (status_.ok()) {
    // A request that waits for memory of other requests is not held up by the device.
    context_.BeginWait();
    const absl::StatusOr<bool> has_memory = TakeMemory();
    context_.BeginStep();
    clock_.Book(Stage::kQueue);
    if (has_memory.ok() && !*has_memory) return false;
    status_ = has_memory.status();
  }
  // Not before: a run that is taken up again by another thread looks for its plans again.
  CountPlans();
  if (!status_.ok()) return true;
  is_on_stream_ = true;
  status_ = CopyInputs();
  if (status_.ok()) status_ = call_.Check();
  clock_.Book(Stage::kH2d);
  if (!status_.ok()) return true;
  context_.BeginStep();
  status_ = Start();
  return true;
}

// An error of Queue is in status_: the stream is awaited and concluded all the same, so that the
// lane is clean for the next run.
absl::StatusOr<ProgramResult> ProgramRun::Finish() {
  if (is_on_stream_) status_ = AwaitStream();
  if (is_launched_) {
    context_.BeginStep();
    clock_.Book(Stage::kExecute);
  }
  if (status_.ok()) {
    status_ = CopyResults();
    if (status_.ok() && stages_kept_) status_ = StoreKept();
    clock_.Book(Stage::kD2h);
  }
  // That of a captured run stays with it.
  if (!status_.ok() && captured_ == nullptr) memory_ = DeviceBuffer();
  if (!status_.ok()) GiveUpKept();
  Conclude();
  if (!status_.ok()) return status_;
  return std::move(result_);
}

absl::Status ProgramRun::CheckResidents() const {
  for (const BoundResident& resident : bound_.residents) {
    const ResidentTensor& tensor = *resident.tensor;
    if (tensor.device_generation != context_.lane.device().generation()) {
      return MakeError(
          Reason::kTensorLost,
          "the device was reset since the resident tensor was uploaded; upload it again");
    }
    OPSERVE_RETURN_IF_ERROR(CheckNotBroken(tensor));
    if (resident.version.value_or(tensor.version) != tensor.version) {
      return MakeError(Reason::kTensorVersion,
                       absl::StrCat("the resident tensor has version ", tensor.version, ", not ",
                                    *resident.version));
    }
  }
  for (const std::shared_ptr<ResidentTensor>& payload : bound_.apart) {
    if (payload->device_generation != context_.lane.device().generation()) {
      return MakeError(Reason::kDeviceUnavailable,
                       "the device was reset since the payloads of the request came");
    }
  }
  // These were booked before the reset, and belong to a device that lost its contents.
  for (const std::shared_ptr<ResidentTensor>& kept : bound_.kept) {
    if (kept->device_generation != context_.lane.device().generation()) {
      return MakeError(Reason::kTensorLost, "the device was reset since the request came");
    }
  }
  return absl::OkStatus();
}

// Stage one of all invocations comes before any memory: it alone tells the workspaces.
absl::Status ProgramRun::FindPlans() {
  context_.plans.BeginRun();
  for (uint32_t i = 0; i < program_.invocations.size(); ++i) {
    auto lease = context_.plans.Acquire(bound_.invocation(i), program_.host_account.get());
    if (!lease.ok()) return InInvocation(i, lease.status());
    ++(lease->is_hit ? result_.plan_hits : result_.plan_misses);
    const uint64_t bytes = lease->plan->workspace_bytes();
    leases_.push_back(*std::move(lease));
    workspace_bytes_.push_back(bytes);
  }
  if (!program_.copies.empty()) OPSERVE_RETURN_IF_ERROR(FindCopyPlans());
  for (uint32_t i = 0; i < workspace_bytes_.size(); ++i) {
    result_.workspace_bytes += workspace_bytes_[i];
    OPSERVE_RETURN_IF_ERROR(InInvocation(i, CheckWorkspace(workspace_bytes_[i])));
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::FindCopyPlans() {
  for (const ContiguousCopy& copy : program_.copies) {
    auto lease = context_.plans.Acquire(copy.call, program_.host_account.get());
    if (!lease.ok()) return InInvocation(copy.invocation, lease.status());
    // One place serves the copies and the invocation, which run one after the other.
    uint64_t& bytes = workspace_bytes_[copy.invocation];
    bytes = std::max(bytes, lease->plan->workspace_bytes());
    copy_leases_.push_back(*std::move(lease));
  }
  return absl::OkStatus();
}

void ProgramRun::CountPlans() {
  for (const PlanCache::Lease& lease : leases_) context_.plans.Count(lease);
  for (const PlanCache::Lease& lease : copy_leases_) context_.plans.Count(lease);
  if (!leases_.empty() || captured_ == nullptr) return;
  for (const BoundInvocation& invocation : program_.invocations) {
    context_.plans.CountReplayed(invocation);
  }
  for (const ContiguousCopy& copy : program_.copies) context_.plans.CountReplayed(copy.call);
}

absl::Status ProgramRun::CheckWorkspace(uint64_t bytes) const {
  const WorkspaceLimits& limits = context_.workspace_limits;
  if (bytes <= limits.max_bytes && IsInProportion(bytes, program_.input_bytes, limits.max_ratio)) {
    return absl::OkStatus();
  }
  return NeverFits(Reason::kAmplification,
                   absl::StrCat("needs ", bytes, " bytes of workspace for ", program_.input_bytes,
                                " bytes of inputs; at most ", limits.max_bytes, " bytes and ",
                                limits.max_ratio, " times the inputs are allowed"));
}

absl::StatusOr<bool> ProgramRun::TakeMemory() {
  // Windows first, since the plan depends on those that have to be copied.
  for (WindowTransfer& window : windows_) {
    if (context_.may_wait) {
      OPSERVE_RETURN_IF_ERROR(window.Prepare(call_.deadline()));
    } else if (!window.TryPrepare()) {
      return false;
    }
  }
  if (captured_ == nullptr) PlanPieces();
  const bool is_capture_due = captured_ == nullptr && IsCaptureDue();
  // A capture takes longer than the launches.
  if (!context_.may_wait && is_capture_due) return false;
  if (is_capture_due) BeginCapture();
  // Copies from pageable memory wait for the device.
  if (!context_.may_wait && !FitsStaging(PayloadExtent())) return false;
  for (const BoundResult& result : program_.results) {
    const OutputRef& source = result.source;
    const BoundOutput& bound = program_.output(source);
    ProgramResult::Output& output =
        result_.outputs.emplace_back(ProgramResult::Output{source, PinnedBuffer()});
    if (result.is_kept) {
      output.kept = bound.kept;
      continue;
    }
    if (bound.window) {
      output.range = bound_.windows[*bound.window].range;
      continue;
    }
    if (context_.holds_results) continue;
    OPSERVE_ASSIGN_OR_RETURN(const bool is_there, TakePinned(NumBytes(bound.spec), &output.data));
    if (!is_there) return false;
  }
  // A captured run has its memory, to which its graph refers by address.
  if (memory_.data() == nullptr) {
    OPSERVE_ASSIGN_OR_RETURN(const bool is_there, TakeDeviceMemory());
    if (!is_there) return false;
  }
  result_.device_memory_bytes = memory_.size();
  OPSERVE_RETURN_IF_ERROR(TakeKeptMemory());
  return true;
}

absl::Status ProgramRun::TakeKeptMemory() {
  for (size_t i = 0; i < program_.kept.size(); ++i) {
    const KeptOutput& kept = program_.kept[i];
    ResidentTensor& tensor = *bound_.kept[i];
    if (kept.is_in_place) {
      const std::shared_ptr<ResidentContent>& old =
          bound_.residents[*kept.replaced].tensor->content;
      // No other request can come to keep it: this one has the tensor alone.
      if (old.use_count() == 1) {
        tensor.content = old;
        continue;
      }
    }
    // The tensor's own memory gets it when the run has ended well.
    if (kept.replaced && IsStaged(i)) continue;
    // In the order of the stream, which the program's work may outlast: see Conclude.
    OPSERVE_ASSIGN_OR_RETURN(tensor.content->memory, context_.lane.device().memory().Allocate(
                                                         {.bytes = program_.KeptBytes(kept),
                                                          .stream = stream_,
                                                          .tenant = tenant_,
                                                          .wait_until = call_.deadline(),
                                                          .is_cancelled = &call_.is_cancelled()}));
    result_.device_memory_bytes += program_.KeptBytes(kept);
  }
  return absl::OkStatus();
}

bool ProgramRun::HasOldMemory(size_t kept) const {
  const std::optional<uint32_t> replaced = program_.kept[kept].replaced;
  return replaced && bound_.kept[kept]->content == bound_.residents[*replaced].tensor->content;
}

// TakeKeptMemory decides this for each run; equal contents show that it did.
bool ProgramRun::IsWorkedIn(size_t kept) const {
  return program_.kept[kept].is_in_place && HasOldMemory(kept);
}

absl::StatusOr<bool> ProgramRun::TakePinned(uint64_t bytes, PinnedBuffer* to) {
  if (!context_.may_wait) {
    auto buffer = context_.pinned.TryAllocate(bytes, context_.pinned_allowance);
    if (buffer) *to = *std::move(buffer);
    return buffer.has_value();
  }
  OPSERVE_ASSIGN_OR_RETURN(*to, context_.pinned.Allocate(bytes, context_.pinned_allowance));
  return true;
}

absl::StatusOr<bool> ProgramRun::TakeDeviceMemory() {
  DeviceMemoryPool& pool = context_.lane.device().memory();
  DeviceMemoryPool::Allocation allocation = {.bytes = plan().total_bytes,
                                             .stream = stream_,
                                             .tenant = tenant_,
                                             .is_cancelled = &call_.is_cancelled()};
  if (!context_.may_wait) {
    auto memory = pool.TryAllocate(allocation, &result_.pool_outcome);
    if (memory) memory_ = *std::move(memory);
    return memory.has_value();
  }
  allocation.wait_until = call_.deadline();
  OPSERVE_ASSIGN_OR_RETURN(memory_, pool.Allocate(allocation, &result_.pool_outcome));
  return true;
}

void ProgramRun::PlanPieces() {
  std::vector<bool> copied_windows;
  for (const WindowTransfer& window : windows_) copied_windows.push_back(window.is_copied());
  const bool copies_any =
      std::find(copied_windows.begin(), copied_windows.end(), true) != copied_windows.end();
  // No workspace and no copied window: the program's plan holds as it is.
  if (result_.workspace_bytes == 0 && !copies_any) return;
  // The remembered plan is for calls that copy no window.
  if (program_.workspace_plan != nullptr && !copies_any) {
    own_plan_ = program_.workspace_plan->For(program_, workspace_bytes_);
    return;
  }
  own_plan_ = std::make_shared<const MemoryPlan>(
      PlanMemory(program_, program_.payload_sizes, workspace_bytes_, copied_windows));
}

absl::Status ProgramRun::CopyInputs() {
  const Extent extent = PayloadExtent();
  OPSERVE_RETURN_IF_ERROR(FitsStaging(extent) ? CopyPayloadsFromStaging(extent)
                                              : CopyPayloadsDirectly());
  OPSERVE_RETURN_IF_ERROR(CopyPayloadsApart());
  OPSERVE_RETURN_IF_ERROR(CopyLiterals());
  for (size_t i = 0; i < windows_.size(); ++i) {
    OPSERVE_ASSIGN_OR_RETURN(const uint64_t bytes, windows_[i].CopyToDevice(MemoryOfWindow(i)));
    result_.copied_to_device_bytes += bytes;
    result_.shared_to_device_bytes += bytes;
  }
  return absl::OkStatus();
}

ProgramRun::Extent ProgramRun::PayloadExtent() const {
  Extent extent{.begin = UINT64_MAX, .end = 0};
  for (size_t i = 0; i < payloads_.size(); ++i) {
    if (payloads_[i].size == 0) continue;
    extent.begin = std::min(extent.begin, plan().payloads[i]);
    extent.end = std::max(extent.end, plan().payloads[i] + payloads_[i].size);
  }
  return extent.end == 0 ? Extent() : extent;
}

// All payloads by one copy from page-locked memory. The gaps between them are copied as well and
// must not carry bytes that an earlier request left in the staging buffer.
absl::Status ProgramRun::CopyPayloadsFromStaging(const Extent& extent) {
  if (extent.size() == 0) return absl::OkStatus();
  absl::InlinedVector<size_t, 4> order;  // as they lie in device memory
  for (size_t i = 0; i < payloads_.size(); ++i) {
    if (payloads_[i].size > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [this](size_t a, size_t b) { return plan().payloads[a] < plan().payloads[b]; });
  char* const staging = context_.staging.data();
  uint64_t previous_end = extent.begin;
  for (const size_t i : order) {
    const uint64_t begin = plan().payloads[i];
    std::memset(staging + (previous_end - extent.begin), 0, begin - previous_end);
    char* to = staging + (begin - extent.begin);
    for (absl::string_view piece : payloads_[i].pieces) {
      std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    }
    previous_end = begin + payloads_[i].size;
    result_.copied_to_device_bytes += payloads_[i].size;
  }
  return CopyToDevice({staging, extent.size()}, At(extent.begin));
}

// From pageable memory: each call returns when its bytes are copied, so only a thread that may wait
// gets here.
absl::Status ProgramRun::CopyPayloadsDirectly() {
  for (size_t i = 0; i < payloads_.size(); ++i) {
    char* to = static_cast<char*>(At(plan().payloads[i]));
    for (absl::string_view piece : payloads_[i].pieces) {
      OPSERVE_RETURN_IF_ERROR(CopyToDevice(piece, to));
      to += piece.size();
    }
    result_.copied_to_device_bytes += payloads_[i].size;
  }
  return absl::OkStatus();
}

// They lie in pageable memory, which is small: the call copies before it returns.
absl::Status ProgramRun::CopyLiterals() {
  if (program_.literals.empty()) return absl::OkStatus();
  result_.copied_to_device_bytes += program_.literals.size();
  return CopyToDevice(program_.literals, At(plan().literals));
}

absl::Status ProgramRun::CopyToDevice(absl::string_view bytes, void* to) {
  return AclCallStatus(acl_, "aclrtMemcpyAsync",
                       acl_.aclrtMemcpyAsync(to, bytes.size(), bytes.data(), bytes.size(),
                                             ACL_MEMCPY_HOST_TO_DEVICE, stream_));
}

absl::Status ProgramRun::LaunchAll(aclrtStream stream) {
  auto slice_end = bound_.slice_ends.begin();
  for (uint32_t i = 0; i < program_.invocations.size(); ++i) {
    // Before the first one Queue checks.
    if (i > 0) OPSERVE_RETURN_IF_ERROR(InInvocation(i, call_.Check()));
    // A long program ends a slice where a cancelled call or a hung kernel can be noticed.
    OPSERVE_RETURN_IF_ERROR(InInvocation(i, Launch(i, stream)));
    if (slice_end == bound_.slice_ends.end() || *slice_end != i + 1) continue;
    OPSERVE_RETURN_IF_ERROR(AwaitSlice());
    ++slice_end;
  }
  return absl::OkStatus();
}

absl::Status ProgramRun::AwaitSlice() {
  OPSERVE_RETURN_IF_ERROR(context_.lane.Synchronize(context_.execution_timeout, call_.deadline()));
  slice_waits_.push_back(absl::Now());
  if (context_.on_progress) context_.on_progress();
  context_.BeginStep();
  return call_.Check();
}

absl::Status ProgramRun::LaunchCopies(uint32_t index, aclrtStream stream) {
  const absl::Span<const ContiguousCopy> copies = CopiesBefore(program_, index);
  for (const ContiguousCopy& copy : copies) {
    const auto position = static_cast<size_t>(&copy - program_.copies.data());
    void* const to = At(plan().copies[position]);
    OPSERVE_RETURN_IF_ERROR(copy_leases_[position].Launch({to, AddressOf(copy.view())}, {to},
                                                          At(plan().workspaces[index]), stream));
  }
  return absl::OkStatus();
}

// Stage two of one invocation.
absl::Status ProgramRun::Launch(uint32_t index, aclrtStream stream) {
  OPSERVE_RETURN_IF_ERROR(LaunchCopies(index, stream));
  const BoundInvocation& invocation = program_.invocations[index];
  absl::InlinedVector<void*, 1> outputs;
  for (uint32_t i = 0; i < invocation.outputs.size(); ++i) {
    outputs.push_back(OutputAddress({index, i}));
  }
  // No request may read the data that an earlier one left there.
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const auto bytes = static_cast<size_t>(NumBytes(invocation.outputs[i].spec));
    if (!invocation.outputs[i].is_unwritten || bytes == 0) continue;
    OPSERVE_RETURN_IF_ERROR(AclCallStatus(
        acl_, "aclrtMemsetAsync", acl_.aclrtMemsetAsync(outputs[i], bytes, 0, bytes, stream)));
  }
  absl::InlinedVector<void*, 3> inputs;
  for (const BoundInput& input : invocation.inputs) {
    inputs.push_back(AddressOf(input));
    if (!input.output) continue;
    // The function changes its input in place: that is the output, which begins as a copy, or is a
    // resident tensor's own memory.
    void* const copy = outputs[*input.output];
    const int64_t bytes = NumBytes(input.spec);
    const char* from =
        static_cast<const char*>(inputs.back()) + input.offset * DtypeBytes(input.spec.dtype);
    if (bytes > 0 && from != copy) {
      OPSERVE_RETURN_IF_ERROR(AclCallStatus(
          acl_, "aclrtMemcpyAsync",
          acl_.aclrtMemcpyAsync(copy, static_cast<size_t>(bytes), from, static_cast<size_t>(bytes),
                                ACL_MEMCPY_DEVICE_TO_DEVICE, stream)));
    }
    inputs.back() = copy;
  }
  return leases_[index].Launch(inputs, outputs, At(plan().workspaces[index]), stream);
}

// A window for a result has the place of the output that goes there.
void* ProgramRun::MemoryOfWindow(size_t window) const {
  const std::optional<OutputRef>& writer = program_.windows[window].writer;
  return At(writer ? plan().outputs[program_.position(*writer)] : plan().windows[window]);
}

void* ProgramRun::AddressOf(const BoundInput& input) const {
  if (const auto* payload = std::get_if<PayloadSource>(&input.source)) {
    if (!bound_.apart.empty() && captured_ == nullptr) {
      return bound_.apart[payload->payload]->content->memory.data();
    }
    return At(plan().payloads[payload->payload]);
  }
  if (const auto* resident = std::get_if<ResidentSource>(&input.source)) {
    return bound_.residents[resident->resident].tensor->content->memory.data();
  }
  if (const auto* literal = std::get_if<LiteralSource>(&input.source)) {
    return At(plan().literals + literal->offset);
  }
  if (const auto* shared = std::get_if<SharedSource>(&input.source)) {
    return windows_[shared->window].Address();
  }
  if (const auto* copy = std::get_if<CopySource>(&input.source)) {
    return At(plan().copies[copy->copy]);
  }
  return OutputAddress(std::get<InvocationSource>(input.source));
}

void* ProgramRun::OutputAddress(const OutputRef& output) const {
  const BoundOutput& bound = program_.output(output);
  if (bound.kept && !IsStaged(*bound.kept)) return bound_.kept[*bound.kept]->content->memory.data();
  const std::optional<uint32_t> window = bound.window;
  return window ? windows_[*window].Address() : At(plan().outputs[program_.position(output)]);
}

absl::Status ProgramRun::AwaitStream() {
  StreamLane& lane = context_.lane;
  if (!status_.ok()) {
    // An error half-way leaves work on the stream; its buffers and errors are this request's, so it
    // ends before the lane serves another.
    lane.Synchronize(context_.execution_timeout).IgnoreError();
    return status_;
  }
  const absl::Status status = lane.Synchronize(context_.execution_timeout, call_.deadline());
  // The stream does not tell which of its kernels failed.
  return program_.invocations.size() == 1 ? InInvocation(0, status) : status;
}

absl::Status ProgramRun::CopyResults() {
  for (ProgramResult::Output& output : result_.outputs) {
    const size_t bytes = output.data.size();
    if (bytes == 0) continue;
    // A copy that blocks: the stream has ended, and so has all that writes the result.
    OPSERVE_RETURN_IF_ERROR(
        AclCallStatus(acl_, "aclrtMemcpy",
                      acl_.aclrtMemcpy(output.data.data(), bytes, OutputAddress(output.source),
                                       bytes, ACL_MEMCPY_DEVICE_TO_HOST)));
    result_.copied_from_device_bytes += bytes;
  }
  for (WindowTransfer& window : windows_) {
    OPSERVE_ASSIGN_OR_RETURN(const uint64_t bytes, window.Finish());
    result_.copied_from_device_bytes += bytes;
    result_.shared_from_device_bytes += bytes;
  }
  return absl::OkStatus();
}

// Before the stream is said to be idle, or to have been aborted.
void ProgramRun::GiveUpKept() {
  for (size_t i = 0; i < bound_.kept.size(); ++i) {
    const bool is_changed =
        is_launched_ &&
        (IsWorkedIn(i) || (program_.kept[i].replaced && IsStaged(i) && is_storing_));
    if (is_changed) {
      bound_.residents[*program_.kept[i].replaced].tensor->is_broken = true;
    }
    bound_.kept[i]->content = std::make_shared<ResidentContent>();
  }
}

void ProgramRun::Conclude() {
  Device& device = context_.lane.device();
  // aclnn says of a lost device no more than that a runtime call failed: the stream knows.
  if (absl::IsInternal(status_)) {
    if (absl::Status lost = context_.lane.CheckDevice(); !lost.ok()) status_ = lost;
  }
  if (IsDeviceLoss(status_)) device.QuarantineLost(status_);
  // A stream that had to be given up keeps its blocks to itself.
  const bool is_idle =
      context_.lane.stream() == stream_ && device.state() != DeviceState::kQuarantined;
  if (context_.holds_results && status_.ok() && !is_idle) {
    status_ = MakeError(Reason::kDeviceUnavailable,
                        "the device ceased to serve before the results had left it");
  }
  if (context_.captured != nullptr) GiveCapturedRunBack(is_idle);
  // Resident tensors and payloads that lie apart are in no stream's order, and free as soon as
  // nobody has them. Work that could not be stopped may yet read and write them.
  for (const BoundResident& resident : bound_.residents) {
    if (!is_idle) device.memory().JoinStream(resident.tensor->content->memory, stream_);
  }
  for (const std::shared_ptr<ResidentTensor>& payload : bound_.apart) {
    if (!is_idle) device.memory().JoinStream(payload->content->memory, stream_);
  }
  // These are used without an order from here on, so they leave before the stream's blocks do.
  if (is_idle && status_.ok()) {
    for (size_t i = 0; i < bound_.kept.size(); ++i) {
      // Old memory is in no order, or in that of a stream that was given up.
      if (!HasOldMemory(i)) device.memory().LeaveStream(bound_.kept[i]->content->memory);
    }
    if (context_.holds_results) {
      device.memory().LeaveStream(memory_);
      HoldResults();
    }
    device.memory().StreamIsIdle(stream_, std::move(memory_));
  }
  memory_ = DeviceBuffer();
  if (is_idle && !status_.ok()) device.memory().StreamWasAborted(stream_);
  // Work that could not be stopped may still use the caller's memory.
  for (size_t i = 0; i < windows_.size() && !is_idle; ++i) {
    device.KeepUntilReset(windows_[i].TakeHold());
  }
}

void ProgramRun::HoldResults() {
  const Device& device = context_.lane.device();
  auto held = std::make_unique<HeldResults>();
  held->content.memory = std::move(memory_);
  held->device = device.id();
  held->device_generation = device.generation();
  for (const BoundResult& result : program_.results) {
    const BoundOutput& output = program_.output(result.source);
    if (result.is_kept || output.window) continue;
    held->results.push_back({plan().outputs[program_.position(result.source)],
                             static_cast<uint64_t>(NumBytes(output.spec))});
  }
  result_.held = std::move(held);
}

absl::StatusOr<ProgramResult> RunProgram(const ProgramCall& bound,
                                         absl::Span<const codec::Payload> payloads,
                                         const CallState& call, uint32_t tenant,
                                         LaneContext& context, StageClock& clock) {
  ProgramRun run(bound, payloads, call, tenant, context, clock);
  run.Queue();
  return run.Finish();
}

}  // namespace opserve::server
