// The time by which a load generator goes.
#pragma once

#include "absl/time/time.h"

namespace opserve::cli {

// Thread-safe.
class LoadClock {
 public:
  virtual ~LoadClock() = default;

  // Time since some moment; never goes back.
  virtual absl::Duration Now() = 0;

  // Waits until Now() is `time`. False, and at once: it was interrupted, by the user or Interrupt.
  virtual bool WaitUntil(absl::Duration time) = 0;

  // Ends all waiting, now and later.
  virtual void Interrupt() = 0;
};

}  // namespace opserve::cli
