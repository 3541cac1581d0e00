// Host callbacks as work on a stream.
#include <pthread.h>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/report_threads.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Hands a callback to the stream's subscribed thread.
class CallbackTask final : public Task {
 public:
  CallbackTask(aclrtCallback function, void* user_data, bool blocks)
      : function_(function), user_data_(user_data), blocks_(blocks) {}

  TaskResult Run(Stream& stream) override {
    std::shared_ptr<ReportSubscription> subscription = stream.subscription();
    if (subscription == nullptr) return {};  // unsubscribed since: the callback is dropped
    // Shared between the thread's queue and this task: either may end first.
    auto callback = std::make_shared<Callback>(function_, user_data_, subscription->number(),
                                               stream.shared_from_this());
    ReportThreads::Get().Post(*subscription->thread(), callback);
    subscription.reset();  // so that it can end while the stream waits
    if (!blocks_) return {};
    const auto waited = stream.WaitInTask(
        std::nullopt, [&](bool releasing) { return releasing || callback->is_finished(); });
    // Not begun: an aborted stream does not run it later, when its data may be gone. Finished or
    // begun: no effect.
    callback->Drop();
    return waited == Stream::Waited::kCancelled ? TaskResult::Cancelled() : TaskResult();
  }
  const char* name() const override { return "callback"; }
  // A program that waits for its callback goes on, and learns of the loss by its next call.
  bool needs_device() const override { return false; }
  bool runs_on_any_thread() const override { return false; }

 private:
  const aclrtCallback function_;
  void* const user_data_;
  const bool blocks_;
};

// Runs a function on the stream's own thread.
class HostFunctionTask final : public Task {
 public:
  HostFunctionTask(aclrtHostFunc function, void* args) : function_(function), args_(args) {}

  TaskResult Run(Stream&) override {
    function_(args_);
    return {};
  }
  const char* name() const override { return "host function"; }
  bool needs_device() const override { return false; }
  // Program's code, which may itself wait for other threads.
  bool runs_on_any_thread() const override { return false; }

 private:
  const aclrtHostFunc function_;
  void* const args_;
};

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  std::shared_ptr<ReportSubscription> subscription;
  // Joined before the stream knows it: a refusal of the stream ends the subscription again, by its
  // destructor.
  RETURN_IF_FAILED(ReportSubscription::Start(threadId, target->device(), &subscription));
  if (target->Subscribe(std::move(subscription))) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, kCallOrder,
              Concat("stream ", target->id(), " already has a callback thread"));
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  // Without a check of the device's health: programs tidy up after a loss too.
  RETURN_IF_FAILED(FindStream(stream, &target));
  const std::shared_ptr<ReportSubscription> subscription = target->subscription();
  if (subscription == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NO_CB_REG, kCallOrder,
                Concat("stream ", target->id(), " has no callback thread"));
  }
  if (subscription->thread_id() != threadId) {
    return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, kBadArgument,
                Concat("threadId is not the callback thread of stream ", target->id()));
  }
  target->Unsubscribe();
  return ACL_SUCCESS;
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireCallback(reinterpret_cast<const void*>(fn), "fn"));
  if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                Concat("blockType is ", static_cast<int>(blockType), ", must be 0 or 1"));
  }
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  if (target->subscription() == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NO_CB_REG, kCallOrder,
                Concat("stream ", target->id(), " has no callback thread"));
  }
  // A replay may run on a stream that no thread subscribes to.
  RETURN_IF_FAILED(CheckNotCaptured(*target));
  return target->Enqueue(
      std::make_unique<CallbackTask>(fn, userData, blockType == ACL_CALLBACK_BLOCK));
}

aclError aclrtProcessReport(int32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  // 100000 from the ACL layer here, unlike the runtime's 107000 for other timeouts.
  if (timeout == 0 || timeout < -1) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                Concat("timeout is ", timeout, ", must be -1 or at least 1"));
  }
  return ReportThreads::Get().Process(static_cast<uint64_t>(pthread_self()),
                                      DeadlineAfterMs(timeout));
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireCallback(reinterpret_cast<const void*>(fn), "fn"));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  // The vendor's documents forbid both kinds of callback on one stream.
  if (target->subscription() != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, kCallOrder,
                Concat("stream ", target->id(), " has a callback thread"));
  }
  return target->Enqueue(std::make_unique<HostFunctionTask>(fn, args));
}
