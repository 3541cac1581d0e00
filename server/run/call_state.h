// Whether anybody still waits for a call, and until when.
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace opserve::server {

// Shared by the RPC, which may end first, and whatever works for it. Thread-safe.
class CallState {
 public:
  explicit CallState(absl::Time deadline) : deadline_(deadline) {}

  absl::Time deadline() const { return deadline_; }
  const std::atomic<bool>& is_cancelled() const { return is_cancelled_; }

  // kCancelled or kDeadlineExceeded (reason "deadline_expired") if nobody waits any more: the
  // latter as well if the caller left because of its deadline, which gRPC tells as a cancellation.
  absl::Status Check() const { return Check(absl::Now()); }
  // The same for a caller that knows the time.
  absl::Status Check(absl::Time now) const;

  // Makes Check fail from now on. Before several calls are cancelled together, so that the end of
  // one does not start another.
  void MarkCancelled() { is_cancelled_.store(true, std::memory_order_relaxed); }

  // The caller is gone: Check fails from now on, and the action of OnCancel is run, once, in the
  // calling thread.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the action of Cancel in place of the one before; null: none. It must not block and may
  // run, on another thread, until shortly after it was replaced. False, and nothing is changed, if
  // the call is cancelled already.
  bool OnCancel(absl::AnyInvocable<void() &&> action) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const absl::Time deadline_;
  std::atomic<bool> is_cancelled_ = false;
  absl::Mutex mutex_;
  absl::AnyInvocable<void() &&> on_cancel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
