// Overflow of floating-point numbers. The kernels compute infinities and NaN, whatever is asked
// for.
#include "acl/acl.h"
#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/copy_task.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

using namespace opserve::host_cann;

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  switch (mode) {
    case ACL_RT_OVERFLOW_MODE_INFNAN:
      return ACL_SUCCESS;
    case ACL_RT_OVERFLOW_MODE_SATURATION:
      return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                  "mode is ACL_RT_OVERFLOW_MODE_SATURATION, and the kernels do not saturate");
    default:
      return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                  Concat("mode is ", static_cast<int>(mode), ", must be 0 or 1"));
  }
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(mode, "mode"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  *mode = ACL_RT_OVERFLOW_MODE_INFNAN;
  return ACL_SUCCESS;
}

aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  // The size that the vendor's document demands.
  constexpr size_t kStatusBytes = 64;
  RETURN_IF_FAILED(RequireNotNull(outputAddr, "outputAddr"));
  if (outputSize != kStatusBytes) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("outputSize is ", outputSize, ", must be ", kStatusBytes));
  }
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  RETURN_IF_FAILED(CheckDeviceMemory(target->device(), outputAddr, outputSize, "outputAddr"));
  // No overflow: the kernels record none.
  return target->Enqueue(MakeFillTask(outputAddr, /*word=*/0, outputSize));
}

aclError aclrtResetOverflowStatus(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  return UsableStream(stream, &target);
}
