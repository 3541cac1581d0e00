#include "ops/host_cann/runtime/exception_info.h"

#include <algorithm>
#include <vector>

#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/mutex.h"

namespace opserve::host_cann {
namespace {

constexpr uint32_t kUnknown = 0xFFFFFFFF;
constexpr size_t kMaxCallbacks = 1024;

struct Callbacks {
  Mutex mutex;
  std::vector<aclrtExceptionInfoCallback> registered ABSL_GUARDED_BY(mutex);
  // Of the older function, which replaces; the list is of the newer one.
  aclrtExceptionInfoCallback single ABSL_GUARDED_BY(mutex) = nullptr;
};

Callbacks& GetCallbacks() {
  static Callbacks* const callbacks = new Callbacks;
  return *callbacks;
}

uint32_t& ThreadLastTaskId() {
  thread_local uint32_t id = 0;
  return id;
}

}  // namespace

void ReportException(aclrtExceptionInfo info) {
  std::vector<aclrtExceptionInfoCallback> to_call;
  {
    Callbacks& callbacks = GetCallbacks();
    MutexLock lock(callbacks.mutex);
    // Copied: callbacks may register and unregister, and run without the lock. One that is
    // unregistered meanwhile may still be called: the vendor's call does not wait either.
    to_call = callbacks.registered;
    if (callbacks.single != nullptr) to_call.push_back(callbacks.single);
  }
  for (const aclrtExceptionInfoCallback callback : to_call) callback(&info);
}

void SetThreadLastTaskId(uint32_t task_id) { ThreadLastTaskId() = task_id; }

}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireCallback(reinterpret_cast<const void*>(callback), "callback"));
  Callbacks& callbacks = GetCallbacks();
  MutexLock lock(callbacks.mutex);
  std::vector<aclrtExceptionInfoCallback>& registered = callbacks.registered;
  // Twice the same is one: unregistering takes it out at once.
  if (std::find(registered.begin(), registered.end(), callback) != registered.end()) {
    return ACL_SUCCESS;
  }
  if (registered.size() >= kMaxCallbacks) {
    return Fail(ACL_ERROR_RT_OVER_LIMIT, kExhausted, "too many exception callbacks");
  }
  registered.push_back(callback);
  return ACL_SUCCESS;
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireCallback(reinterpret_cast<const void*>(callback), "callback"));
  Callbacks& callbacks = GetCallbacks();
  MutexLock lock(callbacks.mutex);
  std::erase(callbacks.registered, callback);
  return ACL_SUCCESS;
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Callbacks& callbacks = GetCallbacks();
  MutexLock lock(callbacks.mutex);
  // Null takes it away.
  callbacks.single = callback;
  return ACL_SUCCESS;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  // 0xFFFFFFFF is the vendor's answer for all that is not known.
  if (EnterCall(__func__) != ACL_SUCCESS || info == nullptr) return kUnknown;
  return static_cast<uint32_t>(info->device_id);
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  if (EnterCall(__func__) != ACL_SUCCESS || info == nullptr) return kUnknown;
  return static_cast<uint32_t>(info->stream_id);
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  if (EnterCall(__func__) != ACL_SUCCESS || info == nullptr) return kUnknown;
  return static_cast<uint32_t>(info->task_id);
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  if (EnterCall(__func__) != ACL_SUCCESS || info == nullptr) return kUnknown;
  return info->thread_id;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  if (EnterCall(__func__) != ACL_SUCCESS || info == nullptr) return kUnknown;
  return static_cast<uint32_t>(info->code);
}

aclError aclrtGetThreadLastTaskId(uint32_t* taskId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(taskId, "taskId"));
  *taskId = ThreadLastTaskId();
  return ACL_SUCCESS;
}
