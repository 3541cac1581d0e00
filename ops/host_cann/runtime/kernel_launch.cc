// Kernels as work on a stream (launch.h).
#include <utility>

#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/faults.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/launch_charge.h"
#include "ops/host_cann/runtime/options.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The device's cores, for as long as the stream is not interrupted.
class StreamCores final : public kernels::TaskRunner {
 public:
  explicit StreamCores(const Stream& stream) : stream_(stream) {}

  void Run(int64_t num_tasks, void (*task)(void* context, int64_t index), void* context) override {
    stream_.device().cores().RunFor(*this, num_tasks, task, context);
  }
  bool MustStop() const override { return stream_.IsInterrupted(); }

 private:
  const Stream& stream_;
};

class KernelTask final : public Task {
 public:
  KernelTask(KernelLaunch launch, uint64_t limit_us)
      : launch_(std::move(launch)), limit_us_(limit_us) {}

  // A fault is taken when the call is made, so that faults count launches in the order of the
  // calls, whichever thread runs them.
  void OnAccepted(Stream& stream, bool is_captured) override {
    is_captured_ = is_captured;
    if (is_captured) return;  // each replay counts for itself
    fault_ = TakeFault(stream);
    ++stream.device().launches;
  }
  TaskResult Run(Stream& stream) override {
    Device& device = stream.device();
    ++device.running_kernels;
    TaskResult result = RunOn(stream, is_captured_ ? TakeFault(stream) : fault_);
    --device.running_kernels;
    return result;
  }
  const char* name() const override { return launch_.name; }
  std::vector<MemoryRange> memory() const override { return launch_.ranges; }
  bool is_kernel() const override { return true; }
  uint64_t work() const override {
    // Of one that is captured, a fault is found when it runs.
    // Injected faults make the work a wrong measure of time.
    const bool may_linger =
        fault_.hang || fault_.slow_us > 0 || (is_captured_ && Faults::Get().AnyOfKernels());
    return may_linger ? UINT64_MAX : launch_.work;
  }
  bool is_prompt() const override {
    // Broadcasting lets few bytes stand for any number of elements.
    if (work() > kPromptElements) return false;
    size_t bytes = 0;
    for (const MemoryRange& range : launch_.ranges) bytes += range.bytes;
    return bytes <= kPromptBytes;
  }

 private:
  KernelFault TakeFault(const Stream& stream) const {
    return Faults::Get().TakeKernelFault(launch_.name, stream.device().id());
  }

  TaskResult RunOn(Stream& stream, const KernelFault& fault) {
    if (fault.code != ACL_SUCCESS) {
      // The whole device goes, and its first forced reset brings it back.
      if (fault.sticky) stream.device().Lose(fault.code, /*resets=*/1);
      return TaskResult::Failure(fault.code, Concat("injected fault: kernel ", launch_.name));
    }
    // Before the memory is held: a program may free it while the kernel hangs, and the kernel then
    // fails as it would on a device.
    if (fault.hang || fault.slow_us > 0) {
      TaskResult result = Linger(stream, fault);
      if (result.code != ACL_SUCCESS) return result;
    }
    // From here to the end of the kernel its memory cannot go back to the system.
    std::vector<BlockPtr> held;
    TaskResult result = Hold(stream.device(), &held);
    if (result.code != ACL_SUCCESS) return result;
    StreamCores cores(stream);
    launch_.run(cores);
    // Skipped parts must not count as computed, even if the interruption came with the end.
    if (cores.MustStop()) return TaskResult::Cancelled();
    if (fault.wrong) InvertOutput();
    return result;
  }

  void InvertOutput() const {
    auto* bytes = static_cast<unsigned char*>(launch_.output);
    for (size_t i = 0; i < launch_.output_bytes; ++i) bytes[i] = ~bytes[i];
  }

  // Hangs or takes its time, but no longer than a kernel may run.
  TaskResult Linger(Stream& stream, const KernelFault& fault) const {
    Deadline deadline;
    // At least the limit: the kernel would be stopped there, so it is the timeout that the stream
    // reports.
    const bool ends_by_itself = !fault.hang && fault.slow_us < limit_us_;
    const uint64_t time_us = ends_by_itself ? fault.slow_us : limit_us_;
    if (time_us != kNoLimit) deadline = Clock::now() + std::chrono::microseconds(time_us);
    const auto waited = stream.WaitInTask(deadline, [](bool releasing) { return releasing; });
    if (waited == Stream::Waited::kCancelled) return TaskResult::Cancelled();
    // Also after a forced reset's release: the kernel had its time, or does not need it.
    if (ends_by_itself) return {};
    // A forced reset ends a hang without a code of its own.
    if (waited == Stream::Waited::kReady) return TaskResult::Cancelled();
    return TaskResult::Failure(
        ACL_ERROR_RT_VECTOR_CORE_TIMEOUT,
        Concat("kernel ", launch_.name, " ran longer than ", limit_us_, " microseconds"));
  }

  // Keeps the memory it works on from going back to the system.
  TaskResult Hold(const Device& device, std::vector<BlockPtr>* held) const {
    if (!Runtime::Get().settings().checked) return {};
    held->reserve(launch_.ranges.size());
    for (const MemoryRange& range : launch_.ranges) {
      if (range.bytes == 0) continue;
      // Most programs keep a kernel's tensors in one allocation, which is found already.
      if (!held->empty() && held->back()->Contains(range.address, range.bytes)) continue;
      held->push_back(FindKernelMemory(device, range.address, range.bytes));
      if (held->back() != nullptr) continue;
      return TaskResult::Failure(
          ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
          Concat("kernel ", launch_.name, ": ", range.name, ", ", range.bytes,
                 " bytes, does not lie in one live allocation of device ", device.id()));
    }
    return {};
  }

  const KernelLaunch launch_;
  const uint64_t limit_us_;
  KernelFault fault_;  // unless captured
  bool is_captured_ = false;
};

}  // namespace

aclError LaunchKernel(aclrtStream stream, KernelLaunch launch) {
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  // On the calling thread, before the stream takes the kernel: that is where a device's driver
  // would spend the time.
  ChargeLaunch();
  // The limit at the time of the launch holds for it, even if another is set before it runs.
  return target->Enqueue(std::make_unique<KernelTask>(std::move(launch), ExecutionLimitUs()));
}

}  // namespace opserve::host_cann
