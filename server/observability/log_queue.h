// Lines on their way to standard error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opserve::server {

// Written by a thread of its own, in their order. Thread-safe. Has no end: its thread runs as long
// as the process.
class LogQueue {
 public:
  // Beyond `max_bytes` of waiting lines the oldest are lost.
  explicit LogQueue(size_t max_bytes)
      : max_bytes_(max_bytes), thread_(&LogQueue::WriteLines, this) {}
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // `line`: without its end. Does not wait.
  void Push(std::string line) ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until nothing is left to write, at most for `timeout`.
  void Flush(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // Take no lock.
  uint64_t dropped() const { return dropped_; }  // lines lost so far
  size_t bytes() const { return bytes_; }        // memory of those that wait

 private:
  [[noreturn]] void WriteLines() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasLines() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !lines_.empty(); }
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return lines_.empty() && !is_writing_; }
  // Takes the oldest line.
  std::string Pop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_bytes_;
  absl::Mutex mutex_;
  std::deque<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  // Written with mutex_ held.
  std::atomic<size_t> bytes_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses the others
};

}  // namespace opserve::server
