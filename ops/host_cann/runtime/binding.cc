#include "ops/host_cann/runtime/binding.h"

#include <utility>

#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The context is held after its end, so that the thread gets an answer instead of a dangling
// pointer; is_alive tells.
std::shared_ptr<Context>& BoundContext() {
  thread_local std::shared_ptr<Context> context;
  return context;
}

bool IsCurrent(const std::shared_ptr<Context>& bound) {
  return bound != nullptr && bound->is_alive();
}

aclError NoContext() {
  return Fail(ACL_ERROR_RT_CONTEXT_NULL, kWrongContext,
              "this thread has no context: call aclrtSetDevice or aclrtSetCurrentContext");
}

// The stream of a handle. The calling thread must have a context, `bound`: a stream's functions
// need one even for streams of other contexts. Only the thread itself changes its context, so that
// it has not to be held.
aclError FindStreamOfAnyContext(const std::shared_ptr<Context>& bound, aclrtStream handle,
                                std::shared_ptr<Stream>* stream) {
  if (!IsCurrent(bound)) return NoContext();
  *stream = handle == nullptr ? bound->default_stream() : Runtime::Get().streams().Find(handle);
  if (*stream != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "stream is not a live stream");
}

}  // namespace

void BindContext(std::shared_ptr<Context> context) { BoundContext() = std::move(context); }

bool HasCurrentContext() { return IsCurrent(BoundContext()); }

aclError CurrentContext(std::shared_ptr<Context>* context) {
  const std::shared_ptr<Context>& bound = BoundContext();
  if (!IsCurrent(bound)) return NoContext();
  *context = bound;
  return ACL_SUCCESS;
}

aclError UsableContext(std::shared_ptr<Context>* context) {
  std::shared_ptr<Context> current;
  RETURN_IF_FAILED(CurrentContext(&current));
  RETURN_IF_FAILED(current->device().CheckUsable());
  *context = std::move(current);
  return ACL_SUCCESS;
}

aclError FindStream(aclrtStream handle, std::shared_ptr<Stream>* stream) {
  const std::shared_ptr<Context>& bound = BoundContext();
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStreamOfAnyContext(bound, handle, &found));
  // By the object: a context that was created anew is another one.
  if (found->context() != bound) {
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT, kWrongContext,
                Concat("stream ", found->id(), " of device ", found->device().id(),
                       " does not belong to this thread's context"));
  }
  *stream = std::move(found);
  return ACL_SUCCESS;
}

aclError UsableStreamOfAnyContext(aclrtStream handle, std::shared_ptr<Stream>* stream) {
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStreamOfAnyContext(BoundContext(), handle, &found));
  RETURN_IF_FAILED(found->device().CheckUsable());
  *stream = std::move(found);
  return ACL_SUCCESS;
}

aclError UsableStream(aclrtStream handle, std::shared_ptr<Stream>* stream) {
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(handle, &found));
  RETURN_IF_FAILED(found->device().CheckUsable());
  *stream = std::move(found);
  return ACL_SUCCESS;
}

aclError FindEvent(aclrtEvent handle, std::shared_ptr<Event>* event) {
  RETURN_IF_FAILED(RequireNotNull(handle, "event"));
  std::shared_ptr<Event> found = Runtime::Get().events().Find(handle);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "event is not a live event");
  }
  *event = std::move(found);
  return ACL_SUCCESS;
}

aclError FindDevice(int64_t id, Device** device) {
  // Ids come signed and unsigned; 64 bits hold both.
  Device* const found = Runtime::Get().FindDevice(id);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, kBadArgument,
                Concat("deviceId is ", id, ", there are ", Runtime::Get().num_devices(),
                       " devices, from 0"));
  }
  *device = found;
  return ACL_SUCCESS;
}

aclError FindHealthyDevice(int64_t id, Device** device) {
  RETURN_IF_FAILED(FindDevice(id, device));
  return (*device)->CheckNotLost();
}

aclError CheckTimeoutMs(int32_t timeout) {
  // 0 is no timeout for the vendor: neither a poll nor for ever.
  if (timeout == -1 || timeout > 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("timeout is ", timeout, ", must be -1 or at least 1"));
}

}  // namespace opserve::host_cann
