// How slowly a client may send an upload: the daemon keeps device memory for it meanwhile.
//
// An upload has a credit of time, at most the stall timeout, from which its pauses are taken. The
// bytes of each message add the time they take at the least rate. So a client may pause for the
// whole timeout if it sends faster otherwise, and one that sends a byte now and then to look alive
// has used up its credit after one timeout. Only whole messages are seen here, so a message that is
// expected has the time it takes at the least rate beside the credit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace opserve::server {

// Not thread-safe. The caller measures only the time in which it waits for the client.
class UploadPace {
 public:
  // `bytes_per_second` is at least 1.
  UploadPace(absl::Duration stall_timeout, uint64_t bytes_per_second)
      : stall_timeout_(stall_timeout),
        bytes_per_second_(bytes_per_second),
        credit_(stall_timeout) {}

  // The caller waits from `now` on for a message of `bytes` bytes, which should be there by due().
  void WaitFor(uint64_t bytes, absl::Time now) {
    since_ = now;
    due_ = now + credit_ + TimeOf(bytes);
  }
  // It has come, with `bytes` bytes.
  void Arrived(uint64_t bytes, absl::Time now) {
    credit_ =
        std::clamp(credit_ + TimeOf(bytes) - (now - since_), absl::ZeroDuration(), stall_timeout_);
  }

  absl::Time due() const { return due_; }

 private:
  absl::Duration TimeOf(uint64_t bytes) const {
    return absl::Seconds(static_cast<double>(bytes) / static_cast<double>(bytes_per_second_));
  }

  const absl::Duration stall_timeout_;
  const uint64_t bytes_per_second_;
  absl::Duration credit_;
  absl::Time since_ = absl::InfinitePast();
  absl::Time due_ = absl::InfiniteFuture();
};

}  // namespace opserve::server
