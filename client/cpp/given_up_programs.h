// Internal: handles of prepared programs that nothing refers to any more.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace opserve {

// Collected by destructors, which must not wait for a daemon, for the client's next preparation.
// Thread-safe.
class GivenUpPrograms {
 public:
  // Beyond as many as one call releases, the daemon forgets a program at the end of its lease.
  static constexpr size_t kMost = 1024;

  void Add(std::string handle) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (handles_.size() < kMost) handles_.push_back(std::move(handle));
  }

  std::vector<std::string> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return std::exchange(handles_, {});
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> handles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve
