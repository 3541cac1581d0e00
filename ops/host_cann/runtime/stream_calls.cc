// The ABI's stream functions.
#include <algorithm>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/state_callbacks.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Smaller is more urgent. Priorities are kept and reported; the CPU's threads are all equal.
constexpr int32_t kGreatestPriority = 0;
constexpr int32_t kLeastPriority = 7;
// Accepted and reported. None changes how the CPU runs tasks.
constexpr uint32_t kStreamFlags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC |
                                  ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE |
                                  ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

aclError CreateStream(aclrtStream* handle, Stream::Config config) {
  RETURN_IF_FAILED(RequireNotNull(handle, "stream"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  std::shared_ptr<Stream> stream = context->CreateStream(config);
  if (stream == nullptr) {
    return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, kExhausted,
                Concat("device ", context->device().id(), " has no stream left of ",
                       context->device().streams().limit()));
  }
  // The handle exists before the callbacks run: they may use the stream.
  *handle = Runtime::Get().streams().Insert(std::move(stream));
  ReportStreamState(*handle, ACL_RT_STREAM_STATE_CREATE_POST);
  return ACL_SUCCESS;
}

// Larger priorities become the least one, unknown flags have no effect.
aclError CreateConfigured(aclrtStream* handle, uint32_t priority, uint32_t flags) {
  return CreateStream(handle, {.is_default = false,
                               .priority = std::min<uint32_t>(priority, kLeastPriority),
                               .flags = flags & kStreamFlags});
}

// The stream of a handle that may be destroyed; no longer known to anyone afterwards.
aclError TakeStream(aclrtStream handle, bool wait) {
  RETURN_IF_FAILED(RequireNotNull(handle, "stream"));
  std::shared_ptr<Stream> stream;
  RETURN_IF_FAILED(UsableStream(handle, &stream));
  if (stream->config().is_default) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                "stream is a default stream, which ends with its context");
  }
  // A capture holds its streams until its end, and still records from them.
  RETURN_IF_FAILED(CheckNotCaptured(*stream));
  // Before the wait and the removal: callbacks get a handle that is still valid.
  ReportStreamState(handle, ACL_RT_STREAM_STATE_DESTROY_PRE);
  // The failures of its tasks end with the stream: the call is no synchronise.
  if (wait) stream->Wait(std::nullopt);
  // Two threads that destroy the same stream both come here; one of them finds it gone.
  if (!Runtime::Get().streams().Remove(handle)) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "stream is not a live stream");
  }
  stream->context()->RemoveStream(stream);
  return ACL_SUCCESS;
}

aclError Synchronize(aclrtStream handle, int32_t timeout) {
  // Any context, as the vendor allows: a thread may wait for a stream that it cannot queue on.
  std::shared_ptr<Stream> stream;
  RETURN_IF_FAILED(UsableStreamOfAnyContext(handle, &stream));
  RETURN_IF_FAILED(CheckNotCaptured(*stream));
  // In this order: the wait's timeout leaves the failure for the next synchronise, which reports it
  // once.
  RETURN_IF_FAILED(stream->Wait(DeadlineAfterMs(timeout)));
  return stream->TakeError();
}

aclError SetFailureMode(Stream& stream, uint64_t mode) {
  if (mode == ACL_CONTINUE_ON_FAILURE || mode == ACL_STOP_ON_FAILURE) {
    return stream.SetStopOnFailure(mode == ACL_STOP_ON_FAILURE);
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("mode is ", mode, ", must be ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE"));
}

aclError SetOverflowSwitch(Stream& stream, uint32_t flag) {
  if (flag > 1) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("flag is ", flag, ", must be 0 or 1"));
  }
  stream.overflow_switch = flag;
  return ACL_SUCCESS;
}

aclError UnknownAttribute(aclrtStreamAttr attribute) {
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("stmAttrType is ", static_cast<int>(attribute), ", must be 1 to 5"));
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtCreateStream(aclrtStream* stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CreateStream(stream, {});
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CreateConfigured(stream, priority, flag);
}

aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(handle, "handle"));
  // The structure has room for 64 bits of flags; streams have 32.
  return CreateConfigured(stream, handle->priority, static_cast<uint32_t>(handle->flag));
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(leastPriority, "leastPriority"));
  RETURN_IF_FAILED(RequireNotNull(greatestPriority, "greatestPriority"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(CurrentContext(&context));
  *leastPriority = kLeastPriority;
  *greatestPriority = kGreatestPriority;
  return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return TakeStream(stream, /*wait=*/true);
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return TakeStream(stream, /*wait=*/false);
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return Synchronize(stream, -1);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckTimeoutMs(timeout));
  return Synchronize(stream, timeout);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(status, "status"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(UsableStreamOfAnyContext(stream, &found));
  RETURN_IF_FAILED(CheckNotCaptured(*found));
  *status = found->IsIdle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtStreamAbort(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(UsableStream(stream, &found));
  // Without a deadline: kernels stop between their parts, copies and host functions come to their
  // own end.
  found->Abort(std::nullopt);
  return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(UsableStream(stream, &found));
  // Only the newer products take the null stream here, by the vendor's document.
  if (stream == nullptr && !CurrentSoc().generation->default_stream_has_failure_mode) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat("stream is null, which ", CurrentSoc().name, " does not allow"));
  }
  return SetFailureMode(*found, mode);
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(UsableStream(stream, &found));
  const auto unsupported = [&] {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat("stmAttrType ", static_cast<int>(stmAttrType), " cannot be changed"));
  };
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return SetFailureMode(*found, value->failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return SetOverflowSwitch(*found, value->overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      found->custom_tag = value->userCustomTag;
      return 0;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      // 0 changes nothing, as the information is never cached.
      return value->cacheOpInfoSwitch == 0 ? ACL_SUCCESS : unsupported();
    // A priority is fixed when a stream is created.
    case ACL_STREAM_ATTR_PRIORITY:
      return unsupported();
  }
  return UnknownAttribute(stmAttrType);
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  std::shared_ptr<Stream> found;
  // Reading needs no healthy device: the attributes are the host's.
  RETURN_IF_FAILED(FindStream(stream, &found));
  // Filled apart from `*value`, which stays untouched by an unknown attribute.
  aclrtStreamAttrValue read = {};
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      read.failureMode = found->stop_on_failure() ? ACL_STOP_ON_FAILURE : ACL_CONTINUE_ON_FAILURE;
      break;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      read.overflowSwitch = found->overflow_switch;
      break;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      break;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      read.userCustomTag = found->custom_tag;
      break;
    case ACL_STREAM_ATTR_PRIORITY:
      read.streamPriority = found->config().priority;
      break;
    default:
      return UnknownAttribute(stmAttrType);
  }
  *value = read;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(streamCount, "streamCount"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  *streamCount = static_cast<uint32_t>(context->device().streams().available());
  return ACL_SUCCESS;
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(streamId, "streamId"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  *streamId = found->id();
  return ACL_SUCCESS;
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(flags, "flags"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  *flags = found->config().flags;
  return ACL_SUCCESS;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(priority, "priority"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  *priority = found->config().priority;
  return ACL_SUCCESS;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(UsableStream(stream, &found));
  return SetOverflowSwitch(*found, flag);
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(flag, "flag"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindStream(stream, &found));
  *flag = found->overflow_switch;
  return ACL_SUCCESS;
}
