// What must hold in a simulation.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "tests/simulation/simulated_device.h"

namespace opserve::simulation {

namespace {

// Of a second's burst; the daemon counts in nanoseconds.
constexpr double kTokenError = 1e-5;

}  // namespace

void Simulation::CheckAdmission(uint64_t number, const absl::Status& status) {
  const Task& task = tasks_[number];
  const TenantPlan& plan = scenario_.tenants[task.tenant];
  AdmissionAccount& account = admissions_[task.tenant];
  const bool is_in_bytes = plan.bytes_per_second > 0;
  const auto rate =
      static_cast<double>(is_in_bytes ? plan.bytes_per_second : plan.requests_per_second);
  const double amount = is_in_bytes ? static_cast<double>(task.message_bytes) : 1;
  account.tokens =
      std::min(rate, account.tokens + rate * absl::ToDoubleSeconds(now_ - account.counted));
  account.counted = now_;
  const Reason reason = ErrorReasonOf(status);
  const bool is_full = account.pending >= plan.max_pending;
  Require(is_full == (reason == Reason::kTenantQueueFull),
          "refused if and only if too many are pending", 0, number);
  if (is_full) return;
  const double error = rate * kTokenError;
  if (status.ok()) {
    Require(rate == 0 || account.tokens + error >= amount, "above its rate", 0, number);
    account.tokens -= amount;
    ++account.pending;
  } else {
    Require(reason == Reason::kRateLimited && rate > 0 && account.tokens - error < amount,
            "refused within its rate", 0, number);
  }
}

void Simulation::CheckPush(size_t d, uint64_t number, const absl::Status& status) {
  const Device& device = *devices_[d];
  const Task& task = tasks_[number];
  const TenantAccount& tenant = device.tenants[task.tenant];
  const server::CostModel::Estimate& cost = task.demand.cost;
  const bool is_infeasible =
      cost.samples >= server::kSamplesForRefusal &&
      now_ + tenant.known_time / scenario_.lanes > task.call->deadline() - cost.time;
  const Reason reason = ErrorReasonOf(status);
  Require(is_infeasible == (reason == Reason::kDeadlineInfeasible),
          "refused if and only if it cannot end in time", d, number);
  if (is_infeasible) return;
  const bool has_room =
      device.waiting < scenario_.capacity && tenant.waiting < scenario_.capacity_per_tenant;
  Require(status.ok() == has_room, "a task is taken if and only if there is room", d, number);
  Require(status.ok() || reason == Reason::kQueueFull || reason == Reason::kTenantQueueFull,
          "refused for another reason", d, number);
}

void Simulation::CheckStep(size_t d) {
  const Device& device = *devices_[d];
  Require(device.queue.depth() == device.waiting, "the queue's depth is wrong", d, 0);
  Require(device.waiting <= scenario_.capacity, "the queue is too long", d, 0);
  Require(device.running.size() <= scenario_.lanes, "more runs than there are lanes", d, 0);
  Require(device.queue.executing() == device.running.size(), "the lanes in use are wrong", d, 0);
  Require(device.queue.booked_bytes() == device.booked, "the booked memory is wrong", d, 0);
  const server::DeviceMemoryPool::Statistics memory = device.pool.statistics();
  Require(memory.reserved_bytes <= scenario_.device_bytes, "too much is taken of the device", d, 0);
}

void Simulation::CheckIdleLanes(size_t d) {
  const Device& device = *devices_[d];
  if (device.running.size() == scenario_.lanes) return;
  if (!scenario_.memory_is_tight) {
    Require(device.waiting == 0, "a lane is idle though something waits", d, 0);
  }
  // No tenant that has nothing running waits while the device is idle.
  if (device.running.empty()) {
    Require(device.waiting == 0, "the device is idle though something waits", d, 0);
  }
}

absl::Duration Simulation::LongestWait(uint32_t t) const {
  // Until its last charges, of which one per lane may be wrong, are made up for by the others, each
  // of which may have as many charges too low. A lane is free after the longest execution.
  const TenantPlan& own = scenario_.tenants[t];
  absl::Duration work;
  absl::Duration longest;
  for (const TenantPlan& other : scenario_.tenants) {
    const double ratio = static_cast<double>(other.weight) / own.weight;
    work +=
        (scenario_.lanes + 1.0) * (ratio * scenario_.MostCharge(own) + scenario_.MostCharge(other));
    longest = std::max(longest, scenario_.MostTime(other));
  }
  absl::Duration wait = work / scenario_.lanes + longest;
  if (scenario_.memory_is_tight) {
    // Everybody before it in the line for memory may be passed so often, and then waits for memory
    // to come back.
    wait += static_cast<double>(scenario_.tenants.size()) *
            (server::MemoryZones::kMostPasses + 2.0) * longest;
  }
  return wait;
}

void Simulation::CheckWait(size_t d, uint32_t t) {
  if (devices_[d]->was_slow) return;
  const TenantAccount& tenant = devices_[d]->tenants[t];
  Require(now_ - tenant.hungry_since <= longest_wait_[t], "a tenant with a backlog starved", d, t);
}

void Simulation::CheckShares(size_t d) {
  const Device& device = *devices_[d];
  for (uint32_t a = 0; a < scenario_.tenants.size(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (!device.tenants[a].is_saturating || !device.tenants[b].is_saturating) continue;
      const TenantPlan& first = scenario_.tenants[a];
      const TenantPlan& second = scenario_.tenants[b];
      const absl::Duration had_first = device.tenants[a].used / first.weight;
      const absl::Duration had_second = device.tenants[b].used / second.weight;
      // Whole executions cannot be divided; each time the device breaks down all starts anew.
      const absl::Duration granularity = (1.0 + static_cast<double>(device.breakdowns)) *
                                         (scenario_.lanes + 1) *
                                         (scenario_.MostCharge(first) / first.weight +
                                          scenario_.MostCharge(second) / second.weight);
      const absl::Duration allowed = std::max(0.05 * std::max(had_first, had_second), granularity);
      Require(absl::AbsDuration(had_first - had_second) <= allowed,
              absl::StrCat("shares differ: tenant ", b, " had ", absl::FormatDuration(had_second),
                           " per weight, the other ", absl::FormatDuration(had_first)),
              d, a);
    }
  }
}

void Simulation::SampleShares() {
  std::vector<absl::Duration>& used = samples_.emplace_back(scenario_.tenants.size());
  for (const auto& device : devices_) {
    for (size_t t = 0; t < used.size(); ++t) used[t] += device->tenants[t].used;
  }
}

void Simulation::CheckWindows() {
  constexpr size_t kWindow = 20;  // samples
  double weights = 0;
  for (const TenantPlan& plan : scenario_.tenants) weights += plan.weight;
  Require(samples_.size() > kWindow, "there is no window of ten seconds", 0, 0);
  for (size_t end = kWindow; end < samples_.size(); ++end) {
    std::vector<absl::Duration> used;
    absl::Duration all;
    for (size_t t = 0; t < scenario_.tenants.size(); ++t) {
      used.push_back(samples_[end][t] - samples_[end - kWindow][t]);
      all += used.back();
    }
    for (uint32_t t = 0; t < used.size(); ++t) {
      const double share = scenario_.tenants[t].weight / weights;
      const double error = std::abs(absl::FDivDuration(used[t], all) / share - 1);
      outcome_.worst_window = std::max(outcome_.worst_window, error);
      Require(error <= 0.05,
              absl::StrCat("a tenant had ", absl::FDivDuration(used[t], all),
                           " of ten seconds instead of ", share),
              0, t);
    }
  }
}

void Simulation::CheckHasNoPlace(uint64_t task) {
  bool is_any_up = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (!devices_[d]->IsUp()) continue;
    is_any_up = true;
    Require(devices_[d]->is_wrong[tasks_[task].op % scenario_.operators],
            "refused beside a device that offers it", d, task);
  }
  outcome_.not_offered += is_any_up;
}

void Simulation::CheckEnd() {
  for (uint64_t i = 0; i < tasks_.size(); ++i) {
    Require(tasks_[i].state == State::kEnded, "a task never ended", tasks_[i].device, i);
  }
  for (size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = *devices_[d];
    Require(device.queue.IsEmpty() && device.running.empty(), "something is left", d, 0);
    Require(device.queue.booked_bytes() == 0, "memory is left", d, 0);
    Require(device.pool.statistics().allocated_bytes == 0, "the pool still lends", d, 0);
    Require(device.IsUp(), "the device never came back", d, 0);
    if (!scenario_.memory_is_tight && !device.was_slow) CheckShares(d);
  }
  for (uint32_t t = 0; t < admissions_.size(); ++t) {
    Require(admissions_[t].tenant->pending() == 0, "a request stays pending", 0, t);
  }
  if (scenario_.keeps_shares) CheckWindows();
  Require(outcome_.requests() == tasks_.size(), "ends and tasks differ in number", 0, 0);
}

}  // namespace opserve::simulation
