// Handles that can be checked: a stale or foreign one is found to be such, never followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ops/host_cann/runtime/mutex.h"

namespace opserve::host_cann {

// A number that no other handle of the process has or will have.
inline void* NewHandle() {
  static std::atomic<uintptr_t> next{0x10000};
  return reinterpret_cast<void*>(next.fetch_add(16, std::memory_order_relaxed));
}

// Objects by handle. Thread-safe.
template <typename T>
class HandleTable {
 public:
  void* Insert(std::shared_ptr<T> object) ABSL_LOCKS_EXCLUDED(mutex_) {
    void* const handle = NewHandle();
    MutexLock lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // Null: no such handle.
  std::shared_ptr<T> Find(void* handle) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  // Forgets a handle. False: another thread already has.
  bool Remove(void* handle) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return objects_.erase(handle) > 0;
  }

  // Forgets all objects that `matches`, and returns them.
  template <typename Matches>
  std::vector<std::shared_ptr<T>> RemoveIf(Matches matches) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<T>> removed;
    MutexLock lock(mutex_);
    for (auto it = objects_.begin(); it != objects_.end();) {
      if (matches(*it->second)) {
        removed.push_back(std::move(it->second));
        it = objects_.erase(it);
      } else {
        ++it;
      }
    }
    return removed;
  }

  template <typename Matches>
  int64_t CountIf(Matches matches) ABSL_LOCKS_EXCLUDED(mutex_) {
    int64_t count = 0;
    MutexLock lock(mutex_);
    for (const auto& [handle, object] : objects_) count += matches(*object) ? 1 : 0;
    return count;
  }

 private:
  Mutex mutex_;
  std::unordered_map<void*, std::shared_ptr<T>> objects_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::host_cann
