// Reports the daemon's state to systemd, where systemd started it.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace opserve::server {

// Without systemd (NOTIFY_SOCKET and WATCHDOG_USEC are not set) it does nothing. Thread-safe.
class ServiceManager {
 public:
  // Whether the daemon still works, found out within the time given.
  using IsAlive = std::function<bool(absl::Duration timeout)>;

  // Says that the daemon serves. If systemd wants signs of life (WatchdogSec=), a thread asks
  // `is_alive` twice in that time from now on and passes on when it is true; systemd ends a daemon
  // of which it hears nothing.
  explicit ServiceManager(IsAlive is_alive);

  // Ends the thread; objects that `is_alive` uses have to live until then.
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Says that the daemon has begun to end.
  void TellStopping();

 private:
  void Watch(absl::Duration interval) ABSL_LOCKS_EXCLUDED(mutex_);

  const IsAlive is_alive_;
  absl::Mutex mutex_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watch_;  // not joinable: systemd wants no signs of life
};

}  // namespace opserve::server
