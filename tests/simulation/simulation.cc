#include "tests/simulation/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "server/schedule/policy/placement.h"
#include "tests/simulation/simulated_device.h"

namespace opserve::simulation {
namespace {

constexpr uint64_t kNobody = UINT64_MAX;
constexpr absl::Duration kSampleInterval = absl::Milliseconds(500);

// FNV-1a, of 64 bits at a time.
constexpr uint64_t kHashStart = 14695981039346656037u;
uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 1099511628211u;
  return hash ^ (hash >> 32);  // the high bits change the low ones as well
}

// The pool tells streams apart, and makes no call with them but those that are simulated.
aclrtStream StreamOf(uint32_t lane) { return reinterpret_cast<aclrtStream>(uintptr_t{lane} + 1); }

server::TenantsConfig ConfigOf(const Scenario& scenario) {
  server::TenantsConfig config;
  for (size_t t = 0; t < scenario.tenants.size(); ++t) {
    const TenantPlan& plan = scenario.tenants[t];
    server::TenantConfig tenant;
    tenant.name = absl::StrCat("tenant-", t);
    tenant.weight = plan.weight;
    tenant.requests_per_second = plan.requests_per_second;
    tenant.bytes_per_second = plan.bytes_per_second;
    tenant.max_pending_requests = plan.max_pending;
    tenant.device_memory = {.reserved_bytes = plan.limits.reserved,
                            .soft_bytes = plan.limits.soft,
                            .hard_bytes = plan.limits.hard};
    config.tenants.push_back(std::move(tenant));
  }
  return config;
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, std::ostream* log)
    : scenario_(scenario),
      log_(log),
      random_(scenario.seed ^ 0x9e3779b97f4a7c15),
      now_(absl::FromUnixSeconds(1'000'000)),
      end_of_load_(now_ + scenario.duration),
      tenants_(std::make_unique<server::Tenants>(ConfigOf(scenario))),
      costs_({.operators = static_cast<uint32_t>(scenario.tenants.size()) * scenario.operators}),
      pinned_(server::PinnedZones::Create(/*capacity=*/1, /*overflows=*/true)) {
  outcome_.log_hash = kHashStart;
  for (server::Tenant* tenant : tenants_->Current()) {
    const TenantPlan& plan = scenario.tenants[tenant->id()];
    const uint64_t rate = std::max(plan.requests_per_second, plan.bytes_per_second);
    admissions_.push_back({.tenant = tenant, .tokens = static_cast<double>(rate), .counted = now_});
    longest_wait_.push_back(LongestWait(tenant->id()));
  }
  for (size_t d = 0; d < scenario.devices; ++d) {
    devices_.push_back(std::make_unique<Device>(*this, d));
    Device& device = *devices_.back();
    Require(device.queue.SetTenants(tenants_->Settings()).ok(), "set tenants", d, 0);
    for (uint32_t t = 0; t < scenario.tenants.size(); ++t) {
      const TenantPlan& plan = scenario.tenants[t];
      device.promised += plan.limits.reserved;
      device.tenants[t].is_saturating = plan.load == Load::kFlood;
    }
  }
}

Simulation::~Simulation() = default;

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

uint64_t Simulation::Schedule(absl::Time time, EventKind kind, uint64_t subject) {
  events_.push({time, ++event_numbers_, kind, subject});
  return event_numbers_;
}

Outcome Simulation::Run() {
  for (const auto& device : devices_) device->supervision.Begin();
  for (uint32_t t = 0; t < scenario_.tenants.size(); ++t) {
    if (scenario_.tenants[t].load == Load::kFlood) continue;  // begins where a device is up
    if (scenario_.tenants[t].load == Load::kClosed) {
      for (int64_t i = 0; i < scenario_.tenants[t].burst; ++i) Answer(t);
    } else {
      Schedule(now_ + random_.Exponential(scenario_.tenants[t].interval), EventKind::kArrival, t);
    }
  }
  for (int64_t i = 0; i < scenario_.breakdowns; ++i) {
    Schedule(now_ + random_.Unit() * scenario_.duration, EventKind::kBreakdown,
             random_.Between(0, static_cast<int64_t>(devices_.size()) - 1));
  }
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
    case EventKind::kCancel:
      Cancel(event.subject);
      return;
    case EventKind::kEnd:
    case EventKind::kAbort:
    case EventKind::kReturn:
      HandleEndOf(event);
      return;
    case EventKind::kBreakdown:
      BreakDown(event.subject);
      return;
    case EventKind::kLook:
      Look(event.subject);
      return;
    case EventKind::kUp:
      for (uint32_t t = 0; t < scenario_.tenants.size(); ++t) RefillFlood(event.subject, t);
      FillLanes(event.subject);
      return;
    case EventKind::kResume:
      Resume(event.subject);
      return;
  }
}

void Simulation::Cancel(uint64_t number) {
  const Task& task = tasks_[number];
  if (task.state == State::kEnded) return;
  Device& device = *devices_[task.device];
  task.call->Cancel();
  const std::unique_ptr<server::LaneTask> removed = device.queue.Remove(task.call.get());
  Require((removed != nullptr) == (task.state == State::kWaiting),
          "a task can be removed if and only if it waits", task.device, number);
  if (removed == nullptr) return;
  Require(NumberOf(removed) == number, "another task was removed", task.device, number);
  LeaveQueue(task.device, number);
  Change(number, State::kWaiting, State::kEnded);
  Log("cancelled", task.device, number);
  ++outcome_.cancelled;
  RefillFlood(task.device, task.tenant);
  FillLanes(task.device);
}

void Simulation::Arrive(uint32_t tenant) {
  const TenantPlan& plan = scenario_.tenants[tenant];
  for (int64_t i = 0; i < plan.burst; ++i) Request(tenant);
  Schedule(now_ + random_.Exponential(plan.interval), EventKind::kArrival, tenant);
}

void Simulation::Request(uint32_t tenant) {
  const uint64_t task = NewTask(tenant);
  if (!IsAdmitted(task)) return;
  const size_t device = Place(task);
  PushTo(device, task, nullptr, State::kNew);
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
  task.op = tenant * scenario_.operators;
  if (scenario_.wrong_share > 0) {
    task.op += static_cast<uint32_t>(random_.Between(0, scenario_.operators - 1));
  }
  task.cost = random_.Pareto(plan.least_cost, plan.most_cost, plan.tail);
  task.message_bytes = static_cast<uint64_t>(random_.Between(1, kMostMessageBytes));
  const absl::Time deadline = random_.Happens(plan.deadline_share)
                                  ? now_ + random_.Exponential(plan.patience)
                                  : absl::InfiniteFuture();
  task.call = std::make_shared<server::CallState>(deadline);
  server::TaskDemand& demand = task.demand;
  demand.tenant = tenant;
  demand.priority = static_cast<server::Priority>(random_.Between(0, 2));
  const auto most_doublings = static_cast<int64_t>(std::log2(plan.estimate_error));
  demand.work = uint64_t{1} << random_.Between(0, most_doublings);
  demand.cost = costs_.EstimateFor(task.op, 0, demand.work);
  demand.device_bytes = static_cast<uint64_t>(random_.Between(
      static_cast<int64_t>(plan.least_bytes), static_cast<int64_t>(plan.most_bytes)));
  tasks_.push_back(std::move(task));
  ++live_tasks_;
  return tasks_.size() - 1;
}

bool Simulation::IsAdmitted(uint64_t number) {
  const Task& task = tasks_[number];
  const absl::Status status =
      admissions_[task.tenant].tenant->BeginRequest(task.message_bytes, now_);
  CheckAdmission(number, status);
  if (!status.ok()) {
    // It is not pending: nothing is to be given back.
    tasks_[number].state = State::kEnded;
    tasks_[number].call.reset();
    --live_tasks_;
    ++outcome_.not_admitted;
    Log("not admitted", 0, number);
    return false;
  }
  const TenantPlan& plan = scenario_.tenants[task.tenant];
  if (random_.Happens(plan.cancel_share)) {
    Schedule(now_ + random_.Exponential(plan.patience), EventKind::kCancel, number);
  }
  return true;
}

size_t Simulation::Place(uint64_t number) {
  const Task& task = tasks_[number];
  const auto load_of = [&](size_t d) -> std::optional<server::DeviceLoad> {
    const Device& device = *devices_[d];
    if (!device.IsUp()) return std::nullopt;
    const absl::Duration own = device.queue.WorkOf(task.tenant);
    if (scenario_.tenants.size() <= server::kNamedTenantSlots) {
      Require(own == device.tenants[task.tenant].work, "a tenant's work is wrong", d, task.tenant);
    }
    return server::DeviceLoad{.offers = !device.is_wrong[task.op % scenario_.operators],
                              .lanes = scenario_.lanes,
                              .queued = device.queue.depth(),
                              .executing = device.queue.executing(),
                              .own = own};
  };
  const size_t best =
      server::BestPlace(devices_.size(), turn_++, load_of).value_or(devices_.size());
  const bool is_offered =
      best < devices_.size() && !devices_[best]->is_wrong[task.op % scenario_.operators];
  return is_offered ? best : devices_.size();
}

void Simulation::PushTo(size_t d, uint64_t number, std::unique_ptr<server::LaneTask> queued,
                        State from) {
  Task& task = tasks_[number];
  if (d == devices_.size()) {
    Change(number, from, State::kEnded);
    Log("refused: no device", d, number);
    ++outcome_.refused;
    CheckHasNoPlace(number);
    return;
  }
  if (queued == nullptr) {
    queued = std::make_unique<SimulatedTask>(number, task.call, std::nullopt, task.demand);
  }
  const absl::Status status = devices_[d]->queue.Push(&queued, now_);
  CheckPush(d, number, status);
  if (!status.ok()) {
    outcome_.infeasible += ErrorReasonOf(status) == Reason::kDeadlineInfeasible;
    Change(number, from, State::kEnded);
    Log("refused", d, number);
    ++outcome_.refused;
    return;
  }
  Change(number, from, State::kWaiting);
  JoinQueue(d, number);
  Log("queued", d, number);
  CheckStep(d);
}

void Simulation::RefillFlood(size_t d, uint32_t tenant) {
  if (scenario_.tenants[tenant].load != Load::kFlood || !LoadLasts()) return;
  // A few more than can start before the next look.
  const size_t backlog = std::min<size_t>(scenario_.capacity_per_tenant, scenario_.lanes + 2);
  Device& device = *devices_[d];
  while (device.IsUp() && device.tenants[tenant].waiting < backlog &&
         device.waiting < scenario_.capacity && outcome_.violation.empty()) {
    const uint64_t task = NewTask(tenant);
    const bool is_admitted = IsAdmitted(task);
    Require(is_admitted, "a flood without limits was refused", d, task);
    if (is_admitted) PushTo(d, task, nullptr, State::kNew);
  }
  if (device.IsUp() && device.tenants[tenant].waiting == 0) {
    device.tenants[tenant].is_saturating = false;
  }
}

void Simulation::Expire(size_t d, const std::vector<std::unique_ptr<server::LaneTask>>& expired) {
  for (const auto& waited : expired) {
    const uint64_t number = NumberOf(waited);
    const Task& task = tasks_[number];
    Require(now_ + KnownTimeOf(task) >= task.call->deadline() ||
                now_ - task.queued >= scenario_.queue_max_age,
            "expired too early", d, number);
    LeaveQueue(d, number);
    Change(number, State::kWaiting, State::kEnded);
    Log("expired", d, number);
    ++outcome_.expired;
  }
}

void Simulation::FillLanes(size_t d) {
  Device& device = *devices_[d];
  if (!device.IsUp()) return;
  while (device.running.size() < scenario_.lanes) {
    server::DeviceQueue::Popped popped = device.queue.TryPop(now_);
    Expire(d, popped.expired);
    const bool is_started = popped.next.has_value();
    if (is_started) {
      const uint32_t tenant = tasks_[NumberOf(popped.next->task)].tenant;
      StartTask(d, *std::move(popped.next));
      RefillFlood(d, tenant);
    }
    for (const auto& expired : popped.expired) RefillFlood(d, tasks_[NumberOf(expired)].tenant);
    if (!is_started && popped.expired.empty()) break;
  }
  CheckStep(d);
  CheckIdleLanes(d);
}

void Simulation::StartTask(size_t d, server::DeviceQueue::Dispatched started) {
  Device& device = *devices_[d];
  const uint64_t number = NumberOf(started.task);
  Task& task = tasks_[number];
  Require(task.device == d, "started on another device", d, number);
  Require(now_ + KnownTimeOf(task) < task.call->deadline(), "started too late", d, number);
  Require(now_ - task.queued < scenario_.queue_max_age, "started too old", d, number);
  Require(!device.is_wrong[task.op % scenario_.operators], "started where its operator is wrong", d,
          number);
  CheckWait(d, task.tenant);
  LeaveQueue(d, number);
  Change(number, State::kWaiting, State::kRunning);
  TenantAccount& tenant = device.tenants[task.tenant];
  if (tenant.waiting > 0) tenant.hungry_since = now_;
  ++tenant.running;
  tenant.work += WorkOf(task);  // until it ends; LeaveQueue took it from what waits
  TakeBytes(d, task.tenant, task.demand.device_bytes);
  task.started = now_;
  const auto lane = std::find(device.is_lane_busy.begin(), device.is_lane_busy.end(), false);
  *lane = true;
  device.running.emplace(
      number,
      Device::Running{started.lease, static_cast<uint32_t>(lane - device.is_lane_busy.begin())});
  Log("started", d, number);
  // The memory pool is first come, first served.
  device.memory_line.push_back(number);
  BeginThoseThatWait(d);
  outcome_.held_up += !device.memory_line.empty() && device.memory_line.back() == number;
}

void Simulation::BeginThoseThatWait(size_t d) {
  Device& device = *devices_[d];
  while (device.IsUp() && !device.memory_line.empty()) {
    const uint64_t number = device.memory_line.front();
    const Task& task = tasks_[number];
    Device::Running& run = device.running.find(number)->second;
    auto memory = device.pool.Allocate(
        {.bytes = task.demand.device_bytes, .stream = StreamOf(run.lane), .tenant = task.tenant});
    if (!memory.ok()) {
      Require(scenario_.memory_is_tight, "booked memory is not there", d, number);
      Require(device.running.size() > device.memory_line.size(), "a task's memory can never be had",
              d, number);
      return;
    }
    run.memory = *std::move(memory);
    run.begun = now_;
    device.memory_line.pop_front();
    ScheduleEnd(d, number);
  }
}

void Simulation::EndTask(size_t d, uint64_t number, absl::string_view how) {
  Device& device = *devices_[d];
  Task& task = tasks_[number];
  Change(number, State::kRunning, State::kEnded);
  TenantAccount& tenant = device.tenants[task.tenant];
  --tenant.running;
  tenant.work -= WorkOf(task);
  tenant.used += std::max(absl::ZeroDuration(), std::min(now_, end_of_load_) - task.started);
  GiveBytes(d, task.tenant, task.demand.device_bytes);
  const auto found = device.running.find(number);
  Device::Running run = std::move(found->second);
  device.running.erase(found);
  const auto waits = std::find(device.memory_line.begin(), device.memory_line.end(), number);
  if (waits != device.memory_line.end()) device.memory_line.erase(waits);
  device.is_lane_busy[run.lane] = false;
  device.queue.TaskEnded(run.lease, now_ - task.started, now_);
  Log(how, d, number);
  CheckStep(d);
  run.memory = server::DeviceBuffer();
  device.pool.StreamIsIdle(StreamOf(run.lane));
  BeginThoseThatWait(d);
}

void Simulation::Change(uint64_t number, State from, State to) {
  Task& task = tasks_[number];
  Require(task.state == from, "a task is lost or doubled", task.device, number);
  task.state = to;
  if (to != State::kEnded) return;
  task.call.reset();
  --live_tasks_;
  --admissions_[task.tenant].pending;
  admissions_[task.tenant].tenant->EndRequest();
}

absl::Duration Simulation::WorkOf(const Task& task) {
  // In whole nanoseconds, and no less than a decision costs.
  const absl::Duration least = absl::Microseconds(1);
  return absl::Trunc(std::max(task.demand.cost.time, least), absl::Nanoseconds(1));
}

absl::Duration Simulation::KnownTimeOf(const Task& task) {
  const server::CostModel::Estimate& cost = task.demand.cost;
  return cost.samples < server::kSamplesForRefusal ? absl::ZeroDuration() : cost.time;
}

void Simulation::JoinQueue(size_t d, uint64_t number) {
  Device& device = *devices_[d];
  Task& task = tasks_[number];
  TenantAccount& tenant = device.tenants[task.tenant];
  task.device = d;
  task.queued = now_;
  ++device.waiting;
  if (++tenant.waiting == 1) tenant.hungry_since = now_;
  tenant.work += WorkOf(task);
  tenant.known_time += KnownTimeOf(task);
}

void Simulation::LeaveQueue(size_t d, uint64_t number) {
  Device& device = *devices_[d];
  const Task& task = tasks_[number];
  TenantAccount& tenant = device.tenants[task.tenant];
  --device.waiting;
  tenant.work -= WorkOf(task);
  tenant.known_time -= KnownTimeOf(task);
  if (--tenant.waiting == 0) tenant.hungry_since = absl::InfiniteFuture();
}

void Simulation::TakeBytes(size_t d, uint32_t t, uint64_t bytes) {
  Device& device = *devices_[d];
  TenantAccount& tenant = device.tenants[t];
  const server::MemoryLimits& limits = scenario_.tenants[t].limits;
  device.booked += bytes;
  device.promised -= std::max(tenant.bytes, limits.reserved);
  tenant.bytes += bytes;
  device.promised += std::max(tenant.bytes, limits.reserved);
  Require(tenant.bytes <= limits.hard, "more than the hard limit", d, t);
  Require(device.promised <= scenario_.device_bytes, "reserved memory was lent", d, t);
}

void Simulation::GiveBytes(size_t d, uint32_t t, uint64_t bytes) {
  Device& device = *devices_[d];
  TenantAccount& tenant = device.tenants[t];
  const server::MemoryLimits& limits = scenario_.tenants[t].limits;
  device.booked -= bytes;
  device.promised -= std::max(tenant.bytes, limits.reserved);
  tenant.bytes -= bytes;
  device.promised += std::max(tenant.bytes, limits.reserved);
}

}  // namespace opserve::simulation
