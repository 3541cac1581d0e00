#include "server/execution/call_state.h"

#include <utility>

#include "absl/time/clock.h"
#include "ops/catalog/error.h"

namespace opserve::server {

absl::Status CallState::Check() const {
  if (is_cancelled_.load(std::memory_order_relaxed)) {
    return absl::CancelledError("the caller cancelled");
  }
  if (absl::Now() >= deadline_) {
    return catalog::ErrorWithReason(absl::StatusCode::kDeadlineExceeded, "deadline_expired",
                                    "the deadline passed before the request was launched");
  }
  return absl::OkStatus();
}

void CallState::Cancel() {
  absl::AnyInvocable<void() &&> action;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_.store(true, std::memory_order_relaxed);
    action = std::exchange(on_cancel_, nullptr);
  }
  if (action) std::move(action)();
}

bool CallState::OnCancel(absl::AnyInvocable<void() &&> action) {
  absl::MutexLock lock(&mutex_);
  if (is_cancelled_.load(std::memory_order_relaxed)) return false;
  on_cancel_ = std::move(action);
  return true;
}

}  // namespace opserve::server
