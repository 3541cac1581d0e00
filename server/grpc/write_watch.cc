#include "server/grpc/write_watch.h"

#include "absl/time/clock.h"

namespace opserve::server {

WriteWatch::WriteWatch(absl::Duration timeout)
    : timeout_(timeout), thread_([this] {
        // A look each eighth of the timeout: writes are ended at most so much late.
        while (!stop_.WaitForNotificationWithTimeout(timeout_ / 8)) {
          CancelOlderThan(absl::Now() - timeout_);
        }
      }) {}

WriteWatch::~WriteWatch() {
  stop_.Notify();
  thread_.join();
}

void WriteWatch::Add(Write* write) {
  absl::MutexLock lock(&mutex_);
  write->began_ = absl::Now();
  // Writes have one timeout, so the order of their beginnings is that of their ends.
  write->is_watched_ = true;
  write->older_ = newest_;
  (newest_ != nullptr ? newest_->newer_ : oldest_) = write;
  newest_ = write;
}

void WriteWatch::Remove(Write* write) {
  absl::MutexLock lock(&mutex_);
  if (write->is_watched_) Unlink(write);
}

void WriteWatch::Unlink(Write* write) {
  (write->older_ != nullptr ? write->older_->newer_ : oldest_) = write->newer_;
  (write->newer_ != nullptr ? write->newer_->older_ : newest_) = write->older_;
  write->older_ = write->newer_ = nullptr;
  write->is_watched_ = false;
}

void WriteWatch::CancelOlderThan(absl::Time time) {
  // With the lock held the call cannot end its write, so it is still there.
  absl::MutexLock lock(&mutex_);
  while (oldest_ != nullptr && oldest_->began_ < time) {
    oldest_->rpc_.TryCancel();
    cancelled_.fetch_add(1, std::memory_order_relaxed);
    Unlink(oldest_);
  }
}

}  // namespace opserve::server
