// A daemon inside the test program, reached over a real socket, with the host CANN's fault
// injection and counters at hand.
#pragma once

#include <memory>
#include <string>

#include "client/cpp/client.h"
#include "server/config/config.h"
#include "server/daemon.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {

class InProcessDaemon {
 public:
  // Two devices of 64 MiB with two lanes each, on a Unix socket in a directory of its own. Change
  // `config` to serve otherwise. Aborts the test program if the daemon does not start.
  static Config DefaultConfig();
  // The same with one lane on one device, so that what is queued waits for what runs.
  static Config OneLane();
  explicit InProcessDaemon(const Config& config = DefaultConfig());
  ~InProcessDaemon();

  // Repeats no call, so that tests see what the daemon answers to each.
  Client& client() { return *client_; }
  const std::string& target() const { return target_; }

  // What requests hold while they run, and resident tensors while they live: 0 when the daemon is
  // at rest, whatever happened before. Counts descriptors and executors beyond those of the plan
  // caches, and bytes lent by the device pools.
  int64_t HeldByRequests();

  // Waits until every device is ready, bringing those back that are not. Aborts the test program if
  // one does not become so.
  void AwaitReady();

  // Drains a device, for 100 ms at most, and has it serve again, in 5 seconds at most. In vain
  // where it is broken.
  void DrainAndResume(int32_t device);

  // Ends the leases of all resident tensors.
  void EndLeases();

  Daemon& daemon() const { return *daemon_; }

 private:
  std::string target_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
};

}  // namespace opserve::server
