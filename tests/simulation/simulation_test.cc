// Thousands of days in the life of the queues. To see a failing one again:
//   simulation_test --seed=N [--log]
// Scenarios that the tests do not run, for a time, and how fast requests are simulated:
//   simulation_test --seconds=N

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>

#include "absl/base/config.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/observability/log.h"
#include "tests/simulation/simulation.h"

namespace opserve::simulation {
namespace {

#ifdef ABSL_HAVE_ADDRESS_SANITIZER  // the same code in fewer scenarios: it makes them slow
constexpr uint64_t kSmall = 100;
constexpr uint64_t kWrong = 30;
constexpr uint64_t kFaulty = 20;
constexpr uint64_t kFloods = 5;
constexpr uint64_t kTinyAndHeavy = 2;
#else
constexpr uint64_t kSmall = 1000;
constexpr uint64_t kWrong = 200;
constexpr uint64_t kFaulty = 200;
constexpr uint64_t kFloods = 50;
constexpr uint64_t kTinyAndHeavy = 12;
#endif

// Seeds say which kind of scenario they are of.
constexpr uint64_t kFirstFlood = 1'000'000;
constexpr uint64_t kLarge = 2'000'000;
constexpr uint64_t kFirstTinyOfWeight1 = 3'000'000;
constexpr uint64_t kFirstTinyOfWeight3 = 4'000'000;
constexpr uint64_t kFirstWrong = 5'000'000;
constexpr uint64_t kFirstFaulty = 6'000'000;

Scenario ScenarioOf(uint64_t seed) {
  if (seed >= kFirstFaulty) return FaultyScenario(seed);
  if (seed >= kFirstWrong) return WrongOperatorsScenario(seed);
  if (seed >= kFirstTinyOfWeight3) return TinyAndHeavyScenario(seed, 3);
  if (seed >= kFirstTinyOfWeight1) return TinyAndHeavyScenario(seed, 1);
  if (seed >= kLarge) return LargeScenario(seed);
  return seed >= kFirstFlood ? FloodScenario(seed) : SmallScenario(seed);
}

void Print(const Outcome& outcome) {
  std::cout << outcome.completed << " completed, " << outcome.broken_off << " broken off, "
            << outcome.expired << " expired, " << outcome.cancelled << " cancelled, "
            << outcome.refused << " refused (" << outcome.infeasible << " infeasible), "
            << outcome.not_admitted << " not admitted; " << outcome.moved << " moves, "
            << outcome.held_up << " held up by memory; " << outcome.resets << " resets, "
            << outcome.failed_attempts << " in vain; log hash " << outcome.log_hash << "\n";
}

Outcome RunSeed(uint64_t seed) {
  Outcome outcome = Simulation(ScenarioOf(seed), nullptr).Run();
  EXPECT_EQ(outcome.violation, "")
      << "see it again with: simulation_test --seed=" << seed << " --log";
  return outcome;
}

// The sums over the scenarios of so many seeds, up to the first that fails.
Outcome RunSeeds(uint64_t first, uint64_t count) {
  Outcome sum;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Outcome outcome = RunSeed(seed);
    sum.completed += outcome.completed;
    sum.broken_off += outcome.broken_off;
    sum.expired += outcome.expired;
    sum.cancelled += outcome.cancelled;
    sum.refused += outcome.refused;
    sum.not_admitted += outcome.not_admitted;
    sum.infeasible += outcome.infeasible;
    sum.not_offered += outcome.not_offered;
    sum.moved += outcome.moved;
    sum.held_up += outcome.held_up;
    sum.resets += outcome.resets;
    sum.failed_attempts += outcome.failed_attempts;
    sum.failures += outcome.failures;
    sum.worst_window = std::max(sum.worst_window, outcome.worst_window);
    sum.log_hash ^= outcome.log_hash;
    if (!outcome.violation.empty()) break;
  }
  Print(sum);
  return sum;
}

TEST(SimulationTest, EverythingHoldsInManySmallScenarios) {
  const Outcome sum = RunSeeds(0, kSmall);
  // Nothing is checked by scenarios in which nothing happens.
  EXPECT_GT(sum.completed, 100 * kSmall);
  for (const uint64_t count : {sum.broken_off, sum.expired, sum.cancelled, sum.refused, sum.moved,
                               sum.not_admitted, sum.infeasible, sum.held_up}) {
    EXPECT_GT(count, kSmall);
  }
}

TEST(SimulationTest, DevicesComeBackFromEveryBreakdownAndAreNeverResetUnderACall) {
  const Outcome sum = RunSeeds(kFirstFaulty, kFaulty);
  for (const uint64_t count : {sum.completed, sum.broken_off, sum.expired, sum.moved, sum.resets,
                               sum.failed_attempts, sum.failures}) {
    EXPECT_GT(count, kFaulty);
  }
}

TEST(SimulationTest, OperatorsRunOnlyWhereTheyAreRight) {
  const Outcome sum = RunSeeds(kFirstWrong, kWrong);
  for (const uint64_t count : {sum.completed, sum.moved, sum.not_offered}) EXPECT_GT(count, kWrong);
}

TEST(SimulationTest, FloodsShareByWeight) { RunSeeds(kFirstFlood, kFloods); }

TEST(SimulationTest, TinyAndHeavyRequestsShareByWeightInEveryTenSeconds) {
  for (const uint64_t first : {kFirstTinyOfWeight1, kFirstTinyOfWeight3}) {
    const double worst = RunSeeds(first, kTinyAndHeavy).worst_window;
    std::cout << "tiny requests of weight " << (first == kFirstTinyOfWeight1 ? 1 : 3)
              << ": a tenant was at most " << 100 * worst << " % of its share from it\n";
  }
}

TEST(SimulationTest, EverythingHoldsWithManyDevicesAndTenants) { Print(RunSeed(kLarge)); }

TEST(SimulationTest, TheSameSeedGivesTheSameEvents) {
  for (const uint64_t seed : {uint64_t{3}, uint64_t{77}, kFirstFlood}) {
    EXPECT_EQ(RunSeed(seed).log_hash, RunSeed(seed).log_hash);
  }
  EXPECT_NE(RunSeed(3).log_hash, RunSeed(4).log_hash);
}

int RunOne(uint64_t seed, bool logs) {
  const Outcome outcome = Simulation(ScenarioOf(seed), logs ? &std::cout : nullptr).Run();
  Print(outcome);
  if (outcome.worst_window > 0) {
    std::cout << "a tenant was at most " << 100 * outcome.worst_window
              << " % of its share from it in ten seconds\n";
  }
  if (outcome.violation.empty()) return 0;
  std::cout << "violated: " << outcome.violation << "\n";
  return 1;
}

int RunFor(absl::Duration duration) {
  const absl::Time start = absl::Now();
  uint64_t requests = 0;
  uint64_t scenarios = 0;
  while (absl::Now() - start < duration) {
    const uint64_t n = scenarios / 3;
    for (const uint64_t seed : {kSmall + n, kFirstWrong + kWrong + n, kFirstFaulty + kFaulty + n}) {
      const Outcome outcome = Simulation(ScenarioOf(seed), nullptr).Run();
      requests += outcome.requests();
      ++scenarios;
      if (outcome.violation.empty()) continue;
      std::cout << "seed " << seed << " violated: " << outcome.violation << "\n";
      return 1;
    }
  }
  const double minutes = absl::FDivDuration(absl::Now() - start, absl::Minutes(1));
  std::cout << scenarios << " scenarios, " << requests
            << " requests: " << std::llround(static_cast<double>(requests) / minutes)
            << " a minute\n";
  return 0;
}

}  // namespace
}  // namespace opserve::simulation

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Lines about thousands of devices that break down.
  if (!opserve::server::SetLogLevel("off").ok()) return 1;
  std::optional<uint64_t> seed;
  std::optional<uint64_t> seconds;
  bool logs = false;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    uint64_t value = 0;
    if (argument == "--log") {
      logs = true;
    } else if (absl::ConsumePrefix(&argument, "--seed=") && absl::SimpleAtoi(argument, &value)) {
      seed = value;
    } else if (absl::ConsumePrefix(&argument, "--seconds=") && absl::SimpleAtoi(argument, &value)) {
      seconds = value;
    } else {
      std::cerr << "usage: simulation_test [--seed=N [--log] | --seconds=N]\n";
      return 2;
    }
  }
  if (seed) return opserve::simulation::RunOne(*seed, logs);
  if (seconds) return opserve::simulation::RunFor(absl::Seconds(*seconds));
  return RUN_ALL_TESTS();
}
