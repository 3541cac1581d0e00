// Callbacks of the start and the end of ACL.
#pragma once

#include <algorithm>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

// In the order in which they were registered. Not thread-safe.
template <typename Callback>
class CallbacksByType {
 public:
  // 100000: null. 500000: the type has a callback, and is not ACL_REG_TYPE_OTHER. 207012: too many.
  aclError Add(aclRegisterCallbackType type, Callback callback, void* user_data) {
    RETURN_IF_FAILED(RequireNotNull(reinterpret_cast<const void*>(callback), "cbFunc"));
    const auto of_type = [&](const Entry& entry) { return entry.type == type; };
    if (type != ACL_REG_TYPE_OTHER && std::any_of(entries_.begin(), entries_.end(), of_type)) {
      return Fail(ACL_ERROR_INTERNAL_ERROR, kCallOrder,
                  Concat("type is ", static_cast<int>(type), ", which has a callback already"));
    }
    if (entries_.size() >= kMaxCallbacks) {
      return Fail(ACL_ERROR_RT_OVER_LIMIT, kExhausted,
                  Concat("there are ", kMaxCallbacks, " callbacks, which is the limit"));
    }
    entries_.push_back({type, callback, user_data});
    return ACL_SUCCESS;
  }

  // 100000: null. 500000: it is not registered.
  aclError Remove(aclRegisterCallbackType type, Callback callback) {
    RETURN_IF_FAILED(RequireNotNull(reinterpret_cast<const void*>(callback), "cbFunc"));
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.type == type && entry.callback == callback;
    });
    if (found == entries_.end()) {
      return Fail(ACL_ERROR_INTERNAL_ERROR, kCallOrder,
                  Concat("cbFunc is not registered for type ", static_cast<int>(type)));
    }
    entries_.erase(found);
    return ACL_SUCCESS;
  }

  // Calls `call(callback, user_data)` for each until one returns another code than 0; returns it.
  template <typename Call>
  aclError CallUntilFailure(Call call) const {
    for (const Entry& entry : entries_) RETURN_IF_FAILED(call(entry.callback, entry.user_data));
    return ACL_SUCCESS;
  }

 private:
  static constexpr size_t kMaxCallbacks = 1024;
  struct Entry {
    aclRegisterCallbackType type;
    Callback callback;
    void* user_data;
  };
  std::vector<Entry> entries_;
};

}  // namespace opserve::host_cann
