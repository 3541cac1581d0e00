#include "tests/simulation/scenario.h"

#include <algorithm>
#include <cmath>

#include "server/schedule/policy/cost_model.h"

namespace opserve::simulation {
namespace {

// Every tenant can have at least one task at a time: what its tasks need fits its limits, and what
// is not reserved.
void LimitMemory(Scenario* scenario, Random& random) {
  scenario->memory_is_tight = true;
  const auto bytes = [&random](int64_t least, int64_t most) {
    return static_cast<uint64_t>(random.Between(least, most)) * kMemoryUnit;
  };
  scenario->device_bytes = 1000 * kMemoryUnit;
  uint64_t unreserved = scenario->device_bytes;
  for (TenantPlan& plan : scenario->tenants) {
    plan.least_bytes = 10 * kMemoryUnit;
    plan.most_bytes = (random.Happens(0.2) ? 500 : 100) * kMemoryUnit;
    if (random.Happens(0.3) && unreserved > 700 * kMemoryUnit) {
      plan.limits.reserved = bytes(10, 100);
    }
    unreserved -= plan.limits.reserved;
    plan.limits.soft = std::max(plan.limits.reserved, bytes(50, 400));
    plan.limits.hard = std::max(plan.limits.soft, bytes(500, 1000));
  }
}

TenantPlan RandomTenant(Random& random) {
  TenantPlan plan;
  plan.weight = static_cast<uint32_t>(random.Between(1, 8));
  const double load = random.Unit();
  plan.load = load < 0.4 ? Load::kFlood : load < 0.7 ? Load::kPoisson : Load::kBursts;
  plan.interval = absl::Milliseconds(random.Between(5, 100));
  plan.burst = plan.load == Load::kBursts ? random.Between(2, 40) : 1;
  plan.least_cost = absl::Microseconds(random.Between(500, 5000));
  plan.most_cost = plan.least_cost * random.Between(1, 20);
  plan.estimate_error = random.Happens(0.5) ? 1 : static_cast<double>(random.Between(1, 10));
  plan.deadline_share = random.Happens(0.5) ? random.Unit() : 0;
  plan.cancel_share = random.Happens(0.5) ? random.Unit() : 0;
  return plan;
}

void LimitAdmission(TenantPlan& plan, Random& random) {
  if (plan.load == Load::kFlood) return;
  if (random.Happens(0.3)) {
    const auto rate = static_cast<uint64_t>(random.Between(5, 100));
    (random.Happens(0.5) ? plan.requests_per_second = rate
                         : plan.bytes_per_second = rate * kMostMessageBytes);
  }
  if (random.Happens(0.3)) plan.max_pending = static_cast<uint32_t>(random.Between(2, 20));
}

}  // namespace

absl::Duration Random::Exponential(absl::Duration mean) { return -std::log(1 - Unit()) * mean; }

absl::Duration Random::Pareto(absl::Duration least, absl::Duration most, double alpha) {
  return std::min(most, least * std::pow(1 - Unit(), -1 / alpha));
}

absl::Duration Scenario::MostTime(const TenantPlan& plan) const {
  return plan.most_cost * (memory_is_tight ? lanes : 1);
}

absl::Duration Scenario::MostCharge(const TenantPlan& plan) const {
  // The cost model knows nothing of a tenant's first tasks.
  return std::max(MostTime(plan) * plan.estimate_error, server::CostModel::Options().unknown);
}

Scenario SmallScenario(uint64_t seed) {
  Random random(seed);
  Scenario scenario{.seed = seed,
                    .devices = static_cast<size_t>(random.Between(1, 4)),
                    .lanes = static_cast<uint32_t>(random.Between(1, 4)),
                    .capacity = static_cast<size_t>(random.Between(20, 300)),
                    .capacity_per_tenant = static_cast<size_t>(random.Between(6, 40))};
  scenario.duration = absl::Milliseconds(random.Between(300, 2500));
  scenario.breakdowns = random.Happens(0.5) ? random.Between(1, 5) : 0;
  const int64_t tenants = random.Between(1, 12);
  for (int64_t i = 0; i < tenants; ++i) {
    scenario.tenants.push_back(RandomTenant(random));
    LimitAdmission(scenario.tenants.back(), random);
  }
  if (random.Happens(0.4)) LimitMemory(&scenario, random);
  return scenario;
}

Scenario WrongOperatorsScenario(uint64_t seed) {
  Scenario scenario = SmallScenario(seed);
  Random random(seed);
  scenario.devices = static_cast<size_t>(random.Between(2, 4));
  scenario.breakdowns = random.Between(2, 8);
  scenario.operators = 8;
  scenario.wrong_share = 0.3;
  for (TenantPlan& plan : scenario.tenants) {
    if (plan.load == Load::kFlood) plan.load = Load::kPoisson;  // a flood fills all devices
  }
  return scenario;
}

Scenario FaultyScenario(uint64_t seed) {
  Scenario scenario = SmallScenario(seed);
  Random random(seed);
  scenario.duration = absl::Seconds(random.Between(2, 8));
  scenario.breakdowns = random.Between(2, 20);
  scenario.has_all_breakdowns = true;
  scenario.has_hasty_administrator = random.Happens(0.5);
  scenario.queue_max_age = absl::Milliseconds(random.Between(100, 2000));
  return scenario;
}

Scenario FloodScenario(uint64_t seed) {
  Random random(seed);
  Scenario scenario{.seed = seed, .lanes = static_cast<uint32_t>(random.Between(1, 4))};
  scenario.duration = absl::Seconds(30);
  const int64_t tenants = random.Between(2, 3);
  for (int64_t i = 0; i < tenants; ++i) {
    TenantPlan plan = RandomTenant(random);
    plan.load = Load::kFlood;
    plan.weight = static_cast<uint32_t>(random.Between(1, 4));
    plan.least_cost = absl::Milliseconds(random.Between(1, 20));
    plan.most_cost = 2 * plan.least_cost;
    plan.estimate_error = static_cast<double>(random.Between(1, 3));
    scenario.tenants.push_back(plan);
  }
  return scenario;
}

Scenario TinyAndHeavyScenario(uint64_t seed, uint32_t tiny_weight) {
  Random random(seed);
  Scenario scenario{.seed = seed,
                    .devices = static_cast<size_t>(random.Between(1, 4)),
                    .lanes = static_cast<uint32_t>(random.Between(1, 2)),
                    .keeps_shares = true};
  scenario.duration = absl::Seconds(14);
  const auto lanes = static_cast<int64_t>(scenario.devices * scenario.lanes);
  TenantPlan tiny{.weight = tiny_weight, .load = Load::kClosed};
  // Few lanes can be kept busy by tiny requests without many millions of them.
  tiny.least_cost = absl::Microseconds(lanes <= 2 ? 20 : 100 * lanes);
  tiny.most_cost = 3 * tiny.least_cost;
  tiny.interval = absl::Microseconds(50);
  tiny.burst = 32 * lanes;
  TenantPlan heavy{.weight = 4 - tiny_weight, .load = Load::kClosed};
  heavy.least_cost = absl::Milliseconds(10);
  heavy.most_cost = 2 * heavy.least_cost;
  heavy.interval = absl::Milliseconds(1);
  heavy.burst = random.Between(2, 4) * lanes;
  for (TenantPlan* plan : {&tiny, &heavy}) {
    plan->estimate_error = static_cast<double>(random.Between(1, 3));
    scenario.tenants.push_back(*plan);
  }
  scenario.capacity_per_tenant = 1024;
  scenario.capacity = 4096;
  return scenario;
}

Scenario LargeScenario(uint64_t seed) {
  Random random(seed);
  Scenario scenario{.seed = seed,
                    .devices = 64,
                    .lanes = 4,
                    .capacity = 4096,
                    .capacity_per_tenant = 64,
                    .breakdowns = 20};
  scenario.duration = absl::Seconds(5);
  for (int i = 0; i < 1000; ++i) {
    TenantPlan plan = RandomTenant(random);
    plan.load = i % 100 == 0 ? Load::kFlood : i % 2 == 0 ? Load::kPoisson : Load::kBursts;
    plan.interval = absl::Milliseconds(random.Between(100, 2000)) * plan.burst;
    plan.most_cost = std::min(plan.most_cost, absl::Milliseconds(50));
    LimitAdmission(plan, random);
    scenario.tenants.push_back(plan);
  }
  return scenario;
}

}  // namespace opserve::simulation
