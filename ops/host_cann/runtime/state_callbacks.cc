#include "ops/host_cann/runtime/state_callbacks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// An answer for programs that register in a loop; the vendor names no limit.
constexpr size_t kMaxCallbacks = 1024;

// Callbacks by name. Thread-safe.
template <typename Callback>
class Registry {
 public:
  struct Entry {
    std::string name;
    Callback callback;
    void* args;
  };

  // A null callback removes the one of that name, if there is one.
  aclError Register(const char* name, Callback callback, void* args) ABSL_LOCKS_EXCLUDED(mutex_) {
    RETURN_IF_FAILED(RequireNotNull(name, "regName"));
    MutexLock lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.name == name; });
    if (callback == nullptr) {
      if (found != entries_.end()) entries_.erase(found);
      return ACL_SUCCESS;
    }
    if (found != entries_.end()) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, kCallOrder,
                  Concat("regName is \"", name, "\", which has a callback already"));
    }
    if (entries_.size() >= kMaxCallbacks) {
      return Fail(ACL_ERROR_RT_OVER_LIMIT, kExhausted,
                  Concat("there are ", kMaxCallbacks, " callbacks, which is the limit"));
    }
    entries_.push_back({name, callback, args});
    return ACL_SUCCESS;
  }

  // Calls `call(callback, args)` for each, outside the lock.
  // Callbacks may register others, so the list is copied and called without the lock.
  template <typename Call>
  void ForEach(Call call) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<Entry> entries;
    {
      MutexLock lock(mutex_);
      entries = entries_;
    }
    for (const Entry& entry : entries) call(entry.callback, entry.args);
  }

 private:
  Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

Registry<aclrtDeviceStateCallback>& DeviceCallbacks() {
  static auto* const registry = new Registry<aclrtDeviceStateCallback>;
  return *registry;
}

Registry<aclrtStreamStateCallback>& StreamCallbacks() {
  static auto* const registry = new Registry<aclrtStreamStateCallback>;
  return *registry;
}

Registry<aclrtDeviceTaskAbortCallback>& AbortCallbacks() {
  static auto* const registry = new Registry<aclrtDeviceTaskAbortCallback>;
  return *registry;
}

}  // namespace

void ReportDeviceState(int32_t device_id, aclrtDeviceState state) {
  DeviceCallbacks().ForEach(
      [&](aclrtDeviceStateCallback callback, void* args) { callback(device_id, state, args); });
}

void ReportStreamState(aclrtStream stream, aclrtStreamState state) {
  StreamCallbacks().ForEach(
      [&](aclrtStreamStateCallback callback, void* args) { callback(stream, state, args); });
}

aclError ReportTaskAbort(int32_t device_id, aclrtDeviceTaskAbortStage stage, uint32_t timeout_ms) {
  aclError code = ACL_SUCCESS;
  AbortCallbacks().ForEach([&](aclrtDeviceTaskAbortCallback callback, void* args) {
    // After a failure the others are not called: the abort is off.
    if (code == ACL_SUCCESS) code = callback(device_id, stage, timeout_ms, args);
  });
  if (code == ACL_SUCCESS) return ACL_SUCCESS;
  return Fail(code, kInternal, Concat("a callback for aborts of device ", device_id, " failed"));
}

}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtRegDeviceStateCallback(const char* regName, aclrtDeviceStateCallback callback,
                                     void* args) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return DeviceCallbacks().Register(regName, callback, args);
}

aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                     void* args) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return StreamCallbacks().Register(regName, callback, args);
}

aclError aclrtSetDeviceTaskAbortCallback(const char* regName, aclrtDeviceTaskAbortCallback callback,
                                         void* args) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return AbortCallbacks().Register(regName, callback, args);
}
