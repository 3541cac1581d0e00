#include "tests/simulation/residents_simulation.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/seed.h"

namespace opserve::simulation {
namespace {

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr uint64_t kSeeds = 30;
#else
constexpr uint64_t kSeeds = 300;
#endif

using Kind = ResidentsSimulation::Kind;
using ResidentsOutcome = ResidentsSimulation::Outcome;

TEST(ResidentsSimulationTest, TensorsAreUsedInTurnAndNothingIsLeft) {
  ResidentsOutcome sum;
  const uint64_t first = TestSeed(0);
  for (uint64_t seed = first; seed < first + kSeeds && !HasFailure(); ++seed) {
    const ResidentsOutcome outcome =
        ResidentsSimulation(ResidentsSimulation::RandomPlan(seed)).Run();
    EXPECT_EQ(outcome.violation, "") << "seed " << seed;
    for (uint32_t kind = 0; kind < ResidentsSimulation::kKinds; ++kind) {
      sum.done[kind] += outcome.done[kind];
    }
    sum.failed += outcome.failed;
    sum.waited += outcome.waited;
    sum.cut_short += outcome.cut_short;
    sum.no_memory += outcome.no_memory;
    sum.departures += outcome.departures;
    sum.copied += outcome.copied;
    sum.arrived += outcome.arrived;
  }
  std::cout << "short, long, keep, read, replace, donate, depart, arrive:";
  for (const uint64_t done : sum.done) std::cout << " " << done;
  std::cout << "; " << sum.failed << " failed, " << sum.no_memory << " of them for memory; "
            << sum.waited << " waited for a tensor, " << sum.cut_short << " were cut short; "
            << sum.departures << " results left by themselves, " << sum.copied
            << " were copied for want of room; the payloads of " << sum.arrived
            << " arrived later\n";
  // Nothing is checked by simulations in which nothing happens.
  for (const uint64_t done : sum.done) EXPECT_GT(done, 10 * kSeeds);
  for (const uint64_t count : {sum.failed, sum.waited, sum.cut_short, sum.no_memory, sum.departures,
                               sum.copied, sum.arrived}) {
    EXPECT_GT(count, kSeeds);
  }
}

// A tenant with programs of up to half a second, and one with small requests.
TEST(ResidentsSimulationTest, LongProgramsShareDevicesWithShortRequestsByWeight) {
  struct Case {
    uint32_t long_weight;
    uint32_t short_weight;
    std::vector<Kind> short_kinds;
  };
  const std::vector<Kind> small = {Kind::kShort};
  const std::vector<Kind> with_tensors = {Kind::kShort,   Kind::kKeep,   Kind::kRead,
                                          Kind::kReplace, Kind::kDonate, Kind::kDepart};
  for (const auto& [long_weight, short_weight, short_kinds] :
       {Case{1, 1, small}, Case{1, 3, small}, Case{3, 1, small}, Case{1, 1, with_tensors}}) {
    for (const uint32_t lanes : {1, 4}) {
      SCOPED_TRACE(absl::StrCat(long_weight, " to ", short_weight, ", ", short_kinds.size(),
                                " kinds, ", lanes, " lanes"));
      const auto outcome =
          ResidentsSimulation({.seed = lanes,
                               .lanes = lanes,
                               .duration = absl::Minutes(2),
                               .tenants = {{long_weight, 3 * lanes, {Kind::kLong}},
                                           {short_weight, 64 * lanes, short_kinds}}})
              .Run();
      EXPECT_EQ(outcome.violation, "");
      const double share = absl::FDivDuration(outcome.used[0], outcome.used[0] + outcome.used[1]);
      EXPECT_NEAR(share, static_cast<double>(long_weight) / (long_weight + short_weight), 0.03);
    }
  }
}

TEST(ResidentsSimulationTest, TheSameSeedGivesTheSameRun) {
  for (const uint64_t seed : {3, 17}) {
    const auto plan = ResidentsSimulation::RandomPlan(seed);
    const ResidentsOutcome first = ResidentsSimulation(plan).Run();
    const ResidentsOutcome second = ResidentsSimulation(plan).Run();
    EXPECT_EQ(first.done, second.done);
    EXPECT_EQ(first.failed, second.failed);
    EXPECT_EQ(first.used, second.used);
  }
}

}  // namespace
}  // namespace opserve::simulation
