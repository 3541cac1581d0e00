// The ABI's functions for notifies, and their tasks.
#include <atomic>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/notify.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

class NotifyRecordTask final : public Task {
 public:
  explicit NotifyRecordTask(std::shared_ptr<Notify> notify) : notify_(std::move(notify)) {}

  TaskResult Run(Stream&) override {
    notify_->flag().Set();
    return {};
  }
  const char* name() const override { return "notify record"; }

 private:
  const std::shared_ptr<Notify> notify_;
};

class NotifyWaitTask final : public Task {
 public:
  NotifyWaitTask(std::shared_ptr<Notify> notify, uint64_t limit_us)
      : notify_(std::move(notify)), limit_us_(limit_us) {}

  TaskResult Run(Stream& stream) override {
    // Registered before the first look, so that no record is missed.
    const Waiters::Scope waiter(notify_->flag().waiters(), stream.shared_from_this());
    // Taken even if a release comes at the same time, so that a notify is not left set for the next
    // wait. One record lets one wait pass.
    return WaitAtMost(stream, limit_us_, "a notify",
                      [this](bool releasing) { return notify_->flag().Take() || releasing; });
  }
  const char* name() const override { return "notify wait"; }
  // It waits for another stream, and a task of that may need the thread that would be blocked here.
  bool runs_on_any_thread() const override { return false; }

 private:
  const std::shared_ptr<Notify> notify_;
  const uint64_t limit_us_;
};

aclError FindNotify(aclrtNotify handle, std::shared_ptr<Notify>* notify) {
  RETURN_IF_FAILED(RequireNotNull(handle, "notify"));
  std::shared_ptr<Notify> found = Runtime::Get().notifies().Find(handle);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "notify is not a live notify");
  }
  *notify = std::move(found);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  static std::atomic<uint32_t> next_id{0};
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(notify, "notify"));
  if (flag != ACL_NOTIFY_DEFAULT && flag != ACL_NOTIFY_DEVICE_USE_ONLY) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("flag is ", flag,
                       ", must be ACL_NOTIFY_DEFAULT or "
                       "ACL_NOTIFY_DEVICE_USE_ONLY"));
  }
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  Device& device = context->device();
  if (!device.notifies().Take(1)) {
    return Fail(
        ACL_ERROR_RT_NO_NOTIFY_RESOURCE, kExhausted,
        Concat("device ", device.id(), " has no notify left of ", device.notifies().limit()));
  }
  *notify = Runtime::Get().notifies().Insert(std::make_shared<Notify>(device, next_id++));
  return ACL_SUCCESS;
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Notify> found;
  RETURN_IF_FAILED(FindNotify(notify, &found));
  // As with events: the reset that recovers the device ends its notifies.
  RETURN_IF_FAILED(found->device().CheckNotLost());
  if (!Runtime::Get().notifies().Remove(notify)) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "notify is not a live notify");
  }
  found->device().notifies().Return(1);
  return ACL_SUCCESS;
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  std::shared_ptr<Notify> found;
  RETURN_IF_FAILED(FindNotify(notify, &found));
  // No check of devices: notifies also join streams of several.
  return target->Enqueue(std::make_unique<NotifyRecordTask>(std::move(found)));
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  std::shared_ptr<Notify> found;
  RETURN_IF_FAILED(FindNotify(notify, &found));
  // Seconds; 0 is for ever.
  return target->Enqueue(
      std::make_unique<NotifyWaitTask>(std::move(found), uint64_t{timeout} * 1000000));
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(notifyId, "notifyId"));
  std::shared_ptr<Notify> found;
  RETURN_IF_FAILED(FindNotify(notify, &found));
  *notifyId = found->id();
  return ACL_SUCCESS;
}

aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(notifies, "notifies"));
  if (num == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "num is 0, must be at least 1");
  }
  // All handles are looked at before any notify changes.
  for (const bool resets : {false, true}) {
    for (size_t i = 0; i < num; ++i) {
      std::shared_ptr<Notify> found;
      RETURN_IF_FAILED(FindNotify(notifies[i], &found));
      if (resets) found->flag().Take();
    }
  }
  return ACL_SUCCESS;
}
