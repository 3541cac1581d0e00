// Who gets how much of a device, over virtual time.

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/schedule/policy/fair_queue.h"
#include "tests/unit/server/named_task.h"

namespace opserve::server {
namespace {

using NumberedQueue = FairQueue;

absl::Duration Ms(double ms) { return absl::Milliseconds(1) * ms; }

// One device whose lanes always take what goes next. Tenants that flood have a backlog always.
class Device {
 public:
  struct Run {
    uint32_t tenant;
    absl::Time start, end;
  };
  struct Flood {
    uint32_t tenant;
    absl::Duration actual;
    absl::Duration estimate;
  };

  explicit Device(int lanes) : free_lanes_(lanes) {}

  void SetWeight(uint32_t tenant, uint32_t weight) {
    ASSERT_TRUE(queue_.SetWeight(tenant, weight).ok());
  }
  void StartFlood(const Flood& flood) { floods_.push_back(flood); }
  void StopFlood(uint32_t tenant) {
    std::erase_if(floods_, [tenant](const Flood& flood) { return flood.tenant == tenant; });
  }
  void Push(uint32_t tenant, absl::Duration actual, absl::Duration estimate) {
    NumberedQueue::Entry entry{
        .task = Named(static_cast<int>(costs_.size())), .tenant = tenant, .estimate = estimate};
    ASSERT_TRUE(queue_.Push(&entry, now_).ok());
    costs_.push_back(actual);
    Fill();
  }

  void RunUntil(absl::Time end) {
    Fill();
    while (!running_.empty() && running_.begin()->first <= end) {
      now_ = running_.begin()->first;
      const auto [charge, actual] = running_.begin()->second;
      running_.erase(running_.begin());
      queue_.Ended(charge, actual);
      ++free_lanes_;
      Fill();
    }
    now_ = end;
  }
  void RunFor(absl::Duration time) { RunUntil(now_ + time); }

  absl::Time now() const { return now_; }
  const std::vector<Run>& runs() const { return runs_; }
  NumberedQueue& queue() { return queue_; }

  // Lane time of a tenant between two times.
  absl::Duration Used(uint32_t tenant, absl::Time from, absl::Time to) const {
    absl::Duration used;
    for (const Run& run : runs_) {
      if (run.tenant != tenant) continue;
      used += std::max(absl::ZeroDuration(), std::min(run.end, to) - std::max(run.start, from));
    }
    return used;
  }

 private:
  void Fill() {
    for (const Flood& flood : floods_) {
      while (queue_.depth(flood.tenant) < 8) {
        NumberedQueue::Entry entry{.task = Named(static_cast<int>(costs_.size())),
                                   .tenant = flood.tenant,
                                   .estimate = flood.estimate};
        ASSERT_TRUE(queue_.Push(&entry, now_).ok());
        costs_.push_back(flood.actual);
      }
    }
    while (free_lanes_ > 0 && queue_.Next() != nullptr) {
      const NumberedQueue::Started started = queue_.PopNext();
      const absl::Duration actual = costs_[NameOf<int>(started.entry)];
      runs_.push_back({started.entry.tenant, now_, now_ + actual});
      running_.emplace(now_ + actual, std::make_pair(started.charge, actual));
      --free_lanes_;
    }
  }

  NumberedQueue queue_{{}};
  absl::Time now_ = absl::UnixEpoch();
  int free_lanes_;
  std::vector<Flood> floods_;
  std::vector<absl::Duration> costs_;
  std::vector<Run> runs_;
  std::multimap<absl::Time, std::pair<TenantShares::Charge, absl::Duration>> running_;
};

struct ShareCase {
  const char* name;
  int lanes;
  uint32_t weight_a, weight_b;
  absl::Duration actual_a, actual_b;
  double estimate_a, estimate_b;  // of the actual cost
};

TEST(FairSharesTest, FloodsShareByWeightInEveryTenSeconds) {
  for (const ShareCase& c : {
           ShareCase{"equal costs", 1, 1, 3, Ms(10), Ms(10), 1, 1},
           {"small against large", 1, 1, 3, Ms(1), Ms(100), 1, 1},
           {"large against small", 1, 1, 3, Ms(100), Ms(1), 1, 1},
           {"four lanes", 4, 1, 3, Ms(1), Ms(100), 1, 1},
           {"four lanes, the other way", 4, 1, 3, Ms(100), Ms(1), 1, 1},
           {"estimates a tenth of the cost", 4, 1, 3, Ms(1), Ms(100), 0.1, 0.1},
           {"one far too high, one far too low", 4, 1, 3, Ms(2), Ms(50), 50, 0.01},
           {"one far too low, one far too high", 4, 1, 3, Ms(50), Ms(2), 0.01, 50},
           {"equal weights", 2, 7, 7, Ms(1), Ms(100), 1, 1},
       }) {
    Device device(c.lanes);
    device.SetWeight(1, c.weight_a);
    device.SetWeight(2, c.weight_b);
    device.StartFlood({1, c.actual_a, c.actual_a * c.estimate_a});
    device.StartFlood({2, c.actual_b, c.actual_b * c.estimate_b});
    device.RunFor(absl::Seconds(25));
    const double expected = static_cast<double>(c.weight_a) / c.weight_b;
    for (absl::Time from = absl::UnixEpoch(); from <= absl::UnixEpoch() + absl::Seconds(15);
         from += Ms(500)) {
      const absl::Time to = from + absl::Seconds(10);
      const double ratio = absl::FDivDuration(device.Used(1, from, to), device.Used(2, from, to));
      ASSERT_NEAR(ratio / expected, 1, 0.05) << c.name << " from " << from;
    }
  }
}

TEST(FairSharesTest, QuietTenantWaitsForOneExecutionAtMost) {
  // The flood's estimates may be anything.
  for (const double estimate : {0.01, 1.0, 100.0}) {
    for (const int lanes : {1, 4}) {
      Device device(lanes);
      device.StartFlood({1, Ms(50), Ms(50) * estimate});
      std::vector<absl::Time> arrivals;
      for (int i = 0; i < 200; ++i) {
        device.RunFor(Ms(97.3));
        arrivals.push_back(device.now());
        device.Push(2, Ms(1), Ms(1));
      }
      device.RunFor(absl::Seconds(1));
      size_t seen = 0;
      for (const Device::Run& run : device.runs()) {
        if (run.tenant != 2) continue;
        EXPECT_LE(run.start - arrivals[seen++], Ms(50));
      }
      EXPECT_EQ(seen, arrivals.size());
    }
  }
}

TEST(FairSharesTest, IdleShareIsLentAtOnceAndReturnedWithinOneExecution) {
  Device device(2);
  device.SetWeight(1, 1);
  device.SetWeight(2, 9);
  device.StartFlood({1, Ms(20), Ms(20)});
  device.RunFor(absl::Seconds(5));
  EXPECT_EQ(device.Used(1, absl::UnixEpoch(), device.now()), absl::Seconds(10)) << "both lanes";

  const absl::Time back = device.now();
  device.StartFlood({2, Ms(20), Ms(20)});
  device.RunFor(absl::Seconds(2));
  // The first owes nothing for what it was lent: it has its tenth at once.
  EXPECT_GE(device.Used(2, back, back + Ms(200)), 0.8 * Ms(400) - Ms(40));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(device.Used(1, back, device.now())), 400, 45);

  const absl::Time gone = device.now();
  device.StopFlood(2);
  device.RunFor(absl::Seconds(2));
  // What the second had queued still runs; then everything is the first's again.
  EXPECT_EQ(device.Used(1, gone + absl::Seconds(1), device.now()), absl::Seconds(2));
}

TEST(FairSharesTest, NobodySavesUpWhileIdle) {
  Device device(1);
  device.StartFlood({1, Ms(10), Ms(10)});
  device.Push(2, Ms(10), Ms(10));
  device.RunFor(absl::Seconds(100));
  const absl::Time back = device.now();
  device.StartFlood({2, Ms(10), Ms(10)});
  device.RunFor(absl::Seconds(1));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(device.Used(1, back, device.now())), 500, 20);
}

TEST(FairSharesTest, NothingIsOwedAfterEverybodyWasIdle) {
  Device device(1);
  device.Push(1, absl::Seconds(100), Ms(1));  // alone, and far longer than thought
  device.RunFor(absl::Seconds(200));
  const absl::Time back = device.now();
  device.StartFlood({1, Ms(10), Ms(10)});
  device.StartFlood({2, Ms(10), Ms(10)});
  device.RunFor(absl::Seconds(1));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(device.Used(1, back, device.now())), 500, 20);
}

TEST(FairSharesTest, ATenantWhoseQueueIsEmptyForAMomentKeepsItsShare) {
  // It sends its next request when one starts: one runs, one waits, but none just after a start.
  NumberedQueue queue({});
  ASSERT_TRUE(queue.SetWeight(1, 3).ok());
  std::map<uint32_t, absl::Duration> used;
  const std::map<uint32_t, absl::Duration> cost = {{1, Ms(10)}, {2, Ms(100)}};
  const auto push = [&](uint32_t tenant) {
    NumberedQueue::Entry entry{.task = nullptr, .tenant = tenant, .estimate = cost.at(tenant)};
    ASSERT_TRUE(queue.Push(&entry, absl::UnixEpoch()).ok());
  };
  push(1);
  for (int i = 0; i < 4; ++i) push(2);
  for (int i = 0; i < 2000; ++i) {
    const NumberedQueue::Started started = queue.PopNext();
    const uint32_t tenant = started.entry.tenant;
    used[tenant] += cost.at(tenant);
    push(tenant);
    queue.Ended(started.charge, cost.at(tenant));
  }
  EXPECT_NEAR(absl::FDivDuration(used[1], used[2]), 3, 0.15);
}

TEST(FairSharesTest, ATenantThatReturnsDoesNotPayForOthersWrongEstimates) {
  NumberedQueue queue({});
  const auto push = [&](uint32_t tenant, absl::Duration estimate) {
    NumberedQueue::Entry entry{.task = nullptr, .tenant = tenant, .estimate = estimate};
    ASSERT_TRUE(queue.Push(&entry, absl::UnixEpoch()).ok());
  };
  push(1, absl::Seconds(10));  // thought to be far longer than it is
  for (int i = 0; i < 20; ++i) push(1, Ms(10));
  const NumberedQueue::Started overrated = queue.PopNext();
  const NumberedQueue::Started other = queue.PopNext();
  push(2, Ms(10));
  push(2, Ms(10));
  queue.Ended(overrated.charge, Ms(10));
  std::vector<uint32_t> order;
  for (int i = 0; i < 4; ++i) {
    const NumberedQueue::Started started = queue.PopNext();
    order.push_back(started.entry.tenant);
    queue.Ended(started.charge, Ms(10));
  }
  queue.Ended(other.charge, Ms(10));
  EXPECT_EQ(order.front(), 2u) << "it goes first";
  EXPECT_EQ(std::count(order.begin(), order.end(), 2u), 2) << "and is not behind after that";
}

TEST(FairSharesTest, WeightsChangeAtAnyTime) {
  Device device(1);
  device.StartFlood({1, Ms(10), Ms(10)});
  device.StartFlood({2, Ms(10), Ms(10)});
  for (const uint32_t weight : {1u, 4u, 1000u, 2u}) {
    device.SetWeight(2, weight);
    device.RunFor(absl::Seconds(1));
    const absl::Time from = device.now();
    device.RunFor(absl::Seconds(20));
    const double share = absl::FDivDuration(device.Used(2, from, device.now()), absl::Seconds(20));
    EXPECT_NEAR(share, weight / (weight + 1.0), 0.01);
  }
}

TEST(FairSharesTest, LagSaysHowFarBehindATenantIs) {
  Device device(1);
  device.SetWeight(2, 3);
  device.StartFlood({1, Ms(10), Ms(10)});
  device.StartFlood({2, Ms(10), Ms(10)});
  for (int i = 0; i < 100; ++i) {
    device.RunFor(Ms(10));
    EXPECT_LE(absl::AbsDuration(device.queue().Lag(1)), Ms(20));
    // What one is ahead, the others are behind.
    EXPECT_LE(absl::AbsDuration(device.queue().Lag(1) + device.queue().Lag(2)),
              absl::Microseconds(1));
  }
  EXPECT_EQ(device.queue().Lag(3), absl::ZeroDuration());
  // One long execution of the first puts the second behind by its share of it.
  NumberedQueue queue({});
  for (const uint32_t tenant : {1, 2, 1, 2}) {
    NumberedQueue::Entry entry{.task = nullptr, .tenant = tenant, .estimate = Ms(10)};
    ASSERT_TRUE(queue.Push(&entry, absl::UnixEpoch()).ok());
  }
  const NumberedQueue::Started one = queue.PopNext();
  const NumberedQueue::Started two = queue.PopNext();
  queue.Ended(one.charge, Ms(100));
  queue.Ended(two.charge, Ms(10));
  EXPECT_EQ(queue.Lag(2), Ms(45));
  EXPECT_EQ(queue.Lag(1), -Ms(45));
  std::map<uint32_t, absl::Duration> lags;
  queue.VisitLags([&](uint32_t tenant, absl::Duration lag) { lags[tenant] = lag; });
  EXPECT_EQ(lags, (std::map<uint32_t, absl::Duration>{{1, -Ms(45)}, {2, Ms(45)}}));
}

TEST(FairSharesTest, ATaskThatOutlastsItsEstimateCountsWhileItRuns) {
  NumberedQueue queue{{}};
  const auto push = [&](uint32_t tenant) {
    NumberedQueue::Entry entry{.task = nullptr, .tenant = tenant, .estimate = Ms(1)};
    ASSERT_TRUE(queue.Push(&entry, absl::UnixEpoch()).ok());
  };
  for (int i = 0; i < 10; ++i) {
    push(1);
    push(2);
  }
  NumberedQueue::Started long_one = queue.PopNext();
  ASSERT_EQ(long_one.entry.tenant, 1u);

  queue.GoesOn(Ms(3), &long_one.charge);
  queue.GoesOn(Ms(5), &long_one.charge);

  // The other tenant has as much first, one by one.
  for (int i = 0; i < 5; ++i) {
    const NumberedQueue::Started other = queue.PopNext();
    EXPECT_EQ(other.entry.tenant, 2u) << i;
    queue.Ended(other.charge, Ms(1));
  }
  // In the end it counts once.
  queue.Ended(long_one.charge, Ms(6));
  EXPECT_EQ(queue.PopNext().entry.tenant, 2u);
  EXPECT_EQ(queue.PopNext().entry.tenant, 1u);
}

}  // namespace
}  // namespace opserve::server
