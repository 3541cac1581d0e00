// Real time, until the user presses Ctrl-C.
#pragma once

#include <csignal>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/bench/load_clock.h"

namespace opserve::cli {

// From construction to destruction the first SIGINT or SIGTERM ends all waiting, now and later; a
// second one ends the program, as it would have without this. Threads that are started in that time
// by the one that constructs it wake up within microseconds, not the kernel's usual 50 of them. One
// at a time in a process.
class InterruptibleClock final : public LoadClock {
 public:
  InterruptibleClock();
  ~InterruptibleClock() override;
  InterruptibleClock(const InterruptibleClock&) = delete;
  InterruptibleClock& operator=(const InterruptibleClock&) = delete;

  absl::Duration Now() override;
  bool WaitUntil(absl::Duration time) override;
  void Interrupt() override;

 private:
  struct OldAction {
    int signal;
    struct sigaction action;
  };

  const int interrupted_;  // an eventfd, readable from the first signal on
  const int old_timer_slack_ns_;
  std::vector<OldAction> old_actions_;
};

}  // namespace opserve::cli
