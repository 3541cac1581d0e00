// A device of a simulation: the daemon's queue, memory pool, health and supervision around lanes
// and faults that are simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/simulation/simulated_acl.h"
#include "tests/simulation/simulated_task.h"
#include "tests/simulation/simulation.h"

namespace opserve::simulation {

class Simulation::Device final : public server::SupervisedDevice {
 public:
  Device(Simulation& simulation, size_t index);

  // SupervisedDevice.
  absl::Time Now() const override { return simulation.now_; }
  absl::Status Open() override { return absl::OkStatus(); }
  absl::Status Reset() override;
  absl::Status ProveItself(server::Fault* fault) override;
  bool HasWrongOperators() const override;
  absl::Status StartLanes() override;
  bool HasLanes() const override { return has_lanes; }
  absl::Time AllLanesHeldSince() const override;
  void StopWork() override;
  bool AwaitLanesEnd(absl::Duration timeout) override;
  void DropLanes() override { has_lanes = false; }
  void KeepHouse() override;
  void SampleMemory() override {}
  void SampleLoad() override {}

  bool IsUp() const { return health.state() == server::DeviceState::kReady; }

  struct Running {
    Lease lease;
    uint32_t lane = 0;
    server::DeviceBuffer memory = {};           // empty: it waits for it
    absl::Time begun = absl::InfiniteFuture();  // with its memory
  };

  Simulation& simulation;
  const size_t index;
  server::DeviceQueue queue;
  server::DeviceMemoryPool pool;
  server::DeviceHealth health;
  server::Supervision supervision;
  bool has_lanes = false;
  std::vector<bool> is_wrong;                // by operator
  std::optional<Breakdown> breakdown;        // until it is reset
  absl::Time look = absl::InfiniteFuture();  // the next by the supervisor
  // The supervisor's attempts to bring it back.
  absl::Time last_attempt = absl::InfinitePast();
  int64_t attempts_in_a_row = 0;  // that failed
  bool is_resumed = false;        // an administrator makes one
  // The simulation's own account.
  int64_t breakdowns = 0;
  bool was_slow = false;  // tasks took longer than they cost
  size_t waiting = 0;
  uint64_t booked = 0;    // by running tasks
  uint64_t promised = 0;  // sum over tenants of max(bytes, reserved)
  std::vector<TenantAccount> tenants;
  absl::btree_map<uint64_t, Running> running;  // by task
  std::deque<uint64_t> memory_line;            // of them, those that wait for memory
  std::vector<bool> is_lane_busy;
};

}  // namespace opserve::simulation
