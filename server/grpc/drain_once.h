// The one drain of a daemon, whichever of SIGTERM and an administrator wants it first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opserve::server {

// Thread-safe, but for Join and the destructor.
class DrainOnce {
 public:
  // `drain` blocks until it is done and gives the number of calls that did not end. It runs once at
  // most, on a thread of its own.
  explicit DrainOnce(std::function<int64_t()> drain);
  ~DrainOnce();
  DrainOnce(const DrainOnce&) = delete;
  DrainOnce& operator=(const DrainOnce&) = delete;

  // Begins it, unless it has begun, and waits for its result; none: it still goes on at `deadline`.
  std::optional<int64_t> Await(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for one that has begun. No call of Await follows.
  void Join() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::function<int64_t()> drain_;
  absl::Mutex mutex_;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
  std::optional<int64_t> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
