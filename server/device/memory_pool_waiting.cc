// DeviceMemoryPool: the slow path of an allocation that no free memory could serve.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/device/memory_pool.h"

namespace opserve::server {

bool DeviceMemoryPool::Attempt::IsDue() const {
  pool.mutex_.AssertReaderHeld();  // as of every condition that others wait for
  return pool.IsDue(*this);
}

bool DeviceMemoryPool::IsDue(const Attempt& attempt) const {
  return attempt.is_cancelled() || (IsFirst(attempt) && changes_ != attempt.seen_changes);
}

absl::StatusOr<DeviceMemoryPool::Lease> DeviceMemoryPool::AllocateSlowly(Attempt& attempt) {
  while (true) {
    absl::StatusOr<Lease> lease = Grow(attempt);
    absl::MutexLock lock(&mutex_);
    if (absl::IsResourceExhausted(lease.status())) {
      const absl::Status verdict =
          attempt.may_wait() ? Wait(attempt, lease.status()) : absl::OkStatus();
      if (!verdict.ok()) {
        lease = verdict;
      } else if (const Lease taken = TakeFree(attempt); taken.block != nullptr) {
        lease = taken;
      } else if (attempt.may_wait()) {
        continue;
      }
    }
    LeaveQueue(attempt);
    return lease;
  }
}

absl::Status DeviceMemoryPool::Wait(Attempt& attempt, const absl::Status& refusal) {
  // Looked at even if there is no need to wait: changes may follow each other past any deadline.
  const absl::Time until = attempt.allocation.wait_until;
  if (absl::Now() >= until) return refusal;
  if (!IsDue(attempt)) {
    if (!CanComeBack(attempt)) return refusal;
    JoinQueue(attempt);
    const absl::Time start = absl::Now();
    const bool is_due = mutex_.AwaitWithDeadline(absl::Condition(&attempt, &Attempt::IsDue), until);
    counters_.wait_ns_total.fetch_add(absl::ToInt64Nanoseconds(absl::Now() - start),
                                      std::memory_order_relaxed);
    if (!is_due) return refusal;
  }
  if (!attempt.is_cancelled()) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("cancelled while waiting for ", attempt.allocation.bytes,
                                           " bytes of device memory"));
}

void DeviceMemoryPool::JoinQueue(Attempt& attempt) {
  if (attempt.is_queued) return;
  waiters_.push_back(&attempt);
  counters_.waits_total.fetch_add(1, std::memory_order_relaxed);
  attempt.is_queued = true;
  counters_.waiting.store(waiters_.size(), std::memory_order_relaxed);
  // The first one may have counted on this one's stream.
  ++changes_;
  ++attempt.seen_changes;
}

void DeviceMemoryPool::LeaveQueue(Attempt& attempt) {
  if (!attempt.is_queued) return;
  waiters_.remove(&attempt);
  attempt.is_queued = false;
  counters_.waiting.store(waiters_.size(), std::memory_order_relaxed);
}

bool DeviceMemoryPool::CanComeBack(const Attempt& attempt) const {
  if (device_calls_ > 0) return true;
  const auto waits = [this](aclrtStream stream) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::any_of(waiters_.begin(), waiters_.end(), [stream](const Attempt* waiter) {
      return waiter->allocation.stream == stream;
    });
  };
  return heap_.AnyStream([&](aclrtStream stream) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stream != attempt.allocation.stream && !waits(stream);
  });
}

void DeviceMemoryPool::WakeWaiters() {
  // Waiters check their conditions when the lock is released.
  absl::MutexLock lock(&mutex_);
}

}  // namespace opserve::server
