// What must hold in a simulation.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/simulation/simulation.h"

namespace opserve::simulation {

void Simulation::CheckStep(size_t d) {
  const Device& device = devices_[d];
  Require(device.queue->depth() == device.waiting, "the queue's depth is wrong", d, 0);
  Require(device.waiting <= scenario_.capacity, "the queue is too long", d, 0);
  Require(device.running.size() <= scenario_.lanes, "more runs than there are lanes", d, 0);
}

void Simulation::CheckIdleLanes(size_t d) {
  const Device& device = devices_[d];
  if (device.running.size() == scenario_.lanes) return;
  Require(!device.queue->MayStart(), "a lane is idle though something could start", d, 0);
  if (!scenario_.memory_is_tight) {
    Require(device.waiting == 0, "a lane is idle though something waits", d, 0);
  }
  // Nobody who has nothing running waits while the device is idle.
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
    work += (scenario_.lanes + 1.0) * (ratio * own.MostCharge() + other.MostCharge());
    longest = std::max(longest, other.most_cost);
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
  const TenantAccount& tenant = devices_[d].tenants[t];
  Require(now_ - tenant.hungry_since <= longest_wait_[t], "a tenant with a backlog starved", d, t);
}

void Simulation::CheckShares(size_t d) {
  const Device& device = devices_[d];
  for (uint32_t a = 0; a < scenario_.tenants.size(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (!device.tenants[a].is_saturating || !device.tenants[b].is_saturating) continue;
      const TenantPlan& first = scenario_.tenants[a];
      const TenantPlan& second = scenario_.tenants[b];
      const absl::Duration had_first = device.tenants[a].used / first.weight;
      const absl::Duration had_second = device.tenants[b].used / second.weight;
      // Whole executions cannot be divided; each time the device breaks down all starts anew.
      const absl::Duration granularity =
          (1.0 + static_cast<double>(device.breakdowns)) * (scenario_.lanes + 1) *
          (first.MostCharge() / first.weight + second.MostCharge() / second.weight);
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
  for (const Device& device : devices_) {
    for (size_t t = 0; t < used.size(); ++t) used[t] += device.tenants[t].used;
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
    if (!devices_[d].is_up) continue;
    is_any_up = true;
    Require(devices_[d].is_wrong[tasks_[task].op], "refused beside a device that offers it", d,
            task);
  }
  outcome_.not_offered += is_any_up;
}

void Simulation::CheckEnd() {
  for (uint64_t i = 0; i < tasks_.size(); ++i) {
    Require(tasks_[i].state == State::kEnded, "a task never ended", tasks_[i].device, i);
  }
  for (size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = devices_[d];
    Require(device.queue->depth() == 0 && device.running.empty(), "something is left", d, 0);
    Require(device.queue->memory().used() == 0, "memory is left", d, 0);
    if (!scenario_.memory_is_tight) CheckShares(d);
  }
  if (scenario_.keeps_shares) CheckWindows();
  Require(outcome_.completed + outcome_.broken_off + outcome_.expired + outcome_.cancelled +
                  outcome_.refused ==
              tasks_.size(),
          "ends and tasks differ in number", 0, 0);
}

}  // namespace opserve::simulation
