// The ABI's functions for limits of cores.
#include "ops/host_cann/runtime/core_limits.h"

#include <memory>

#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/core_numbers.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Cores of a kind that a device has. 107000: no such kind.
aclError FindCores(aclrtDevResLimitType type, uint32_t* cores) {
  switch (type) {
    case ACL_RT_DEV_RES_CUBE_CORE:
      *cores = static_cast<uint32_t>(kCubeCores);
      return ACL_SUCCESS;
    case ACL_RT_DEV_RES_VECTOR_CORE:
      *cores = static_cast<uint32_t>(kVectorCores);
      return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("type is ", static_cast<int>(type), ", must be 0 or 1"));
}

aclError SetLimit(CoreLimits& limits, aclrtDevResLimitType type, uint32_t value) {
  uint32_t cores = 0;
  RETURN_IF_FAILED(FindCores(type, &cores));
  if (value == 0 || value > cores) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("value is ", value, ", must be 1 to ", cores));
  }
  limits.Set(type, value);
  return ACL_SUCCESS;
}

// The limit of a stream (which may be null), else of its device, else the cores there are.
aclError GetLimit(const Stream* stream, const Device& device, aclrtDevResLimitType type,
                  uint32_t* value) {
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  uint32_t cores = 0;
  RETURN_IF_FAILED(FindCores(type, &cores));
  const uint32_t of_device = device.core_limits.Get(type).value_or(cores);
  *value = stream == nullptr ? of_device : stream->core_limits.Get(type).value_or(of_device);
  return ACL_SUCCESS;
}

// The stream that sets the calling thread's limits.
// Weak: the choice of a thread does not keep a stream alive.
std::weak_ptr<Stream>& UsedStream() {
  thread_local std::weak_ptr<Stream> stream;
  return stream;
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  return GetLimit(/*stream=*/nullptr, *device, type, value);
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  return SetLimit(device->core_limits, type, value);
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  device->core_limits.Reset();
  return ACL_SUCCESS;
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  return GetLimit(found.get(), found->device(), type, value);
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  return SetLimit(found->core_limits, type, value);
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  found->core_limits.Reset();
  return ACL_SUCCESS;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  UsedStream() = found;
  return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  // Another stream's choice is left alone.
  if (UsedStream().lock() == found) UsedStream().reset();
  return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(CurrentContext(&context));
  // A stream that has been destroyed sets no limits: the device's hold again.
  const std::shared_ptr<Stream> used = UsedStream().lock();
  return GetLimit(used.get(), used == nullptr ? context->device() : used->device(), type, value);
}
