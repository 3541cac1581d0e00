#include "client/cli/bench/interruptible_clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace opserve::cli {
namespace {

// Read by the signal handler; written before it is installed.
std::atomic<int> interrupted_fd = -1;
static_assert(std::atomic<int>::is_always_lock_free);

// Safe in a signal handler.
void MakeReadable(int event) {
  const uint64_t one = 1;
  // It is readable already if this fails.
  [[maybe_unused]] const ssize_t written = write(event, &one, sizeof(one));
}

void HandleSignal(int /*signal*/) {
  // The interrupted thread may be about to read errno.
  const int old_errno = errno;
  MakeReadable(interrupted_fd);
  errno = old_errno;
}

// Without one there is no way to wait: the process has no file descriptors left.
int NewEvent() {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) std::abort();
  return event;
}

}  // namespace

InterruptibleClock::InterruptibleClock()
    : interrupted_(NewEvent()), old_timer_slack_ns_(prctl(PR_GET_TIMERSLACK)) {
  // Inherited by threads that are started later, which are the workers.
  prctl(PR_SET_TIMERSLACK, 1);
  interrupted_fd = interrupted_;
  for (const int signal : {SIGINT, SIGTERM}) {
    OldAction old{.signal = signal, .action = {}};
    sigaction(signal, nullptr, &old.action);
    // A process in the background of a script ignores SIGINT; that stays so.
    if (old.action.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = &HandleSignal;
    // The second signal finds the default action and ends the program.
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
    old_actions_.push_back(old);
  }
}

InterruptibleClock::~InterruptibleClock() {
  // In this order: no handler may write to the event once it is closed.
  for (const OldAction& old : old_actions_) sigaction(old.signal, &old.action, nullptr);
  prctl(PR_SET_TIMERSLACK, old_timer_slack_ns_);
  close(interrupted_);
}

absl::Duration InterruptibleClock::Now() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void InterruptibleClock::Interrupt() { MakeReadable(interrupted_); }

bool InterruptibleClock::WaitUntil(absl::Duration time) {
  for (;;) {
    const absl::Duration left = std::max(time - Now(), absl::ZeroDuration());
    const timespec timeout = absl::ToTimespec(left);
    pollfd event{.fd = interrupted_, .events = POLLIN, .revents = 0};
    if (ppoll(&event, 1, &timeout, nullptr) > 0) return false;
    // Time is up, and the poll above has looked for an interruption once more.
    if (left == absl::ZeroDuration()) return true;
  }
}

}  // namespace opserve::cli
