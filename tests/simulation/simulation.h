// Runs the daemon's queues under a virtual clock and checks at every step what must always hold.
//
// The simulation keeps its own account of every task, queue and byte, and compares. The same
// scenario gives the same run, to the last event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <ostream>
#include <queue>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/scheduling/dispatch_queue.h"
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
  uint64_t refused = 0;
  uint64_t not_offered = 0;  // of the refused: no device that was up offered the operator
  uint64_t moved = 0;        // to another device, perhaps several times
  // Scenario::keeps_shares: by how much of its share a tenant was farthest from it in ten seconds.
  double worst_window = 0;
};

class Simulation {
 public:
  // `log`: every event, a line each; may be null.
  Simulation(const Scenario& scenario, std::ostream* log);

  // Once.
  Outcome Run();

 private:
  enum class State { kNew, kWaiting, kRunning, kEnded };
  enum class EventKind { kArrival, kRequest, kCancel, kEnd, kBreakdown, kRecovery, kSample };

  struct Task {
    uint32_t tenant = 0;
    uint32_t op = 0;
    State state = State::kNew;
    size_t device = 0;
    absl::Duration cost;
    absl::Duration estimate;
    absl::Time deadline;
    uint64_t bytes = 0;
    absl::Time started;
  };
  struct Event {
    absl::Time time;
    uint64_t number;
    EventKind kind;
    uint64_t subject;     // tenant, task or device
    uint64_t generation;  // kEnd: of the device when the task started
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  using Queue = server::DispatchQueue<uint64_t>;  // of tasks
  struct TenantAccount {
    size_t waiting = 0;
    size_t running = 0;
    uint64_t bytes = 0;
    absl::Duration used;  // lane time until the load ends
    absl::Duration work;  // of what waits and runs, as estimated
    // Since when it has been waiting without a start.
    absl::Time hungry_since = absl::InfiniteFuture();
    bool is_saturating = false;  // has had a backlog all the time
  };
  struct Device {
    std::unique_ptr<Queue> queue;
    bool is_up = true;
    std::vector<bool> is_wrong;  // by operator
    uint64_t generation = 0;
    int64_t breakdowns = 0;
    size_t waiting = 0;
    uint64_t promised = 0;  // sum over tenants of max(bytes, reserved)
    std::vector<TenantAccount> tenants;
    absl::btree_map<uint64_t, Queue::Lease> running;  // by task
  };

  void Schedule(absl::Time time, EventKind kind, uint64_t subject, uint64_t generation = 0);
  void Handle(const Event& event);

  void Arrive(uint32_t tenant);
  void Request(uint32_t tenant);  // one more
  // If the tenant waits for answers before it sends more: it has one.
  void Answer(uint32_t tenant);
  uint64_t NewTask(uint32_t tenant);
  // The device that is up, offers the task's operator and is best for its tenant; devices_.size():
  // none is.
  size_t Place(uint64_t task) const;
  void DrawWrongOperators(size_t device);
  void PushTo(size_t device, uint64_t task, State from);
  // If the tenant is a flood: it has a backlog again, unless the queue is full.
  void RefillFlood(size_t device, uint32_t tenant);
  // Starts what can start.
  void FillLanes(size_t device);
  void StartTask(size_t device, Queue::Started started);
  void EndTask(size_t device, uint64_t task, absl::string_view how);
  void BreakDown(size_t device);
  void Recover(size_t device);

  // The simulation's own account.
  void Change(uint64_t task, State from, State to);
  void LeaveQueue(size_t device, uint64_t task);
  void TakeBytes(size_t device, uint32_t tenant, uint64_t bytes);
  void GiveBytes(size_t device, uint32_t tenant, uint64_t bytes);

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
  std::vector<Device> devices_;
  std::deque<Task> tasks_;                            // references stay good
  std::vector<absl::Duration> longest_wait_;          // by tenant
  std::vector<std::vector<absl::Duration>> samples_;  // by kSampleInterval and tenant
  Outcome outcome_;
};

}  // namespace opserve::simulation
