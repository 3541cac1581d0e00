#include "server/run/call_state.h"

#include <utility>

#include "proto/status/error.h"

namespace opserve::server {
namespace {

// A caller's deadline passes a little before ours, which begins when its call has arrived and is
// rounded up. So a caller that leaves so shortly before it has left because of it.
constexpr absl::Duration kTransit = absl::Milliseconds(50);

}  // namespace

absl::Status CallState::Check(absl::Time now) const {
  const bool is_cancelled = is_cancelled_.load(std::memory_order_relaxed);
  if (now >= (is_cancelled ? deadline_ - kTransit : deadline_)) {
    return MakeError(Reason::kDeadlineExpired, "the deadline passed before the request had ended");
  }
  if (is_cancelled) return absl::CancelledError("the caller cancelled");
  return absl::OkStatus();
}

void CallState::Cancel() {
  absl::AnyInvocable<void() &&> action;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_.store(true, std::memory_order_relaxed);
    action = std::exchange(on_cancel_, nullptr);
  }
  // Without the lock, since the action may take others.
  if (action) std::move(action)();
}

bool CallState::OnCancel(absl::AnyInvocable<void() &&> action) {
  absl::MutexLock lock(&mutex_);
  if (is_cancelled_.load(std::memory_order_relaxed)) return false;
  on_cancel_ = std::move(action);
  return true;
}

}  // namespace opserve::server
