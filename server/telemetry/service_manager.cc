#include "server/telemetry/service_manager.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <utility>

#include "server/observability/log.h"

namespace opserve::server {
namespace {

constexpr int kKeepEnvironment = 0;

}  // namespace

ServiceManager::ServiceManager(IsAlive is_alive) : is_alive_(std::move(is_alive)) {
  // Without systemd this does nothing.
  sd_notify(kKeepEnvironment, "READY=1");
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(kKeepEnvironment, &microseconds) <= 0) return;
  watch_ =
      std::thread([this, interval = absl::Microseconds(microseconds) / 2] { Watch(interval); });
}

ServiceManager::~ServiceManager() {
  {
    absl::MutexLock lock(&mutex_);
    is_over_ = true;
  }
  if (watch_.joinable()) watch_.join();
}

void ServiceManager::TellStopping() { sd_notify(kKeepEnvironment, "STOPPING=1"); }

void ServiceManager::Watch(absl::Duration interval) {
  for (;;) {
    // A slow answer still comes before the time is up: half of it for waiting, half for asking.
    if (is_alive_(interval / 2)) {
      sd_notify(kKeepEnvironment, "WATCHDOG=1");
    } else {
      LogError("watchdog", {{"problem", "a polling thread does not answer"}});
    }
    // Also after a failure: the next answer may come, and systemd decides.
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&is_over_), interval)) return;
  }
}

}  // namespace opserve::server
