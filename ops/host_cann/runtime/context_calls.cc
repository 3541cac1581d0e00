// The ABI's context functions, and setting and resetting devices.
#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/state_callbacks.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

aclError FindContext(aclrtContext handle, std::shared_ptr<Context>* context) {
  RETURN_IF_FAILED(RequireNotNull(handle, "context"));
  std::shared_ptr<Context> found = Runtime::Get().contexts().Find(handle);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, "context is not a live context");
  }
  *context = std::move(found);
  return ACL_SUCCESS;
}

// Waits for the current context only. The vendor's documents disagree on the scope; programs that
// rely on the smaller one run with both.
aclError SynchronizeCurrent(int32_t timeout) {
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  return context->Synchronize(DeadlineAfterMs(timeout));
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtSetDevice(int32_t deviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  // Without the device's lock, and also for a set that fails.
  ReportDeviceState(deviceId, ACL_RT_DEVICE_STATE_SET_PRE);
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(device->Set(&context));
  // Replaces an explicit context of the thread, by the vendor's document.
  BindContext(std::move(context));
  ReportDeviceState(deviceId, ACL_RT_DEVICE_STATE_SET_POST);
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t deviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  return device->Reset();
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  return device->ResetForce();
}

aclError aclrtGetDevice(int32_t* deviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(deviceId, "deviceId"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(CurrentContext(&context));
  *deviceId = context->device().id();
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice() {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SynchronizeCurrent(-1);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckTimeoutMs(timeout));
  return SynchronizeCurrent(timeout);
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(context, "context"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  RETURN_IF_FAILED(device->CheckUsable());
  std::shared_ptr<Context> created = device->CreateContext();
  // The device has reported the reason.
  if (created == nullptr) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  *context = created->handle();
  BindContext(std::move(created));
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Context> found;
  RETURN_IF_FAILED(FindContext(context, &found));
  // The default context is shared by all sets, so only the device's reset ends it.
  if (found->is_default()) {
    return Fail(ACL_ERROR_RT_CONTEXT_NULL, kWrongContext,
                "context is a default context, which ends with aclrtResetDevice");
  }
  RETURN_IF_FAILED(found->device().CheckUsable());
  Runtime& runtime = Runtime::Get();
  // Two threads that destroy the same context: one of them finds it gone.
  if (!runtime.contexts().Remove(context)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, "context is not a live context");
  }
  found->device().DestroyContext(found);
  // After the streams have been closed: handles stay valid while their tasks end.
  runtime.streams().RemoveIf([&](const Stream& stream) { return stream.context() == found; });
  runtime.ForgetGraphs([&](const Graph& graph) { return graph.context() == found; });
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Context> found;
  RETURN_IF_FAILED(FindContext(context, &found));
  RETURN_IF_FAILED(found->device().CheckNotLost());
  BindContext(std::move(found));
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(context, "context"));
  std::shared_ptr<Context> current;
  RETURN_IF_FAILED(CurrentContext(&current));
  *context = current->handle();
  return ACL_SUCCESS;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(stream, "stream"));
  std::shared_ptr<Context> current;
  RETURN_IF_FAILED(CurrentContext(&current));
  *stream = current->default_stream_handle();
  return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(active, "active"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  // flags may be null: programs ask for the state alone. No flags are known.
  if (flags != nullptr) *flags = 0;
  *active = device->has_default_context() ? 1 : 0;
  return ACL_SUCCESS;
}
