// The handles that libnnopbase.so has given out, kind by kind. A handle that was destroyed, or
// never was one, is found out and not followed.
//
// Thread-safe. Only inside libnnopbase.so: another library would have tables of its own.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "aclnn/acl_meta.h"
#include "ops/host_cann/runtime/handle_table.h"
#include "ops/host_cann/runtime/launch.h"

namespace opserve::host_cann {

// All live objects behind handles to a T. Never destroyed, as programs destroy handles in static
// destructors too.
template <typename T>
HandleTable<T>& LiveHandles() {
  static auto& table = *new HandleTable<T>;
  return table;
}

// Reports a change of the number of live objects of this kind.
template <typename T>
void CountHandle(int64_t change) {
  constexpr bool kIsExecutor = std::is_same_v<T, aclOpExecutor>;
  AdjustLiveCount(kIsExecutor ? OPSERVE_HOST_EXECUTORS : OPSERVE_HOST_TENSORS, change);
}

template <typename T>
T* AddHandle(std::unique_ptr<T> object) {
  CountHandle<T>(1);
  return static_cast<T*>(LiveHandles<T>().Insert(std::move(object)));
}

// Null: not alive. Holding the result keeps the object.
template <typename T>
std::shared_ptr<T> FindHandle(const T* handle) {
  return LiveHandles<T>().Find(const_cast<T*>(handle));
}

// False: not alive. Of several callers exactly one gets true.
template <typename T>
bool RemoveHandle(const T* handle) {
  if (!LiveHandles<T>().Remove(const_cast<T*>(handle))) return false;
  CountHandle<T>(-1);
  return true;
}

}  // namespace opserve::host_cann
