#include "tests/simulation/simulated_device.h"

#include <algorithm>
#include <random>
#include <utility>

namespace opserve::simulation {
namespace {

constexpr double kAttemptFails = 0.4;
constexpr double kResumeShare = 0.3;
// At most, until the supervisor's thread looks.
constexpr absl::Duration kWakeTime = absl::Milliseconds(5);
constexpr absl::Duration kExecutionTimeout = absl::Milliseconds(200);
constexpr absl::Duration kHoldGrace = absl::Milliseconds(100);
constexpr absl::Duration kFirstRecoveryWait = absl::Milliseconds(50);
constexpr absl::Duration kLongestRecoveryWait = absl::Milliseconds(400);
// Mean time until a call returns that was held, beyond the time in which the supervisor acts.
constexpr absl::Duration kHeld = absl::Seconds(3);

}  // namespace

Simulation::Device::Device(Simulation& owner, size_t device_index)
    : simulation(owner),
      index(device_index),
      queue({.fairness = {.capacity = owner.scenario_.capacity,
                          .capacity_per_tenant = owner.scenario_.capacity_per_tenant,
                          .lanes = owner.scenario_.lanes,
                          .random = std::mt19937_64(owner.scenario_.seed)},
             .device_bytes = owner.scenario_.device_bytes,
             .max_age = owner.scenario_.queue_max_age},
            owner.pinned_),
      pool(SimulatedAcl(), {.max_bytes = owner.scenario_.device_bytes,
                            .floor_bytes = owner.scenario_.device_bytes / 4,
                            .region_bytes = owner.scenario_.device_bytes / 16,
                            .decay = absl::Milliseconds(200)}),
      health(static_cast<int32_t>(device_index)),
      supervision(*this, health,
                  {.lanes = owner.scenario_.lanes,
                   .execution_timeout = kExecutionTimeout,
                   .hold_grace = kHoldGrace,
                   .park_timeout = absl::ZeroDuration(),
                   .first_recovery_wait = kFirstRecoveryWait,
                   .longest_recovery_wait = kLongestRecoveryWait}),
      is_wrong(owner.scenario_.operators, false),
      tenants(owner.scenario_.tenants.size()),
      is_lane_busy(owner.scenario_.lanes, false) {
  health.OnStateChange([this] {
    simulation.Log(server::DeviceStateName(health.state()), index, simulation.tasks_.size());
    if (IsUp()) simulation.Schedule(simulation.now_, EventKind::kUp, index);
    simulation.outcome_.failures += health.state() == server::DeviceState::kFailed;
    Random& random = simulation.random_;
    if (health.state() == server::DeviceState::kQuarantined && random.Happens(kResumeShare) &&
        simulation.scenario_.has_hasty_administrator) {
      simulation.Schedule(simulation.now_ + random.Unit() * kWakeTime, EventKind::kResume, index);
    }
    simulation.ScheduleLook(index, simulation.now_ + random.Unit() * kWakeTime);
  });
}

absl::Status Simulation::Device::Reset() {
  simulation.Require(running.empty() && !has_lanes, "reset under a call on it", index, 0);
  simulation.Require(queue.depth() == 0, "reset with a queue", index, 0);
  const absl::Duration since = simulation.now_ - last_attempt;
  if (attempts_in_a_row > 0 && !is_resumed) {
    absl::Duration wait = kFirstRecoveryWait;
    for (int64_t i = 1; i < attempts_in_a_row; ++i) wait *= 2;
    wait = std::min(wait, kLongestRecoveryWait);
    simulation.Require(since >= wait, "tried again too early", index, 0);
    simulation.Require(since <= kLongestRecoveryWait + kWakeTime, "tried again too late", index, 0);
  }
  last_attempt = simulation.now_;
  pool.ForgetAll();
  health.ForgetFaults();
  breakdown.reset();
  ++simulation.outcome_.resets;
  simulation.Log("reset", index, 0);
  return absl::OkStatus();
}

absl::Status Simulation::Device::ProveItself(server::Fault* fault) {
  const bool is_back = last_attempt == simulation.now_;
  if (is_back && simulation.random_.Happens(kAttemptFails)) {
    ++attempts_in_a_row;
    ++simulation.outcome_.failed_attempts;
    *fault = server::Fault::kSelfCheck;
    return absl::InternalError("a golden value differs");
  }
  attempts_in_a_row = 0;
  if (simulation.scenario_.wrong_share > 0) {
    for (uint32_t op = 0; op < simulation.scenario_.operators; ++op) {
      is_wrong[op] = simulation.random_.Happens(simulation.scenario_.wrong_share);
    }
  }
  return absl::OkStatus();
}

bool Simulation::Device::HasWrongOperators() const {
  return std::find(is_wrong.begin(), is_wrong.end(), true) != is_wrong.end();
}

absl::Status Simulation::Device::StartLanes() {
  queue.Open();
  has_lanes = true;
  return absl::OkStatus();
}

absl::Time Simulation::Device::AllLanesHeldSince() const {
  if (running.size() < simulation.scenario_.lanes) return absl::InfiniteFuture();
  absl::Time last = absl::InfinitePast();
  for (const auto& [task, run] : running) last = std::max(last, run.begun);
  return last;
}

void Simulation::Device::StopWork() {
  std::vector<std::unique_ptr<server::LaneTask>> tasks = queue.Pause();
  simulation.Require(tasks.size() == waiting, "not all was taken", index, 0);
  for (const auto& task : tasks) simulation.LeaveQueue(index, NumberOf(task));
  // A task that waits for memory makes no call.
  while (!memory_line.empty()) {
    simulation.EndTask(index, memory_line.front(), "broken off");
    ++simulation.outcome_.broken_off;
  }
  while (!running.empty() && breakdown != Breakdown::kDead) {
    simulation.EndTask(index, running.begin()->first, "broken off");
    ++simulation.outcome_.broken_off;
  }
  simulation.MoveTasksFrom(index, std::move(tasks));
}

bool Simulation::Device::AwaitLanesEnd(absl::Duration) { return running.empty(); }

void Simulation::Device::KeepHouse() {
  pool.TrimDecayed(simulation.now_);
  const auto expired = queue.TakeExpired(simulation.now_);
  simulation.Expire(index, expired);
  for (const auto& task : expired) {
    simulation.RefillFlood(index, simulation.tasks_[NumberOf(task)].tenant);
  }
  queue.SampleLags();
}

void Simulation::BreakDown(size_t d) {
  Device& device = *devices_[d];
  if (!device.IsUp() || device.breakdown) return;
  const Breakdown kind = scenario_.has_all_breakdowns
                             ? static_cast<Breakdown>(random_.Between(0, kBreakdownKinds - 1))
                             : Breakdown::kLost;
  device.breakdown = kind;
  ++device.breakdowns;
  Log("broke down", d, static_cast<uint64_t>(kind));
  if (kind == Breakdown::kLost) {
    device.health.Quarantine(server::Fault::kDevice, "lost");
    return;
  }
  device.was_slow = true;
  for (const auto& [task, run] : device.running) {
    if (run.memory.size() > 0) ScheduleEnd(d, task);
  }
}

void Simulation::ScheduleEnd(size_t d, uint64_t number) {
  const Device& device = *devices_[d];
  Task& task = tasks_[number];
  if (!device.breakdown) {
    task.end = Schedule(now_ + task.cost, EventKind::kEnd, number);
  } else if (*device.breakdown == Breakdown::kHang) {
    task.end = Schedule(now_ + kExecutionTimeout, EventKind::kAbort, number);
  } else {
    task.end =
        Schedule(now_ + kExecutionTimeout + random_.Exponential(kHeld), EventKind::kReturn, number);
  }
}

void Simulation::HandleEndOf(const Event& event) {
  const uint64_t number = event.subject;
  const size_t d = tasks_[number].device;
  Device& device = *devices_[d];
  if (tasks_[number].state != State::kRunning || tasks_[number].end != event.number) return;
  if (event.kind == EventKind::kEnd) {
    EndTask(d, number, "ended");
    const Task& task = tasks_[number];
    costs_.Record(task.op, 0, task.demand.work, now_ - task.started);
    device.health.NoteSuccess();
    ++outcome_.completed;
    Answer(task.tenant);
  } else {
    EndTask(d, number, "broken off");
    ++outcome_.broken_off;
    if (event.kind == EventKind::kAbort) {
      device.health.NoteTaskFault(server::Fault::kTimeout, "hangs");
    }
  }
  FillLanes(d);
}

void Simulation::MoveTasksFrom(size_t d, std::vector<std::unique_ptr<server::LaneTask>> tasks) {
  for (std::unique_ptr<server::LaneTask>& task : tasks) {
    const uint64_t number = NumberOf(task);
    const size_t other = Place(number);
    PushTo(other, number, std::move(task), State::kWaiting);
    ++outcome_.moved;
    if (other < devices_.size()) FillLanes(other);
  }
  CheckStep(d);
}

void Simulation::ScheduleLook(size_t d, absl::Time time) {
  time = std::max(time, now_);
  if (time >= devices_[d]->look) return;
  devices_[d]->look = time;
  Schedule(time, EventKind::kLook, d);
}

void Simulation::Look(size_t d) {
  Device& device = *devices_[d];
  if (device.look != now_) return;  // there was another one
  device.look = absl::InfiniteFuture();
  device.supervision.Look();
  CheckStep(d);
  const bool is_idle = !LoadLasts() && live_tasks_ == 0;
  if (is_idle && device.IsUp()) return;
  const absl::Time next = device.supervision.NextLook();
  // What is due at once comes a moment later, as commands may come in between.
  ScheduleLook(d, next > now_ ? next : now_ + random_.Unit() * kWakeTime);
}

void Simulation::Resume(size_t d) {
  Device& device = *devices_[d];
  if (device.health.state() != server::DeviceState::kQuarantined) return;
  device.is_resumed = true;
  device.supervision.Resume().IgnoreError();
  device.is_resumed = false;
  ScheduleLook(d, now_);
}

}  // namespace opserve::simulation
