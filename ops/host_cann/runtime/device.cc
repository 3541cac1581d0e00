#include "ops/host_cann/runtime/device.h"

#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/state_callbacks.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

std::shared_ptr<Context> Device::AddContext(bool is_default) {
  auto context = std::make_shared<Context>(*this, is_default);
  const std::shared_ptr<Stream> stream = context->CreateStream({.is_default = true});
  if (stream == nullptr) {
    Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, kExhausted,
         Concat("device ", id_, " has no stream left for the context"));
    return nullptr;
  }
  Runtime& runtime = Runtime::Get();
  context->set_handles(runtime.contexts().Insert(context), runtime.streams().Insert(stream));
  contexts_.push_back(context);
  return context;
}

aclError Device::Set(std::shared_ptr<Context>* context) {
  MutexLock lifecycle(lifecycle_mutex_);
  if (uses_ > 0) RETURN_IF_FAILED(CheckNotLost());
  force_allowed_ = true;
  if (lost_code() != ACL_SUCCESS) {
    return Fail(ACL_ERROR_RT_DEV_SETUP_ERROR, kInternal, Concat("device ", id_, " does not open"));
  }
  MutexLock lock(mutex_);
  if (default_context_ == nullptr) default_context_ = AddContext(/*is_default=*/true);
  if (default_context_ == nullptr) return ACL_ERROR_RT_NO_STREAM_RESOURCE;
  ++uses_;
  *context = default_context_;
  return ACL_SUCCESS;
}

aclError Device::Reset() {
  MutexLock lifecycle(lifecycle_mutex_);
  if (uses_ == 0) {
    return Fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, kCallOrder,
                Concat("device ", id_, " has been reset as often as it was set"));
  }
  RETURN_IF_FAILED(CheckNotLost());
  if (--uses_ > 0) return ACL_SUCCESS;
  force_allowed_ = false;
  ReportDeviceState(id_, ACL_RT_DEVICE_STATE_RESET_PRE);
  for (const std::shared_ptr<Stream>& stream : AllStreams()) stream->Wait(std::nullopt);
  ReleaseEverything();
  ReportDeviceState(id_, ACL_RT_DEVICE_STATE_RESET_POST);
  return ACL_SUCCESS;
}

aclError Device::ResetForce() {
  MutexLock lifecycle(lifecycle_mutex_);
  if (!force_allowed_) {
    return Fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, kCallOrder,
                Concat("device ", id_, " has not been set since it was released"));
  }
  force_allowed_ = false;
  uses_ = 0;
  ReportDeviceState(id_, ACL_RT_DEVICE_STATE_RESET_PRE);
  const std::vector<std::shared_ptr<Stream>> streams = AllStreams();
  for (const std::shared_ptr<Stream>& stream : streams) stream->ReleaseHangs();
  for (const std::shared_ptr<Stream>& stream : streams) stream->Wait(std::nullopt);
  ReleaseEverything();
  ReportDeviceState(id_, ACL_RT_DEVICE_STATE_RESET_POST);
  MutexLock lock(mutex_);
  if (resets_to_recover_ > 0 && --resets_to_recover_ == 0) lost_code_ = ACL_SUCCESS;
  return ACL_SUCCESS;
}

void Device::ReleaseEverything() {
  std::vector<std::shared_ptr<Context>> closed;
  {
    MutexLock lock(mutex_);
    closed.swap(contexts_);
    default_context_ = nullptr;
  }
  Runtime& runtime = Runtime::Get();
  for (const std::shared_ptr<Context>& context : closed) context->Close();
  runtime.ForgetDevice(*this);
  last_fault_ = ACL_SUCCESS;
  peers_ = 0;
  core_limits.Reset();
}

std::shared_ptr<Context> Device::CreateContext() {
  MutexLock lifecycle(lifecycle_mutex_);
  force_allowed_ = true;
  MutexLock lock(mutex_);
  return AddContext(/*is_default=*/false);
}

void Device::DestroyContext(const std::shared_ptr<Context>& context) {
  for (const std::shared_ptr<Stream>& stream : context->streams()) stream->Wait(std::nullopt);
  {
    MutexLock lock(mutex_);
    std::erase(contexts_, context);
  }
  context->Close();
}

bool Device::has_default_context() {
  MutexLock lock(mutex_);
  return default_context_ != nullptr;
}

std::vector<std::shared_ptr<Stream>> Device::AllStreams() {
  std::vector<std::shared_ptr<Context>> contexts;
  {
    MutexLock lock(mutex_);
    contexts = contexts_;
  }
  std::vector<std::shared_ptr<Stream>> all;
  for (const std::shared_ptr<Context>& context : contexts) {
    const std::vector<std::shared_ptr<Stream>> streams = context->streams();
    all.insert(all.end(), streams.begin(), streams.end());
  }
  return all;
}

std::optional<int32_t> Device::TakeStream() {
  if (!streams_.Take(1)) return std::nullopt;
  return next_stream_id_++;
}

aclError Device::CheckNotLost() const {
  const aclError code = lost_code();
  if (code == ACL_SUCCESS) return ACL_SUCCESS;
  return Fail(code, kInternal, Concat("device ", id_, " is lost"));
}

aclError Device::CheckUsable() const {
  RETURN_IF_FAILED(CheckNotLost());
  if (aborts_under_way_ == 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_DEVICE_TASK_ABORT, kCallOrder,
              Concat("the tasks of device ", id_, " are being aborted"));
}

void Device::Lose(aclError code, int resets) {
  {
    MutexLock lock(mutex_);
    resets_to_recover_ = resets;
    lost_code_ = code;
    last_fault_ = code;
  }
  for (const std::shared_ptr<Stream>& stream : AllStreams()) stream->Wake();
}

bool Device::AbortTasks(Deadline deadline) {
  ++aborts_under_way_;
  bool in_time = true;
  for (const std::shared_ptr<Stream>& stream : AllStreams()) in_time &= stream->Abort(deadline);
  --aborts_under_way_;
  return in_time;
}

}  // namespace opserve::host_cann
