#include "server/execution/program_runner.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/catalog/error.h"
#include "ops/catalog/status_macros.h"
#include "server/device/acl_handles.h"
#include "server/device/acl_status.h"

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

class ProgramRun {
 public:
  ProgramRun(const Program& program, absl::Span<const codec::Payload> payloads,
             const CallState& call, StreamLane& lane)
      : program_(program),
        payloads_(payloads),
        call_(call),
        lane_(lane),
        acl_(lane.device().acl()),
        outputs_(program.invocations.size()) {
    result_.device = lane.device().id();
    result_.lane = lane.index();
  }

  // Result buffers come first, so that nothing is computed that could not be returned.
  absl::Status ReserveResults(PinnedPool& pinned) {
    for (uint32_t source : program_.results) {
      const BoundInvocation& invocation = program_.invocations[source];
      OPSERVE_ASSIGN_OR_RETURN(PinnedBuffer buffer,
                               pinned.Allocate(catalog::NumBytes(invocation.output)));
      result_.outputs.push_back(
          {source, invocation.op->descriptor->output.name, invocation.output, std::move(buffer)});
    }
    return absl::OkStatus();
  }

  absl::Status CopyPayloadsToDevice() {
    for (const codec::Payload& payload : payloads_) {
      OPSERVE_ASSIGN_OR_RETURN(DeviceBuffer buffer, Allocate(payload.size));
      char* to = static_cast<char*>(buffer.data());
      size_t room = payload.size;
      for (absl::string_view piece : payload.pieces) {
        OPSERVE_RETURN_IF_ERROR(
            AclCallStatus(acl_, "aclrtMemcpyAsync",
                          acl_.aclrtMemcpyAsync(to, room, piece.data(), piece.size(),
                                                ACL_MEMCPY_HOST_TO_DEVICE, lane_.stream())));
        to += piece.size();
        room -= piece.size();
      }
      result_.copied_to_device_bytes += payload.size;
      payload_buffers_.push_back(std::move(buffer));
    }
    return absl::OkStatus();
  }

  // Stage one, workspace and stage two of one invocation.
  absl::Status Launch(uint32_t index, StageClock& clock) {
    OPSERVE_RETURN_IF_ERROR(call_.Check());
    const BoundInvocation& invocation = program_.invocations[index];
    OPSERVE_ASSIGN_OR_RETURN(outputs_[index], Allocate(catalog::NumBytes(invocation.output)));
    absl::InlinedVector<aclTensor*, 3> inputs;
    for (const BoundInput& input : invocation.inputs) {
      OPSERVE_ASSIGN_OR_RETURN(aclTensor * tensor, DescribeInput(input));
      inputs.push_back(tensor);
    }
    OPSERVE_ASSIGN_OR_RETURN(
        aclTensor * output,
        Describe(invocation.output, ContiguousStrides(invocation.output.shape), /*offset=*/0,
                 catalog::NumElements(invocation.output.shape), outputs_[index].data()));

    uint64_t workspace_bytes = 0;
    aclOpExecutor* executor = nullptr;
    const catalog::Binding& binding = invocation.op->descriptor->binding;
    OPSERVE_RETURN_IF_ERROR(AclCallStatus(
        acl_, binding.stage_one,
        binding.call_stage_one(invocation.op->stage_one, {.inputs = inputs,
                                                          .attributes = invocation.attributes,
                                                          .output = output,
                                                          .workspace_bytes = &workspace_bytes,
                                                          .executor = &executor})));
    auto workspace = Allocate(workspace_bytes);
    if (!workspace.ok()) {
      // Only stage two, which will not come, would free the executor.
      if (acl_.aclDestroyAclOpExecutor != nullptr) acl_.aclDestroyAclOpExecutor(executor);
      return workspace.status();
    }
    clock.Book(Stage::kPrepare);
    result_.workspace_bytes += workspace_bytes;
    // Stage two takes the executor over, also when it fails.
    const int code =
        invocation.op->stage_two(workspace->data(), workspace_bytes, executor, lane_.stream());
    clock.Book(Stage::kExecute);
    OPSERVE_RETURN_IF_ERROR(AclCallStatus(acl_, binding.stage_two, code));
    ReleaseReadBy(index);
    return absl::OkStatus();
  }

  absl::Status CopyResultsToHost() {
    for (ProgramResult::Output& output : result_.outputs) {
      const size_t bytes = output.data.size();
      if (bytes == 0) continue;
      OPSERVE_RETURN_IF_ERROR(AclCallStatus(
          acl_, "aclrtMemcpy",
          acl_.aclrtMemcpy(output.data.data(), bytes, outputs_[output.invocation].data(), bytes,
                           ACL_MEMCPY_DEVICE_TO_HOST)));
      result_.copied_from_device_bytes += bytes;
    }
    return absl::OkStatus();
  }

  ProgramResult TakeResult() { return std::move(result_); }

 private:
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes) {
    return lane_.device().memory().Allocate(bytes, lane_.stream());
  }

  absl::StatusOr<aclTensor*> DescribeInput(const BoundInput& input) {
    const auto* payload = std::get_if<PayloadSource>(&input.source);
    void* data = payload != nullptr
                     ? payload_buffers_[payload->payload].data()
                     : outputs_[std::get<InvocationSource>(input.source).invocation].data();
    return Describe(input.spec, input.strides, input.offset, input.storage_elements, data);
  }

  // The descriptor lives as long as this run: an executor may read it until the stream is idle.
  absl::StatusOr<aclTensor*> Describe(const catalog::TensorSpec& spec,
                                      const catalog::Shape& strides, int64_t offset,
                                      int64_t storage_elements, void* data) {
    const bool is_plain = offset == 0 && strides == ContiguousStrides(spec.shape);
    const catalog::Shape storage =
        is_plain ? spec.shape : catalog::Shape{std::max<int64_t>(storage_elements, 1)};
    aclTensor* tensor = acl_.aclCreateTensor(
        spec.shape.data(), spec.shape.size(), catalog::ToAclDataType(spec.dtype), strides.data(),
        offset, ACL_FORMAT_ND, storage.data(), storage.size(), data);
    if (tensor == nullptr) {
      absl::Status status = AclCallStatus(acl_, "aclCreateTensor", ACL_ERROR_FAILURE);
      return status;
    }
    descriptors_.emplace_back(tensor, TensorDescriptor::deleter_type{&acl_});
    return tensor;
  }

  // Frees intermediates whose last reader has been queued, in stream order.
  void ReleaseReadBy(uint32_t index) {
    for (uint32_t i = 0; i < index; ++i) {
      const BoundInvocation& producer = program_.invocations[i];
      if (producer.last_reader == index && !producer.is_result) outputs_[i] = DeviceBuffer();
    }
  }

  const Program& program_;
  const absl::Span<const codec::Payload> payloads_;
  const CallState& call_;
  StreamLane& lane_;
  const AclLibrary& acl_;
  std::vector<DeviceBuffer> payload_buffers_;
  std::vector<DeviceBuffer> outputs_;  // by invocation
  std::vector<TensorDescriptor> descriptors_;
  ProgramResult result_;
};

}  // namespace

absl::Status CallState::Check() const {
  if (is_cancelled.load(std::memory_order_relaxed)) {
    return absl::CancelledError("the caller cancelled");
  }
  if (absl::Now() >= deadline) {
    return catalog::ErrorWithReason(absl::StatusCode::kDeadlineExceeded, "deadline_expired",
                                    "the deadline passed before the request was launched");
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<ProgramResult> RunOnStream(const Program& program,
                                          absl::Span<const codec::Payload> payloads,
                                          const CallState& call, absl::Duration execution_timeout,
                                          StreamLane& lane, PinnedPool& pinned, StageClock& clock) {
  ProgramRun run(program, payloads, call, lane);
  // An error half-way leaves work on the stream; its buffers and errors are this request's, so it
  // ends before the lane serves another.
  auto settle = absl::MakeCleanup([&] { lane.Synchronize(execution_timeout).IgnoreError(); });

  absl::Status status = run.ReserveResults(pinned);
  if (status.ok()) status = run.CopyPayloadsToDevice();
  clock.Book(Stage::kH2d);
  OPSERVE_RETURN_IF_ERROR(status);

  const auto count = static_cast<uint32_t>(program.invocations.size());
  for (uint32_t i = 0; i < count; ++i) {
    OPSERVE_RETURN_IF_ERROR(InInvocation(program, i, run.Launch(i, clock)));
  }
  std::move(settle).Cancel();
  status = lane.Synchronize(execution_timeout);
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
                                         const CallState& call, absl::Duration execution_timeout,
                                         StreamLane& lane, PinnedPool& pinned, StageClock& clock) {
  OPSERVE_RETURN_IF_ERROR(call.Check());
  auto result = RunOnStream(program, payloads, call, execution_timeout, lane, pinned, clock);
  // A stream that never became idle keeps its blocks to itself.
  Device& device = lane.device();
  if (device.state() != Device::State::kFailed) device.memory().StreamIsIdle(lane.stream());
  return result;
}

}  // namespace opserve::server
