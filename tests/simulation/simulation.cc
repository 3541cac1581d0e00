#include "tests/simulation/simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduling/placement.h"

namespace opserve::simulation {
namespace {

constexpr absl::Duration kRepair = absl::Milliseconds(200);  // mean
constexpr uint64_t kNobody = UINT64_MAX;
constexpr absl::Duration kSampleInterval = absl::Milliseconds(500);

const void* KeyOf(uint64_t task) { return reinterpret_cast<const void*>(task + 1); }

// FNV-1a, of 64 bits at a time.
constexpr uint64_t kHashStart = 14695981039346656037u;
uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 1099511628211u;
  return hash ^ (hash >> 32);  // the high bits change the low ones as well
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, std::ostream* log)
    : scenario_(scenario),
      log_(log),
      random_(scenario.seed ^ 0x9e3779b97f4a7c15),
      now_(absl::FromUnixSeconds(1'000'000)),
      end_of_load_(now_ + scenario.duration),
      devices_(scenario.devices) {
  outcome_.log_hash = kHashStart;
  for (uint32_t t = 0; t < scenario.tenants.size(); ++t) longest_wait_.push_back(LongestWait(t));
  for (size_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    device.queue = std::make_unique<Queue>(
        server::FairQueueOptions{.capacity = scenario.capacity,
                                 .capacity_per_tenant = scenario.capacity_per_tenant,
                                 .lanes = scenario.lanes,
                                 .random = std::mt19937_64(scenario.seed)},
        scenario.device_bytes);
    device.tenants.resize(scenario.tenants.size());
    DrawWrongOperators(d);
    for (uint32_t t = 0; t < scenario.tenants.size(); ++t) {
      const TenantPlan& plan = scenario.tenants[t];
      Require(device.queue->SetTenant(t, plan.weight, plan.limits).ok(), "set tenant", d, t);
      device.promised += plan.limits.reserved;
      device.tenants[t].is_saturating = plan.load == Load::kFlood;
    }
  }
}

void Simulation::Log(absl::string_view what, uint64_t device, uint64_t subject) {
  const int64_t time = absl::ToUnixNanos(now_);
  // Millions of events: no text is made of them unless it is read.
  for (const uint64_t number : {static_cast<uint64_t>(time), device, subject}) {
    outcome_.log_hash = Mix(outcome_.log_hash, number);
  }
  for (const char c : what) outcome_.log_hash = Mix(outcome_.log_hash, static_cast<uint8_t>(c));
  if (log_ != nullptr) {
    *log_ << absl::StrCat(time, " ", what, " device ", device, " subject ", subject) << '\n';
  }
}

void Simulation::Require(bool holds, absl::string_view what, uint64_t device, uint64_t subject) {
  if (holds || !outcome_.violation.empty()) return;
  outcome_.violation =
      absl::StrCat(what, " (device ", device, ", tenant or task ", subject, ", ",
                   absl::FormatDuration(now_ - (end_of_load_ - scenario_.duration)), " in)");
}

void Simulation::Schedule(absl::Time time, EventKind kind, uint64_t subject, uint64_t generation) {
  events_.push({time, ++event_numbers_, kind, subject, generation});
}

Outcome Simulation::Run() {
  for (uint32_t t = 0; t < scenario_.tenants.size(); ++t) {
    if (scenario_.tenants[t].load == Load::kFlood) {
      for (size_t d = 0; d < devices_.size(); ++d) RefillFlood(d, t);
    } else if (scenario_.tenants[t].load == Load::kClosed) {
      for (int64_t i = 0; i < scenario_.tenants[t].burst; ++i) Answer(t);
    } else {
      Schedule(now_ + random_.Exponential(scenario_.tenants[t].interval), EventKind::kArrival, t);
    }
  }
  for (int64_t i = 0; i < scenario_.breakdowns; ++i) {
    Schedule(now_ + random_.Unit() * scenario_.duration, EventKind::kBreakdown,
             random_.Between(0, static_cast<int64_t>(devices_.size()) - 1));
  }
  for (size_t d = 0; d < devices_.size(); ++d) FillLanes(d);
  if (scenario_.keeps_shares) Schedule(now_, EventKind::kSample, 0);
  while (!events_.empty() && outcome_.violation.empty()) {
    const Event event = events_.top();
    events_.pop();
    Require(event.time >= now_, "time goes back", 0, 0);
    now_ = event.time;
    Handle(event);
  }
  if (outcome_.violation.empty()) CheckEnd();
  return outcome_;
}

void Simulation::Handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kArrival:
      if (LoadLasts()) Arrive(static_cast<uint32_t>(event.subject));
      return;
    case EventKind::kRequest:
      if (LoadLasts()) Request(static_cast<uint32_t>(event.subject));
      return;
    case EventKind::kSample:
      SampleShares();
      if (LoadLasts()) Schedule(now_ + kSampleInterval, EventKind::kSample, 0);
      return;
    case EventKind::kCancel: {
      const Task& task = tasks_[event.subject];
      std::optional<Queue::Entry> entry = devices_[task.device].queue->Remove(KeyOf(event.subject));
      Require(entry.has_value() == (task.state == State::kWaiting),
              "a task can be removed if and only if it waits", task.device, event.subject);
      if (!entry) return;
      Require(entry->payload == event.subject, "another task was removed", task.device,
              event.subject);
      LeaveQueue(task.device, event.subject);
      Change(event.subject, State::kWaiting, State::kEnded);
      Log("cancelled", task.device, event.subject);
      ++outcome_.cancelled;
      RefillFlood(task.device, task.tenant);
      FillLanes(task.device);
      return;
    }
    case EventKind::kEnd: {
      const size_t device = tasks_[event.subject].device;
      if (devices_[device].generation != event.generation) return;  // broken off
      EndTask(device, event.subject, "ended");
      ++outcome_.completed;
      Answer(tasks_[event.subject].tenant);
      FillLanes(device);
      return;
    }
    case EventKind::kBreakdown:
      BreakDown(event.subject);
      return;
    case EventKind::kRecovery:
      Recover(event.subject);
      return;
  }
}

void Simulation::Arrive(uint32_t tenant) {
  const TenantPlan& plan = scenario_.tenants[tenant];
  for (int64_t i = 0; i < plan.burst; ++i) Request(tenant);
  Schedule(now_ + random_.Exponential(plan.interval), EventKind::kArrival, tenant);
}

void Simulation::Request(uint32_t tenant) {
  const uint64_t task = NewTask(tenant);
  const size_t device = Place(task);
  PushTo(device, task, State::kNew);
  if (device < devices_.size()) FillLanes(device);
}

void Simulation::Answer(uint32_t tenant) {
  const TenantPlan& plan = scenario_.tenants[tenant];
  if (plan.load != Load::kClosed) return;
  Schedule(now_ + random_.Exponential(plan.interval), EventKind::kRequest, tenant);
}

uint64_t Simulation::NewTask(uint32_t tenant) {
  const TenantPlan& plan = scenario_.tenants[tenant];
  Task task;
  task.tenant = tenant;
  if (scenario_.wrong_share > 0) {
    task.op = static_cast<uint32_t>(random_.Between(0, scenario_.operators - 1));
  }
  task.cost = random_.Pareto(plan.least_cost, plan.most_cost, plan.tail);
  task.estimate = task.cost * random_.Factor(plan.estimate_error);
  task.deadline = random_.Happens(plan.deadline_share) ? now_ + random_.Exponential(plan.patience)
                                                       : absl::InfiniteFuture();
  task.bytes = static_cast<uint64_t>(random_.Between(static_cast<int64_t>(plan.least_bytes),
                                                     static_cast<int64_t>(plan.most_bytes)));
  tasks_.push_back(task);
  const uint64_t number = tasks_.size() - 1;
  if (random_.Happens(plan.cancel_share)) {
    Schedule(now_ + random_.Exponential(plan.patience), EventKind::kCancel, number);
  }
  return number;
}

void Simulation::DrawWrongOperators(size_t d) {
  std::vector<bool>& is_wrong = devices_[d].is_wrong;
  is_wrong.assign(scenario_.operators, false);
  if (scenario_.wrong_share == 0) return;
  for (uint32_t op = 0; op < scenario_.operators; ++op) {
    is_wrong[op] = random_.Happens(scenario_.wrong_share);
  }
}

size_t Simulation::Place(uint64_t number) const {
  const Task& task = tasks_[number];
  size_t best = devices_.size();
  server::DeviceLoad best_load;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = devices_[d];
    if (!device.is_up) continue;
    const server::DeviceLoad load{.offers = !device.is_wrong[task.op],
                                  .lanes = scenario_.lanes,
                                  .queued = device.waiting,
                                  .executing = device.running.size(),
                                  .own = device.tenants[task.tenant].work};
    if (best == devices_.size() || server::IsBetterPlace(load, best_load)) {
      best = d;
      best_load = load;
    }
  }
  return best_load.offers ? best : devices_.size();
}

void Simulation::PushTo(size_t d, uint64_t number, State from) {
  Task& task = tasks_[number];
  if (d == devices_.size()) {
    Change(number, from, State::kEnded);
    Log("refused: no device", d, number);
    ++outcome_.refused;
    CheckHasNoPlace(number);
    return;
  }
  Device& device = devices_[d];
  Queue::Entry entry{.payload = number,
                     .key = KeyOf(number),
                     .tenant = task.tenant,
                     .priority = static_cast<server::Priority>(random_.Between(0, 2)),
                     .deadline = task.deadline,
                     .estimate = task.estimate,
                     .device_bytes = task.bytes};
  TenantAccount& tenant = device.tenants[task.tenant];
  const bool has_room =
      device.waiting < scenario_.capacity && tenant.waiting < scenario_.capacity_per_tenant;
  const absl::Status status = device.queue->Push(&entry, now_);
  Require(status.ok() == has_room, "a task is taken if and only if there is room", d, number);
  if (!status.ok()) {
    Change(number, from, State::kEnded);
    Log("refused", d, number);
    ++outcome_.refused;
    return;
  }
  Change(number, from, State::kWaiting);
  task.device = d;
  ++device.waiting;
  if (++tenant.waiting == 1) tenant.hungry_since = now_;
  tenant.work += task.estimate;
  Log("queued", d, number);
  CheckStep(d);
}

void Simulation::RefillFlood(size_t d, uint32_t tenant) {
  if (scenario_.tenants[tenant].load != Load::kFlood || !LoadLasts()) return;
  // A few more than can start before the next look.
  const size_t backlog = std::min<size_t>(scenario_.capacity_per_tenant, scenario_.lanes + 2);
  Device& device = devices_[d];
  while (device.is_up && device.tenants[tenant].waiting < backlog &&
         device.waiting < scenario_.capacity) {
    PushTo(d, NewTask(tenant), State::kNew);
  }
  if (device.is_up && device.tenants[tenant].waiting == 0) {
    device.tenants[tenant].is_saturating = false;
  }
}

void Simulation::FillLanes(size_t d) {
  Device& device = devices_[d];
  if (!device.is_up) return;
  while (device.running.size() < scenario_.lanes) {
    Queue::Popped popped = device.queue->Pop(now_);
    for (const Queue::Entry& entry : popped.expired) {
      Require(entry.deadline <= now_, "expired too early", d, entry.payload);
      LeaveQueue(d, entry.payload);
      Change(entry.payload, State::kWaiting, State::kEnded);
      Log("expired", d, entry.payload);
      ++outcome_.expired;
    }
    const bool is_started = popped.started.has_value();
    if (is_started) {
      const uint32_t tenant = popped.started->entry.tenant;
      StartTask(d, std::move(*popped.started));
      RefillFlood(d, tenant);
    }
    for (const Queue::Entry& entry : popped.expired) RefillFlood(d, entry.tenant);
    if (!is_started && popped.expired.empty()) break;
  }
  CheckIdleLanes(d);
}

void Simulation::StartTask(size_t d, Queue::Started started) {
  const uint64_t number = started.entry.payload;
  Task& task = tasks_[number];
  Require(task.device == d, "started on another device", d, number);
  Require(task.deadline > now_, "started after its deadline", d, number);
  Require(!devices_[d].is_wrong[task.op], "started where its operator is wrong", d, number);
  CheckWait(d, task.tenant);
  LeaveQueue(d, number);
  Change(number, State::kWaiting, State::kRunning);
  TenantAccount& tenant = devices_[d].tenants[task.tenant];
  if (tenant.waiting > 0) tenant.hungry_since = now_;
  ++tenant.running;
  tenant.work += task.estimate;  // until it ends; LeaveQueue took it from what waits
  TakeBytes(d, task.tenant, task.bytes);
  task.started = now_;
  devices_[d].running.emplace(number, started.lease);
  Log("started", d, number);
  Schedule(now_ + task.cost, EventKind::kEnd, number, devices_[d].generation);
  CheckStep(d);
}

void Simulation::EndTask(size_t d, uint64_t number, absl::string_view how) {
  Device& device = devices_[d];
  const Task& task = tasks_[number];
  Change(number, State::kRunning, State::kEnded);
  TenantAccount& tenant = device.tenants[task.tenant];
  --tenant.running;
  tenant.work -= task.estimate;
  tenant.used += std::max(absl::ZeroDuration(), std::min(now_, end_of_load_) - task.started);
  GiveBytes(d, task.tenant, task.bytes);
  const auto lease = device.running.find(number);
  device.queue->Ended(lease->second, now_ - task.started);
  device.running.erase(lease);
  Log(how, d, number);
  CheckStep(d);
}

void Simulation::BreakDown(size_t d) {
  Device& device = devices_[d];
  if (!device.is_up) return;
  device.is_up = false;
  ++device.generation;
  ++device.breakdowns;
  Log("broke down", d, kNobody);
  while (!device.running.empty()) {
    EndTask(d, device.running.begin()->first, "broken off");
    ++outcome_.broken_off;
  }
  const std::vector<Queue::Entry> entries = device.queue->TakeAll();
  Require(entries.size() == device.waiting, "not all was taken", d, kNobody);
  for (const Queue::Entry& entry : entries) LeaveQueue(d, entry.payload);
  for (const Queue::Entry& entry : entries) {
    const size_t other = Place(entry.payload);
    PushTo(other, entry.payload, State::kWaiting);
    ++outcome_.moved;
    if (other < devices_.size()) FillLanes(other);
  }
  CheckStep(d);
  Schedule(now_ + random_.Exponential(kRepair), EventKind::kRecovery, d);
}

void Simulation::Recover(size_t d) {
  devices_[d].is_up = true;
  DrawWrongOperators(d);
  Log("recovered", d, kNobody);
  for (uint32_t t = 0; t < scenario_.tenants.size(); ++t) {
    RefillFlood(d, t);
  }
  FillLanes(d);
}

void Simulation::Change(uint64_t task, State from, State to) {
  Require(tasks_[task].state == from, "a task is lost or doubled", tasks_[task].device, task);
  tasks_[task].state = to;
}

void Simulation::LeaveQueue(size_t d, uint64_t task) {
  Device& device = devices_[d];
  TenantAccount& tenant = device.tenants[tasks_[task].tenant];
  --device.waiting;
  tenant.work -= tasks_[task].estimate;
  if (--tenant.waiting == 0) tenant.hungry_since = absl::InfiniteFuture();
}

void Simulation::TakeBytes(size_t d, uint32_t t, uint64_t bytes) {
  Device& device = devices_[d];
  TenantAccount& tenant = device.tenants[t];
  const server::MemoryLimits& limits = scenario_.tenants[t].limits;
  device.promised -= std::max(tenant.bytes, limits.reserved);
  tenant.bytes += bytes;
  device.promised += std::max(tenant.bytes, limits.reserved);
  Require(tenant.bytes <= limits.hard, "more than the hard limit", d, t);
  Require(device.promised <= scenario_.device_bytes, "reserved memory was lent", d, t);
}

void Simulation::GiveBytes(size_t d, uint32_t t, uint64_t bytes) {
  Device& device = devices_[d];
  TenantAccount& tenant = device.tenants[t];
  const server::MemoryLimits& limits = scenario_.tenants[t].limits;
  device.promised -= std::max(tenant.bytes, limits.reserved);
  tenant.bytes -= bytes;
  device.promised += std::max(tenant.bytes, limits.reserved);
}

}  // namespace opserve::simulation
