// The interface of the host CANN's runtime for its operator libraries (nnopbase, opapi), beyond the
// ACL ABI: putting work on a stream, error texts, and injected faults. Exported by libascendcl.so;
// internal to the host CANN and not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "acl/acl.h"
#include "kernels/cpu/kernel.h"
#include "ops/host_cann/opserve/host_cann.h"
#include "ops/host_cann/runtime/memory_range.h"

namespace opserve::host_cann {

// Every exported function of the ABI begins with this. It counts the call and returns the code that
// an injected fault wants this call to fail with, or 0. `function` is the exported name, a literal.
__attribute__((visibility("default"))) int32_t EnterCall(const char* function);

// Adds "CODE: text" to the messages that aclGetRecentErrMsg returns. `code` is a documented code
// such as "EZ1001" (operators) or "EE1001" (runtime). Texts carry no addresses.
__attribute__((visibility("default"))) void SetErrorMessage(std::string_view code,
                                                            std::string_view text);

// Counts live objects that the runtime does not know: OPSERVE_HOST_TENSORS and
// OPSERVE_HOST_EXECUTORS.
__attribute__((visibility("default"))) void AdjustLiveCount(opserveHostCounter counter,
                                                            int64_t delta);

// Work for a stream that stands for an operator's kernel.
struct KernelLaunch {
  const char* name = "";            // operator as aclnn names it ("aclnnKlDivBackward"); a literal
  std::vector<MemoryRange> ranges;  // checked when the kernel starts to run
  // Runs on a thread of the stream's choice; `cores` are the device's, until the stream is aborted.
  std::function<void(kernels::TaskRunner& cores)> run;
  void* output = nullptr;  // the first of its outputs
  size_t output_bytes = 0;
  // In elements, as the operator's description counts it: a product or a window of few results may
  // have much. An idle stream runs the kernel at once, on the thread that waits for it and cannot
  // stop it, if this and the bytes of `ranges` are little. The default, for anything else: never.
  uint64_t work = UINT64_MAX;
};

// Queues a kernel on `stream` (null: the current context's default stream) and returns, after the
// time that OPSERVE_HOST_LAUNCH_US says a launch takes. A captured stream records it instead.
// The stream must be of the calling thread's current context. In checked mode each range must lie
// inside one live allocation of the stream's device (or memory registered with it) when the kernel
// starts; otherwise nothing is computed and the stream reports a vector-core exception at the next
// synchronise.
//   107002 no context on this thread    107003 stream of another context
//   207005 too many tasks captured      507903 the capture was invalidated
//   507010 (or another device code) the device is lost
__attribute__((visibility("default"))) aclError LaunchKernel(aclrtStream stream,
                                                             KernelLaunch launch);

// Whether the calling thread has a current context.
__attribute__((visibility("default"))) bool HasCurrentContext();

}  // namespace opserve::host_cann
