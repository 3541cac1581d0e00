// Runs the daemon's scheduling under a virtual clock, from the admission of requests to the return
// of broken devices, and checks at every step what must always hold.
//
// The classes are the daemon's own: tenants with their rates, the cost model, placement, the
// devices' queues with their zones, memory pools, the devices' health and their supervision.
// Simulated are the clock, the memory, the lanes' work and its faults. The simulation keeps its own
// account of every task, queue and byte, and compares. The same scenario gives the same run, to the
// last event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <ostream>
#include <queue>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/device/device_health.h"
#include "server/device/memory/memory_pool.h"
#include "server/identity/tenants.h"
#include "server/schedule/lanes/device_queue.h"
#include "server/schedule/lanes/supervision.h"
#include "server/schedule/policy/cost_model.h"
#include "tests/simulation/scenario.h"

namespace opserve::simulation {

struct Outcome {
  std::string violation;  // empty: everything held
  uint64_t log_hash = 0;
  // Tasks.
  uint64_t completed = 0;
  uint64_t broken_off = 0;  // by a breakdown, while they ran
  uint64_t expired = 0;
  uint64_t cancelled = 0;
  uint64_t refused = 0;       // by a queue, or for want of a device
  uint64_t not_admitted = 0;  // by a tenant's limits
  uint64_t infeasible = 0;    // of the refused: they could not have ended in time
  uint64_t not_offered = 0;   // of the refused: no device that was up offered the operator
  uint64_t moved = 0;         // to another device, perhaps several times
  uint64_t held_up = 0;       // on a lane, by the memory pool
  // Of devices.
  uint64_t resets = 0;
  uint64_t failed_attempts = 0;
  uint64_t failures = 0;  // calls that did not return
  // Scenario::keeps_shares: by how much of its share a tenant was farthest from it in ten seconds.
  double worst_window = 0;

  uint64_t requests() const {
    return completed + broken_off + expired + cancelled + refused + not_admitted;
  }
};

class Simulation {
 public:
  // `log`: every event, a line each; may be null.
  Simulation(const Scenario& scenario, std::ostream* log);
  ~Simulation();

  // Once.
  Outcome Run();

 private:
  class Device;
  enum class State { kNew, kWaiting, kRunning, kEnded };
  enum class EventKind {
    kArrival,
    kRequest,
    kCancel,
    kEnd,
    kAbort,   // of a task that hangs
    kReturn,  // of a call that was held
    kBreakdown,
    kLook,  // by a device's supervisor
    kUp,    // a device serves again
    kResume,
    kSample,
  };

  struct Task {
    uint32_t tenant = 0;
    uint32_t op = 0;
    State state = State::kNew;
    size_t device = 0;
    absl::Duration cost;
    server::TaskDemand demand;
    uint64_t message_bytes = 0;
    std::shared_ptr<server::CallState> call;  // until the task has ended
    absl::Time queued;
    absl::Time started;
    uint64_t end = 0;  // the event that ends it
  };
  struct Event {
    absl::Time time;
    uint64_t number;
    EventKind kind;
    uint64_t subject;  // tenant, task or device
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  using Lease = server::DeviceQueue::Lease;
  struct TenantAccount {
    size_t waiting = 0;
    size_t running = 0;
    uint64_t bytes = 0;
    absl::Duration used;        // lane time until the load ends
    absl::Duration work;        // of what waits and runs, as estimated
    absl::Duration known_time;  // of what waits, as far as it is certain
    // Since when it has been waiting without a start.
    absl::Time hungry_since = absl::InfiniteFuture();
    bool is_saturating = false;  // has had a backlog all the time
  };
  // A tenant's limits as the simulation counts them.
  struct AdmissionAccount {
    server::Tenant* tenant = nullptr;
    uint32_t pending = 0;
    double tokens = 0;
    absl::Time counted;  // when they were
  };

  uint64_t Schedule(absl::Time time, EventKind kind, uint64_t subject);
  void Handle(const Event& event);
  void HandleEndOf(const Event& event);

  void Cancel(uint64_t task);
  void Arrive(uint32_t tenant);
  void Request(uint32_t tenant);  // one more
  // If the tenant waits for answers before it sends more: it has one.
  void Answer(uint32_t tenant);
  uint64_t NewTask(uint32_t tenant);
  bool IsAdmitted(uint64_t task);
  // The device that is up, offers the task's operator and is best for its tenant; devices_.size():
  // none is.
  size_t Place(uint64_t task);
  void PushTo(size_t device, uint64_t task, std::unique_ptr<server::LaneTask> queued, State from);
  // If the tenant is a flood: it has a backlog again, unless the queue is full.
  void RefillFlood(size_t device, uint32_t tenant);
  // Starts what can start.
  void FillLanes(size_t device);
  void StartTask(size_t device, server::DeviceQueue::Dispatched started);
  // Those whose turn it is take their memory and go on.
  void BeginThoseThatWait(size_t device);
  void ScheduleEnd(size_t device, uint64_t task);
  void EndTask(size_t device, uint64_t task, absl::string_view how);
  void Expire(size_t device, const std::vector<std::unique_ptr<server::LaneTask>>& expired);

  // Faults.
  void BreakDown(size_t device);
  void MoveTasksFrom(size_t device, std::vector<std::unique_ptr<server::LaneTask>> tasks);
  void ScheduleLook(size_t device, absl::Time time);
  void Look(size_t device);
  void Resume(size_t device);

  // The simulation's own account.
  void Change(uint64_t task, State from, State to);
  void JoinQueue(size_t device, uint64_t task);
  void LeaveQueue(size_t device, uint64_t task);
  void TakeBytes(size_t device, uint32_t tenant, uint64_t bytes);
  void GiveBytes(size_t device, uint32_t tenant, uint64_t bytes);
  static absl::Duration WorkOf(const Task& task);
  static absl::Duration KnownTimeOf(const Task& task);

  void CheckAdmission(uint64_t task, const absl::Status& status);
  void CheckPush(size_t device, uint64_t task, const absl::Status& status);
  void CheckStep(size_t device);
  void CheckHasNoPlace(uint64_t task);
  void CheckIdleLanes(size_t device);
  void CheckWait(size_t device, uint32_t tenant);
  void CheckEnd();
  void CheckShares(size_t device);
  // What each tenant has had of all devices so far.
  void SampleShares();
  void CheckWindows();
  absl::Duration LongestWait(uint32_t tenant) const;

  void Log(absl::string_view what, uint64_t device, uint64_t subject);
  void Require(bool holds, absl::string_view what, uint64_t device, uint64_t subject);

  bool LoadLasts() const { return now_ < end_of_load_; }

  const Scenario scenario_;
  std::ostream* const log_;
  Random random_;
  absl::Time now_;
  absl::Time end_of_load_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t event_numbers_ = 0;
  std::unique_ptr<server::Tenants> tenants_;
  std::vector<AdmissionAccount> admissions_;  // by tenant
  server::CostModel costs_;
  const std::shared_ptr<server::PinnedZones> pinned_;
  std::vector<std::unique_ptr<Device>> devices_;
  size_t turn_ = 0;         // of devices that are equally good
  std::deque<Task> tasks_;  // references stay good
  uint64_t live_tasks_ = 0;
  std::vector<absl::Duration> longest_wait_;          // by tenant
  std::vector<std::vector<absl::Duration>> samples_;  // by kSampleInterval and tenant
  Outcome outcome_;
};

}  // namespace opserve::simulation
