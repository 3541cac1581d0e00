// Keeps count of calls, so that a server ends only when they have.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/grpc/write_watch.h"

namespace opserve::server {

// Thread-safe, and without a lock: there are several for each call.
class CallCounter {
 public:
  void Add() { count_.fetch_add(1); }
  // Adds one unless `flag` is set; whether it did. A thread that sets the flag and then waits sees
  // every call that was added.
  bool AddUnless(const std::atomic<bool>& flag) {
    count_.fetch_add(1);
    // Of this thread and the one that sets the flag, one sees what the other has done.
    if (!flag.load()) return true;
    count_.fetch_sub(1);
    return false;
  }
  void Remove() { count_.fetch_sub(1); }

  // Waits until there are none, at most for `timeout`; returns how many are left. It looks now and
  // then: whoever removes the last one could not tell a counter that is gone by then.
  int64_t AwaitNone(absl::Duration timeout) const {
    const absl::Time deadline = absl::Now() + timeout;
    int64_t count = 0;
    // Once there were none, a look that is not zero is AddUnless's, which takes it back.
    while ((count = count_.load()) > 0 && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return count;
  }

 private:
  std::atomic<int64_t> count_ = 0;
};

// Every call object of a server, the ones that still wait for a call included. A completion queue
// may be shut down only when none is left that could start an operation on it.
struct ServerCalls {
  ServerCalls(uint64_t max_message_bytes, uint64_t max_header_bytes,
              absl::Duration write_stall_timeout)
      : max_message_bytes(max_message_bytes),
        max_header_bytes(max_header_bytes),
        writes(write_stall_timeout) {}

  const uint64_t max_message_bytes;  // of a request
  const uint64_t max_header_bytes;   // of these, beside payloads

  // While true, each call that arrives leaves a new one waiting.
  std::atomic<bool> accepts_more = true;
  CallCounter alive;
  CallCounter open;   // those of them that have arrived
  WriteWatch writes;  // of all of them
};

}  // namespace opserve::server
