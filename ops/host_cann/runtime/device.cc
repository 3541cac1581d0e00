#include "ops/host_cann/runtime/device.h"

#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/state_callbacks.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

std::shared_ptr<Context> Device::AddContext(bool is_default) {
  auto context = std::make_shared<Context>(*this, is_default);
  // The default stream is the context's first, and counts against the device's streams as on the
  // vendor's.
  const std::shared_ptr<Stream> stream = context->CreateStream({.is_default = true});
  if (stream == nullptr) {
    Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, kExhausted,
         Concat("device ", id_, " has no stream left for the context"));
    return nullptr;
  }
  Runtime& runtime = Runtime::Get();
  // Handles last, and before any other thread can find the context.
  context->set_handles(runtime.contexts().Insert(context), runtime.streams().Insert(stream));
  contexts_.push_back(context);
  return context;
}

aclError Device::Set(std::shared_ptr<Context>* context) {
  MutexLock lifecycle(lifecycle_mutex_);
  // Lost while in use: its own code, so that the program resets it. Lost before: it does not open.
  if (uses_ > 0) RETURN_IF_FAILED(CheckNotLost());
  // Even if the device does not open: only forced resets bring a lost device back, and each needs a
  // set before it.
  force_allowed_ = true;
  if (lost_code() != ACL_SUCCESS) {
    return Fail(ACL_ERROR_RT_DEV_SETUP_ERROR, kInternal, Concat("device ", id_, " does not open"));
  }
  MutexLock lock(mutex_);
  // All sets share it. The reset that ends the last use takes it away.
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
  // The last use ends. A forced reset needs a set first, as after a forced one.
  force_allowed_ = false;
  ReportDeviceState(id_, ACL_RT_DEVICE_STATE_RESET_PRE);
  // Their results do not matter any more: failures end with the streams.
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
  // First all, then the waits: one stream may wait for an event of another.
  for (const std::shared_ptr<Stream>& stream : streams) stream->ReleaseHangs();
  for (const std::shared_ptr<Stream>& stream : streams) stream->Wait(std::nullopt);
  ReleaseEverything();
  ReportDeviceState(id_, ACL_RT_DEVICE_STATE_RESET_POST);
  // Only now: a set that finds the device well must not meet streams of before the reset.
  MutexLock lock(mutex_);
  if (resets_to_recover_ > 0 && --resets_to_recover_ == 0) lost_code_ = ACL_SUCCESS;
  return ACL_SUCCESS;
}

void Device::ReleaseEverything() {
  std::vector<std::shared_ptr<Context>> closed;
  {
    MutexLock lock(mutex_);
    // Taken out first, so that Close runs without the device's lock: it takes those of streams and
    // callbacks.
    closed.swap(contexts_);
    default_context_ = nullptr;
  }
  Runtime& runtime = Runtime::Get();
  for (const std::shared_ptr<Context>& context : closed) context->Close();
  // After the streams have ended: their tasks use the events and the memory.
  runtime.ForgetDevice(*this);
  last_fault_ = ACL_SUCCESS;
  peers_ = 0;
  core_limits.Reset();
}

std::shared_ptr<Context> Device::CreateContext() {
  MutexLock lifecycle(lifecycle_mutex_);
  // A context opens the device as a set does, so a forced reset may follow.
  force_allowed_ = true;
  MutexLock lock(mutex_);
  return AddContext(/*is_default=*/false);
}

void Device::DestroyContext(const std::shared_ptr<Context>& context) {
  // Before the context leaves the list: a reset meanwhile still finds its streams.
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
  // The lists are copied: no lock of the device is held while streams are waited for.
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
    // Under the lock, with the number of resets that heal it. Readers take no lock and see the code
    // alone.
    lost_code_ = code;
    last_fault_ = code;
  }
  // Tasks that wait for events or in a fault look at the code only when they wake.
  for (const std::shared_ptr<Stream>& stream : AllStreams()) stream->Wake();
}

bool Device::AbortTasks(Deadline deadline) {
  // From here on calls are refused with 107022, as the vendor's runtime does during an abort.
  ++aborts_under_way_;
  bool in_time = true;
  // One deadline for all: a slow stream leaves less time to those behind it, or none.
  for (const std::shared_ptr<Stream>& stream : AllStreams()) in_time &= stream->Abort(deadline);
  --aborts_under_way_;
  return in_time;
}

}  // namespace opserve::host_cann
