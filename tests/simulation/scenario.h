// What a simulation plays: devices, tenants and what goes wrong, all from one seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"
#include "server/schedule/policy/memory_zones.h"

namespace opserve::simulation {

// Random numbers that are the same with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(engine_() % static_cast<uint64_t>(most - least + 1));
  }
  bool Happens(double probability) { return Unit() < probability; }
  absl::Duration Exponential(absl::Duration mean);
  // Heavy-tailed from `least`, cut off at `most`; the smaller `alpha`, the heavier.
  absl::Duration Pareto(absl::Duration least, absl::Duration most, double alpha);

 private:
  std::mt19937_64 engine_;
};

// kFlood: a backlog on every device. kClosed: `burst` requests in progress, each sent `interval`
// (in the mean) after an answer, to the device that the daemon would choose.
inline constexpr int64_t kMostMessageBytes = 1000;
// The device's memory is divided by it, in scenarios where it is tight.
inline constexpr uint64_t kMemoryUnit = 4096;

enum class Load { kFlood, kClosed, kPoisson, kBursts };

// What befalls a device. kLost: it is gone at once, with all that runs there. kHang: no task ends
// any more, until each is aborted at the execution timeout. kHold: calls on it do not return for
// long, unless its work is stopped. kDead: not even then.
enum class Breakdown { kLost, kHang, kHold, kDead };
inline constexpr int64_t kBreakdownKinds = 4;

struct TenantPlan {
  uint32_t weight = 1;
  server::MemoryLimits limits = {};
  Load load = Load::kPoisson;
  absl::Duration interval = absl::Milliseconds(50);  // mean, between requests or bursts
  int64_t burst = 1;
  absl::Duration least_cost = absl::Milliseconds(1);
  absl::Duration most_cost = absl::Milliseconds(20);
  double tail = 1.5;
  // Work tells nothing about the cost: it differs by up to this factor between tasks, and estimates
  // are wrong by as much where the cost model scales them from other work.
  double estimate_error = 1;
  double deadline_share = 0;
  double cancel_share = 0;
  absl::Duration patience = absl::Milliseconds(200);  // mean, until a deadline or a cancellation
  uint64_t least_bytes = 1;
  uint64_t most_bytes = 1;
  uint64_t requests_per_second = 0;  // 0: any number
  uint64_t bytes_per_second = 0;     // of messages, with up to kMostMessageBytes each; likewise
  uint32_t max_pending = UINT32_MAX;
};

struct Scenario {
  uint64_t seed = 0;
  size_t devices = 1;
  uint32_t lanes = 1;
  size_t capacity = 256;
  size_t capacity_per_tenant = 32;
  uint64_t device_bytes = 1 << 20;
  bool memory_is_tight = false;  // tasks may have to wait for memory
  absl::Duration duration = absl::Seconds(2);
  int64_t breakdowns = 0;
  bool has_all_breakdowns = false;       // of all kinds; else devices are lost
  bool has_hasty_administrator = false;  // resumes devices as soon as they are in quarantine
  absl::Duration queue_max_age = absl::Seconds(30);
  uint32_t operators = 1;
  // Of the operators that a device computes wrong, drawn at its start and after each breakdown. It
  // must be given no task with one of them.
  double wrong_share = 0;
  bool keeps_shares = false;  // in every ten seconds, on all devices together
  std::vector<TenantPlan> tenants = {};

  // More than a task of the tenant has of a lane: beside its cost it may wait there for memory,
  // until all others that run have ended.
  absl::Duration MostTime(const TenantPlan& plan) const;
  // More than it has, or is charged for it.
  absl::Duration MostCharge(const TenantPlan& plan) const;
};

Scenario SmallScenario(uint64_t seed);
// The same without floods, on devices that break down and compute operators wrong.
Scenario WrongOperatorsScenario(uint64_t seed);
// Devices that break down in every way, and tenants that wait no longer than a moment.
Scenario FaultyScenario(uint64_t seed);
// Two or three floods alone, for long enough to compare their shares closely.
Scenario FloodScenario(uint64_t seed);
// Two tenants with weights of 1 and 3 that both want all devices: one sends tiny requests, the
// other heavy ones, up to 500 times as large. `tiny_weight`: of the former.
Scenario TinyAndHeavyScenario(uint64_t seed, uint32_t tiny_weight);
// 64 devices, 1000 tenants.
Scenario LargeScenario(uint64_t seed);

}  // namespace opserve::simulation
