#include "tests/simulation/residents_simulation.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"
#include "server/schedule/policy/default_zones.h"
#include "server/schedule/policy/placement.h"
#include "tests/simulation/simulated_acl.h"
#include "tests/simulation/simulated_task.h"

namespace opserve::simulation {
namespace {

constexpr uint64_t kDeviceBytes = uint64_t{4} << 20;
constexpr absl::Duration kSlice = absl::Milliseconds(10);
constexpr absl::Duration kLease = absl::Seconds(1);
constexpr absl::Duration kHousekeepingPeriod = absl::Milliseconds(100);
// Means, until the next request: after an answer, and after a refusal for want of memory.
constexpr absl::Duration kThinkTime = absl::Microseconds(500);
constexpr absl::Duration kPushback = absl::Milliseconds(50);
// Likewise, until a client has read its results, and until one that reads nothing is given up.
constexpr absl::Duration kReadTime = absl::Milliseconds(20);
constexpr absl::Duration kPatience = absl::Milliseconds(500);
constexpr double kStuckShare = 0.1;

using Kind = ResidentsSimulation::Kind;

bool UsesTensor(Kind kind) {
  return kind == Kind::kRead || kind == Kind::kReplace || kind == Kind::kDonate;
}
bool UsesItAlone(Kind kind) { return kind == Kind::kReplace || kind == Kind::kDonate; }
bool Keeps(Kind kind) { return kind == Kind::kKeep || kind == Kind::kReplace; }

}  // namespace

struct ResidentsSimulation::Device {
  Device(size_t number, const Plan& plan, std::shared_ptr<server::PinnedZones> pinned)
      : index(number),
        pool(SimulatedAcl(), {.max_bytes = kDeviceBytes, .region_bytes = kDeviceBytes / 16}),
        queue({.fairness = {.lanes = plan.lanes, .random = std::mt19937_64(plan.seed)},
               .device_bytes = kDeviceBytes},
              std::move(pinned)),
        is_lane_busy(plan.lanes, false) {
    queue.Open();
  }
  const size_t index;
  server::DeviceMemoryPool pool;
  server::DeviceQueue queue;
  bool is_up = true;
  uint64_t generation = 0;
  std::vector<bool> is_lane_busy;
};

struct ResidentsSimulation::Job {
  uint64_t number = 0;
  uint32_t tenant = 0;
  Kind kind = Kind::kShort;
  absl::Duration slice;  // the time of one
  int64_t slices = 1;    // left
  uint64_t bytes = 0;    // while it runs
  uint64_t work = 0;
  std::shared_ptr<server::CallState> call;
  std::string handle;  // of the tensor that it uses
  std::shared_ptr<server::ResidentTensor> tensor;
  std::optional<size_t> device;                  // the only one, or where it runs
  std::shared_ptr<server::ResidentTensor> kept;  // that it makes
  uint64_t kept_bytes = 0;
  server::ResidentTensors::Reservation reservation;
  server::TensorClaims::Ticket ticket = 0;
  bool is_arriving = false;      // its payloads follow its announcement
  std::shared_ptr<void> booked;  // their memory and the run's, of kArrive
  // On a lane.
  bool is_running = false;
  uint32_t lane = 0;
  server::DeviceQueue::Lease lease;
  server::DeviceBuffer memory;
  uint64_t generation = 0;  // of the device, when it began
  absl::Time started;
  absl::Time cancelled = absl::InfiniteFuture();
  absl::Duration next = kThinkTime;  // of its tenant, after its end
  std::shared_ptr<void> kept_share;  // of `memory`, while its results leave

  uint32_t op() const { return tenant * kKinds + static_cast<uint32_t>(kind); }
  aclrtStream stream() const { return reinterpret_cast<aclrtStream>(uintptr_t{lane} + 1); }
};

ResidentsSimulation::Plan ResidentsSimulation::RandomPlan(uint64_t seed) {
  Random random(seed);
  Plan plan{.seed = seed,
            .devices = static_cast<size_t>(random.Between(1, 3)),
            .lanes = static_cast<uint32_t>(random.Between(1, 3)),
            .duration = absl::Seconds(random.Between(1, 5)),
            .resets = random.Between(0, 4),
            .cancel_share = random.Happens(0.5) ? 0.3 : 0,
            .deadline_share = random.Happens(0.5) ? 0.2 : 0,
            .announced_share = random.Happens(0.5) ? 0.3 : 0};
  const std::vector<Kind> all = {Kind::kShort,   Kind::kLong,   Kind::kKeep,   Kind::kRead,
                                 Kind::kReplace, Kind::kDonate, Kind::kDepart, Kind::kArrive};
  for (int64_t i = random.Between(2, 5); i > 0; --i) {
    Tenant tenant{.weight = static_cast<uint32_t>(random.Between(1, 4)),
                  .burst = random.Between(1, 12)};
    for (const Kind kind : all) {
      if (random.Happens(0.7)) tenant.kinds.push_back(kind);
    }
    if (tenant.kinds.empty()) tenant.kinds = all;
    plan.tenants.push_back(tenant);
  }
  return plan;
}

ResidentsSimulation::ResidentsSimulation(const Plan& plan)
    : plan_(plan),
      random_(plan.seed ^ 0x9e3779b97f4a7c15),
      end_(now_ + plan.duration),
      pinned_(server::PinnedZones::Create(/*capacity=*/1, /*overflows=*/true)),
      costs_({.operators = static_cast<uint32_t>(plan.tenants.size()) * kKinds}),
      residents_({.default_lease = kLease, .grace = absl::ZeroDuration()}),
      known_(plan.tenants.size()) {
  for (uint32_t t = 0; t < plan.tenants.size(); ++t) {
    settings_.push_back({.tenant = t, .weight = plan.tenants[t].weight});
  }
  server::SetResidentBytes(kDeviceBytes, &settings_);
  outcome_.used.resize(plan.tenants.size());
  for (size_t d = 0; d < plan.devices; ++d) {
    devices_.push_back(std::make_unique<Device>(d, plan, pinned_));
    Require(devices_[d]->queue.SetTenants(settings_).ok(), "set tenants", d);
  }
}

ResidentsSimulation::~ResidentsSimulation() = default;

void ResidentsSimulation::Require(bool holds, absl::string_view what, uint64_t subject) {
  if (holds || !outcome_.violation.empty()) return;
  outcome_.violation = absl::StrCat(what, " (", subject, ", ",
                                    absl::FormatDuration(now_ - (end_ - plan_.duration)), " in)");
}

void ResidentsSimulation::At(absl::Time time, std::function<void()> action) {
  events_.push({time, ++event_numbers_, std::move(action)});
}

ResidentsSimulation::Outcome ResidentsSimulation::Run() {
  for (uint32_t t = 0; t < plan_.tenants.size(); ++t) {
    for (int64_t i = 0; i < plan_.tenants[t].burst; ++i) {
      At(now_ + random_.Exponential(kThinkTime), [this, t] { Send(t); });
    }
  }
  for (int64_t i = 0; i < plan_.resets; ++i) {
    const auto device = static_cast<size_t>(random_.Between(0, plan_.devices - 1));
    At(now_ + random_.Unit() * plan_.duration, [this, device] { Reset(device); });
  }
  At(now_ + kHousekeepingPeriod, [this] { KeepHouse(); });
  while (!events_.empty() && outcome_.violation.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    event.action();
    FillLanes();
    CheckBooks();
  }
  if (outcome_.violation.empty()) CheckEnd();
  return outcome_;
}

void ResidentsSimulation::KeepHouse() {
  residents_.Expire(now_);
  for (const auto& device : devices_) {
    device->pool.TrimDecayed(now_);
    for (const auto& task : device->queue.TakeExpired(now_)) End(NumberOf(task), false);
  }
  if (!LoadLasts() && jobs_.empty()) return;
  At(now_ + kHousekeepingPeriod, [this] { KeepHouse(); });
}

void ResidentsSimulation::Send(uint32_t tenant) {
  if (!LoadLasts()) return;
  const uint64_t number = ++sent_;
  Job& job = jobs_[number];
  job.number = number;
  job.tenant = tenant;
  const std::vector<Kind>& kinds = plan_.tenants[tenant].kinds;
  job.kind = kinds[random_.Between(0, static_cast<int64_t>(kinds.size()) - 1)];
  std::vector<Known>& known = known_[tenant];
  if (UsesTensor(job.kind) && known.empty()) job.kind = Kind::kKeep;
  if (job.kind == Kind::kLong) {
    job.slice = kSlice;
    job.slices = random_.Between(10, 50);
  } else {
    job.slice = absl::Microseconds(random_.Between(1000, 5000));
  }
  job.work = static_cast<uint64_t>(job.slices);
  job.bytes = static_cast<uint64_t>(random_.Between(1, kDeviceBytes / 32));
  job.call = std::make_shared<server::CallState>(random_.Happens(plan_.deadline_share)
                                                     ? now_ + random_.Exponential(30 * kSlice)
                                                     : absl::InfiniteFuture());
  if (random_.Happens(plan_.cancel_share)) {
    At(now_ + random_.Exponential(10 * kSlice), [this, number] { Cancel(number); });
  }
  if (UsesTensor(job.kind)) {
    const size_t which = random_.Between(0, static_cast<int64_t>(known.size()) - 1);
    job.handle = known[which].handle;
    const auto found = residents_.Find(tenant, job.handle, now_);
    if (!found.ok()) {  // its lease or its device has ended
      known.erase(known.begin() + static_cast<ptrdiff_t>(which));
      return End(number, false);
    }
    job.tensor = *found;
    job.device = job.tensor->device;
  }
  if (!Book(job).ok()) {
    ++outcome_.no_memory;
    job.next = kPushback;
    return End(number, false);
  }
  ClaimOrSubmit(number);
}

absl::Status ResidentsSimulation::Book(Job& job) {
  if (!Keeps(job.kind)) return absl::OkStatus();
  job.kept_bytes = static_cast<uint64_t>(random_.Between(1, kDeviceBytes / 32));
  if (!job.device) {
    const auto room_of = [&](size_t d) -> std::optional<uint64_t> {
      if (!devices_[d]->is_up) return std::nullopt;
      return devices_[d]->queue.RoomFor(job.tenant);
    };
    const std::optional<int32_t> others = residents_.DeviceOf(job.tenant);
    job.device = server::PlaceForTensors(devices_.size(),
                                         others ? std::optional<size_t>(*others) : std::nullopt,
                                         job.kept_bytes, room_of);
    if (!job.device) return absl::UnavailableError("no device");
  }
  Device& device = *devices_[*job.device];
  const auto id = static_cast<int32_t>(device.index);
  OPSERVE_RETURN_IF_ERROR(device.queue.CheckCanEverHold(job.tenant, job.kept_bytes));
  job.kept = std::make_shared<server::ResidentTensor>();
  job.kept->device = id;
  job.kept->device_generation = device.generation;
  OPSERVE_ASSIGN_OR_RETURN(job.kept->content->zone_share,
                           device.queue.TakeMemory(job.tenant, job.kept_bytes));
  if (job.kind == Kind::kReplace) return absl::OkStatus();
  OPSERVE_ASSIGN_OR_RETURN(job.reservation, residents_.Reserve(job.tenant, id, job.kept_bytes));
  return absl::OkStatus();
}

void ResidentsSimulation::ClaimOrSubmit(uint64_t number) {
  Job& job = jobs_.at(number);
  if (job.tensor == nullptr) return Submit(number);
  job.ticket = residents_.claims().NewTicket();
  Ask(job);
  const auto on_end = [this, number](server::TensorClaims::Outcome outcome) {
    if (outcome == server::TensorClaims::Outcome::kExpired) return End(number, false);
    Grant(jobs_.at(number));
    if (!jobs_.at(number).is_arriving) Submit(number);
  };
  // Its turn is that of its announcement.
  if (random_.Happens(plan_.announced_share)) {
    job.is_arriving = true;
    At(now_ + random_.Exponential(kReadTime), [this, number] { EndArrival(number); });
  }
  const server::TensorClaims::Wish wish{job.tensor.get(), UsesItAlone(job.kind)};
  if (residents_.claims().Claim(job.ticket, {wish}, job.call->deadline(), on_end)) {
    Grant(job);
    if (!job.is_arriving) Submit(number);
  } else {
    ++outcome_.waited;
  }
}

void ResidentsSimulation::EndArrival(uint64_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;  // it was cancelled, or late
  Job& job = found->second;
  job.is_arriving = false;
  if (random_.Happens(kStuckShare)) return End(number, false);  // a client that has stalled
  if (job.kind == Kind::kArrive) {
    // Chunks that came to a device went with its reset.
    if (job.generation != devices_[*job.device]->generation) return End(number, false);
    return Submit(number);
  }
  ++outcome_.arrived;
  if (IsGranted(job)) Submit(number);
}

void ResidentsSimulation::Submit(uint64_t number) {
  Job& job = jobs_.at(number);
  if (job.call->is_cancelled() || job.call->deadline() <= now_) return End(number, false);
  server::TaskDemand demand;
  demand.tenant = job.tenant;
  demand.cost = costs_.EstimateFor(job.op(), 0, job.work);
  demand.device_bytes = job.booked != nullptr ? 0 : job.bytes;
  demand.may_hold = job.kind == Kind::kDepart;
  demand.must_hold = job.kind == Kind::kArrive && job.booked == nullptr;
  const auto load_of = [&](size_t d) -> std::optional<server::DeviceLoad> {
    const Device& device = *devices_[d];
    if (!device.is_up) return std::nullopt;
    return server::DeviceLoad{.lanes = plan_.lanes,
                              .queued = device.queue.depth(),
                              .executing = device.queue.executing(),
                              .own = device.queue.WorkOf(job.tenant)};
  };
  std::optional<size_t> place = job.device;
  if (!place) place = server::BestPlace(devices_.size(), turn_++, load_of);
  if (!place) return End(number, false);
  std::unique_ptr<server::LaneTask> task = std::make_unique<SimulatedTask>(
      number, job.call, job.device ? std::optional<int32_t>(*job.device) : std::nullopt, demand);
  if (!devices_[*place]->queue.Push(&task, now_).ok()) End(number, false);
}

void ResidentsSimulation::FillLanes() {
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (const auto& device : devices_) {
      while (device->is_up && device->queue.executing() < plan_.lanes) {
        server::DeviceQueue::Popped popped = device->queue.TryPop(now_);
        if (!popped.next && popped.expired.empty()) break;
        is_done = false;
        if (popped.next) Begin(device->index, *std::move(popped.next));
        for (const auto& task : popped.expired) End(NumberOf(task), false);
      }
    }
  }
}

void ResidentsSimulation::Begin(size_t d, server::DeviceQueue::Dispatched dispatched) {
  Device& device = *devices_[d];
  const uint64_t number = NumberOf(dispatched.task);
  Job& job = jobs_.at(number);
  Require(!job.is_running, "started twice", number);
  Require(!job.device || *job.device == d, "started away from its tensor", number);
  Require(!job.call->is_cancelled(), "started after its cancellation", number);
  const auto lane = std::find(device.is_lane_busy.begin(), device.is_lane_busy.end(), false);
  *lane = true;
  job.device = d;
  job.is_running = true;
  job.lane = static_cast<uint32_t>(lane - device.is_lane_busy.begin());
  job.lease = dispatched.lease;
  job.started = now_;
  job.generation = device.generation;
  if (job.kind == Kind::kArrive && job.booked == nullptr) return BeginArrival(job);
  if (!TakeMemory(job).ok()) {
    ++outcome_.no_memory;
    return Finish(number, false);
  }
  At(now_ + job.slice, [this, number] { EndSlice(number); });
}

void ResidentsSimulation::BeginArrival(Job& job) {
  Device& device = *devices_[*job.device];
  Require(job.lease.is_held, "a client may send without a booking", job.number);
  job.booked = device.queue.KeepMemory(job.lease.device_bytes, &job.lease);
  job.is_running = false;
  device.is_lane_busy[job.lane] = false;
  device.queue.TaskEnded(job.lease, absl::ZeroDuration(), now_);
  job.is_arriving = true;
  At(now_ + random_.Exponential(kReadTime), [this, number = job.number] { EndArrival(number); });
}

absl::Status ResidentsSimulation::TakeMemory(Job& job) {
  Device& device = *devices_[*job.device];
  const auto allocate = [&](uint64_t bytes) {
    return device.pool.Allocate({.bytes = bytes, .stream = job.stream(), .tenant = job.tenant});
  };
  OPSERVE_ASSIGN_OR_RETURN(job.memory, allocate(job.bytes));
  if (job.kept != nullptr) {
    OPSERVE_ASSIGN_OR_RETURN(job.kept->content->memory, allocate(job.kept_bytes));
  }
  return absl::OkStatus();
}

void ResidentsSimulation::EndSlice(uint64_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end() || !found->second.is_running) return;  // its device was reset
  Job& job = found->second;
  if (job.call->is_cancelled()) {
    Require(now_ - job.cancelled <= job.slice, "went on after its cancellation", number);
    outcome_.cut_short += job.slices > 1;
    return Finish(number, false);
  }
  if (--job.slices == 0) return Finish(number, true);
  At(now_ + job.slice, [this, number] { EndSlice(number); });
}

void ResidentsSimulation::Finish(uint64_t number, bool is_ok) {
  Job& job = jobs_.at(number);
  Device& device = *devices_[*job.device];
  const absl::Duration took = now_ - job.started;
  outcome_.used[job.tenant] += took;
  if (is_ok) costs_.Record(job.op(), 0, job.work, took);
  job.is_running = false;
  const bool departs = is_ok && job.lease.is_held;
  if (departs) {
    BeginDeparture(job);
  } else {
    job.memory = server::DeviceBuffer();
  }
  if (job.kept != nullptr) {
    if (is_ok) device.pool.LeaveStream(job.kept->content->memory);
    if (!is_ok) job.kept->content->memory = server::DeviceBuffer();
  }
  device.pool.StreamIsIdle(job.stream());
  device.is_lane_busy[job.lane] = false;
  device.queue.TaskEnded(job.lease, took, now_);
  if (is_ok) Commit(job);
  if (departs) return;
  outcome_.copied += is_ok && job.kind == Kind::kDepart;
  End(number, is_ok);
}

void ResidentsSimulation::BeginDeparture(Job& job) {
  Device& device = *devices_[*job.device];
  device.pool.LeaveStream(job.memory);
  job.kept_share = device.queue.KeepMemory(job.lease.device_bytes, &job.lease);
  const bool is_stuck = random_.Happens(kStuckShare);
  const absl::Time end = now_ + random_.Exponential(is_stuck ? kPatience : kReadTime);
  At(std::min(end, job.call->deadline()),
     [this, number = job.number, is_stuck] { EndDeparture(number, /*is_wanted=*/!is_stuck); });
}

void ResidentsSimulation::EndDeparture(uint64_t number, bool is_wanted) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;  // it was cancelled
  Job& job = found->second;
  const bool is_there = job.generation == devices_[*job.device]->generation;
  job.memory = server::DeviceBuffer();
  job.kept_share = nullptr;
  const bool is_ok = is_wanted && is_there && now_ < job.call->deadline();
  outcome_.departures += is_ok;
  End(number, is_ok);
}

void ResidentsSimulation::Commit(Job& job) {
  std::vector<Known>& known = known_[job.tenant];
  if (job.kind == Kind::kKeep) {
    std::vector<server::ResidentTensors::New> one;
    one.push_back({std::move(job.reservation), job.kept, kLease});
    auto added = residents_.Add(std::move(one), now_);
    if (added.ok()) known.push_back({(*added)[0].handle, job.kept});
  } else if (job.kind == Kind::kReplace) {
    job.tensor->content = job.kept->content;
    ++job.tensor->version;
  } else if (job.kind == Kind::kDonate) {
    residents_.Release(job.tenant, {job.handle});
    std::erase_if(known, [&](const Known& one) { return one.handle == job.handle; });
  }
}

void ResidentsSimulation::End(uint64_t number, bool is_ok) {
  const auto node = jobs_.extract(number);
  Require(!node.empty(), "ended twice", number);
  if (node.empty()) return;
  const Job& job = node.mapped();
  Require(!job.is_running, "ended on its lane", number);
  is_ok ? ++outcome_.done[static_cast<size_t>(job.kind)] : ++outcome_.failed;
  At(now_ + random_.Exponential(job.next), [this, tenant = job.tenant] { Send(tenant); });
  if (job.ticket == 0) return;
  GiveUp(job);
  residents_.claims().Release(job.ticket);
}

void ResidentsSimulation::Cancel(uint64_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  job.call->Cancel();
  job.cancelled = now_;
  if (job.is_running) return;  // until its slice ends
  if (job.kept_share != nullptr) return EndDeparture(number, /*is_wanted=*/false);
  if (job.ticket != 0 && !IsGranted(job)) {
    GiveUp(job);
    Require(residents_.claims().Withdraw(std::exchange(job.ticket, 0)), "no wait to end", number);
    return End(number, false);
  }
  if (job.is_arriving) return End(number, false);
  for (const auto& device : devices_) {
    if (device->queue.Remove(job.call.get()) != nullptr) return End(number, false);
  }
  Require(false, "a request is nowhere", number);
}

void ResidentsSimulation::Reset(size_t d) {
  Device& device = *devices_[d];
  if (!device.is_up) return;
  device.is_up = false;
  const std::vector<std::unique_ptr<server::LaneTask>> tasks = device.queue.Pause();
  std::vector<uint64_t> running;
  for (const auto& [number, job] : jobs_) {
    if (job.is_running && *job.device == d) running.push_back(number);
  }
  for (const uint64_t number : running) Finish(number, false);
  device.pool.ForgetAll();
  residents_.DeviceWasReset(static_cast<int32_t>(d), ++device.generation);
  for (const auto& task : tasks) {
    if (task->device()) {
      End(NumberOf(task), false);
    } else {
      Submit(NumberOf(task));
    }
  }
  At(now_ + 5 * kSlice, [&device] {
    device.queue.Open();
    device.is_up = true;
  });
}

void ResidentsSimulation::Ask(const Job& job) {
  uses_[job.tensor.get()].push_back({job.number, UsesItAlone(job.kind), false});
}

void ResidentsSimulation::Grant(const Job& job) {
  const bool is_alone = UsesItAlone(job.kind);
  for (Use& use : uses_.at(job.tensor.get())) {
    if (use.job == job.number) {
      use.is_granted = true;
      return;
    }
    // Those that asked before.
    Require(!is_alone && !use.is_alone, "used beside another change, or before its turn",
            job.number);
  }
}

bool ResidentsSimulation::IsGranted(const Job& job) const {
  for (const Use& use : uses_.at(job.tensor.get())) {
    if (use.job == job.number) return use.is_granted;
  }
  return false;
}

void ResidentsSimulation::GiveUp(const Job& job) {
  const auto found = uses_.find(job.tensor.get());
  std::erase_if(found->second, [&](const Use& use) { return use.job == job.number; });
  if (found->second.empty()) uses_.erase(found);
}

void ResidentsSimulation::CheckBooks() {
  for (const auto& device : devices_) {
    Require(device->queue.booked_bytes() <= kDeviceBytes, "more is booked than there is",
            device->index);
    Require(device->pool.statistics().reserved_bytes <= kDeviceBytes, "more is taken than there is",
            device->index);
  }
  CheckDepartures();
  // No request is left waiting for a tensor that is free.
  uint64_t waiting = 0;
  for (const auto& [tensor, uses] : uses_) {
    Require(uses.front().is_granted, "the first in turn waits", uses.front().job);
    for (const Use& use : uses) waiting += !use.is_granted;
  }
  Require(residents_.claims().waiting() == waiting, "waits are miscounted", waiting);
}

// What leaves or comes slowly is its tenant's own, within the part that only its clients give back.
void ResidentsSimulation::CheckDepartures() {
  std::map<std::pair<size_t, uint32_t>, uint64_t> bytes;  // by device and tenant
  std::vector<uint64_t> departures(devices_.size());
  for (const auto& [number, job] : jobs_) {
    const bool departs = job.kept_share != nullptr || job.booked != nullptr;
    if (departs) ++departures[*job.device];
    if (departs || (job.is_running && job.lease.is_held)) {
      bytes[{*job.device, job.tenant}] += job.bytes;
    }
  }
  for (const auto& [place, held] : bytes) {
    Require(held <= settings_[place.second].resident_bytes, "a tenant's results hold too much",
            place.second);
  }
  for (const auto& device : devices_) {
    Require(device->queue.keeping() == departures[device->index], "departures are miscounted",
            device->index);
    Require(departures[device->index] == 0 || !device->queue.IsEmpty(),
            "it counts as empty though results leave it", device->index);
  }
}

void ResidentsSimulation::CheckEnd() {
  Require(jobs_.empty(), "a request never ended", jobs_.empty() ? 0 : jobs_.begin()->first);
  uint64_t ended = outcome_.failed;
  for (const uint64_t done : outcome_.done) ended += done;
  Require(ended == sent_, "requests and ends differ in number", sent_);
  known_.clear();
  residents_.Expire(absl::InfiniteFuture());
  Require(uses_.empty() && residents_.claims().waiting() == 0, "a claim is left", uses_.size());
  for (uint32_t t = 0; t < plan_.tenants.size(); ++t) {
    const server::ResidentTensors::Usage usage = residents_.UsageOfTenant(t);
    Require(usage.tensors == 0 && usage.bytes == 0, "a tenant's quota is left in use", t);
  }
  for (const auto& device : devices_) {
    Require(device->queue.IsEmpty(), "something is queued or runs", device->index);
    Require(device->queue.booked_bytes() == 0, "memory stays booked", device->index);
    Require(device->pool.statistics().allocated_bytes == 0, "the pool still lends", device->index);
  }
}

}  // namespace opserve::simulation
