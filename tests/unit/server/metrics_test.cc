// What is counted of requests, tenants and devices, and under which labels it is shown.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "server/device/faults.h"
#include "server/observability/metrics.h"
#include "server/observability/request_metrics.h"
#include "server/observability/stage_clock.h"
#include "server/observability/tenant_amounts.h"
#include "server/observability/tenant_series.h"
#include "server/observability/utilization.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using Families = std::vector<prometheus::MetricFamily>;

// Null: there is none.
const prometheus::ClientMetric* Find(const Families& families, const std::string& family,
                                     const MetricLabels& labels) {
  for (const auto& candidate : families) {
    if (candidate.name != family) continue;
    for (const auto& metric : candidate.metric) {
      size_t matches = 0;
      for (const auto& [name, value] : labels) {
        for (const auto& label : metric.label)
          matches += label.name == name && label.value == value;
      }
      if (matches == labels.size()) return &metric;
    }
  }
  return nullptr;
}

// The counter with these labels among others; -1: there is none.
double Count(const Families& families, const std::string& family, const MetricLabels& labels) {
  const auto* metric = Find(families, family, labels);
  return metric == nullptr ? -1 : metric->counter.value;
}

StageClock ClockUpTo(Stage stage) {
  StageClock clock;
  clock.Book(Stage::kRead);
  clock.Book(stage);
  return clock;
}

TEST(RequestMetricsTest, CountsByTenantOperatorDeviceCodeAndReason) {
  RequestMetrics metrics({"A", "B"}, {0, 3});
  const StageClock clock = ClockUpTo(Stage::kRead);
  metrics.Record(
      {.tenant = 1, .op = 1, .device = 3, .status = {}, .clock = &clock, .request_bytes = 100});
  metrics.Record({.tenant = 0, .op = 1, .status = InvalidCall("B", "x", "y"), .clock = &clock});
  metrics.Record(
      {.op = RequestMetrics::kUnknown, .status = absl::InternalError("z"), .clock = &clock});

  const Families families = metrics.Collect(TenantSeries({"first", "second"}, 200));

  EXPECT_EQ(Count(families, "opserve_requests_total",
                  {{"operator", "B"}, {"tenant", "second"}, {"device", "3"}, {"code", "OK"}}),
            1);
  EXPECT_EQ(Count(families, "opserve_requests_total",
                  {{"tenant", "first"}, {"device", "none"}, {"code", "INVALID_ARGUMENT"}}),
            1);
  EXPECT_EQ(
      Count(families, "opserve_requests_total", {{"tenant", "_nobody"}, {"code", "INTERNAL"}}), 1);
  EXPECT_EQ(Count(families, "opserve_admission_rejections_total",
                  {{"tenant", "first"}, {"reason", "invalid"}}),
            1);
  EXPECT_EQ(
      Find(families, "opserve_request_duration_seconds", {{"operator", "B"}, {"stage", "total"}})
          ->histogram.sample_count,
      1u);
}

TEST(RequestMetricsTest, AddsUpTheRequestsOfEachOperatorThatWasCalled) {
  RequestMetrics metrics({"A", "B"}, {0});
  const StageClock clock = ClockUpTo(Stage::kRead);
  for (const uint64_t bytes : {100, 50}) {
    metrics.Record({.tenant = 0,
                    .op = 1,
                    .device = 0,
                    .status = {},
                    .clock = &clock,
                    .request_bytes = bytes,
                    .response_bytes = 8});
  }
  metrics.Record({.tenant = 0,
                  .op = 1,
                  .status = absl::InternalError("x"),
                  .clock = &clock,
                  .request_bytes = 1});
  metrics.Record({.op = RequestMetrics::kProgram, .status = {}, .clock = &clock});

  const auto totals = metrics.Totals();

  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].first, "B");
  EXPECT_EQ(totals[0].second.requests, 3u);
  EXPECT_EQ(totals[0].second.failed, 1u);
  EXPECT_DOUBLE_EQ(totals[0].second.success_seconds, 2e-9 * clock.total_nanoseconds());
  EXPECT_EQ(totals[0].second.request_bytes, 151u);
  EXPECT_EQ(totals[0].second.response_bytes, 16u);
  EXPECT_EQ(totals[1].first, "program");
  EXPECT_EQ(totals[1].second.requests, 1u);
}

TEST(RequestMetricsTest, TenantsBeyondTheFirstAreCountedTogether) {
  RequestMetrics metrics({"A"}, {0});
  const StageClock clock = ClockUpTo(Stage::kRead);
  for (const uint32_t tenant : {0, 1, 2, 200, 201}) {
    metrics.Record({.tenant = tenant, .op = 0, .status = {}, .clock = &clock});
    metrics.Record({.tenant = tenant,
                    .op = 0,
                    .status = MakeError(Reason::kQueueFull, "full"),
                    .clock = &clock});
  }
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back(absl::StrCat("t", i));
  struct Case {
    size_t max_tenants;
    double others;
  };
  for (const Case& c : {Case{200, 2}, Case{2, 3}, Case{1, 4}}) {
    const Families families = metrics.Collect(TenantSeries(names, c.max_tenants));
    EXPECT_EQ(Count(families, "opserve_requests_total", {{"tenant", "t0"}, {"code", "OK"}}), 1);
    EXPECT_EQ(Count(families, "opserve_requests_total", {{"tenant", "_other"}, {"code", "OK"}}),
              c.others)
        << c.max_tenants;
    EXPECT_EQ(Count(families, "opserve_admission_rejections_total",
                    {{"tenant", "_other"}, {"reason", "queue_full"}}),
              c.others)
        << c.max_tenants;
  }
}

TEST(RequestMetricsTest, LostRequestsAreCountedWhereTheyHadGotTo) {
  RequestMetrics metrics({"A", "B"}, {0});
  const auto record = [&](int op, const absl::Status& status, Stage stage) {
    const StageClock clock = ClockUpTo(stage);
    metrics.Record({.tenant = 0, .op = op, .status = status, .clock = &clock});
  };
  record(0, absl::CancelledError(""), Stage::kQueue);
  record(1, absl::CancelledError(""), Stage::kExecute);
  record(1, absl::CancelledError(""), Stage::kExecute);
  record(0, absl::DeadlineExceededError(""), Stage::kQueue);
  record(1, absl::DeadlineExceededError(""), Stage::kValidate);
  record(RequestMetrics::kProgram, absl::DeadlineExceededError(""), Stage::kExecute);
  record(0, absl::InternalError(""), Stage::kH2d);
  record(0, {}, Stage::kWrite);

  const Families families = metrics.Collect(TenantSeries({"a"}, 200));

  for (int stage = 0; stage < kStages; ++stage) {
    const std::string name(kStageNames[stage]);
    const auto is = [&](Stage other) { return static_cast<Stage>(stage) == other; };
    EXPECT_EQ(Count(families, "opserve_cancelled_requests_total", {{"stage", name}}),
              is(Stage::kQueue)     ? 1
              : is(Stage::kExecute) ? 2
                                    : 0)
        << name;
    const auto misses = [&](const char* op) {
      return Count(families, "opserve_deadline_misses_total", {{"operator", op}, {"stage", name}});
    };
    EXPECT_EQ(misses("A"), is(Stage::kQueue) ? 1 : 0) << name;
    EXPECT_EQ(misses("B"), is(Stage::kValidate) ? 1 : 0) << name;
    EXPECT_EQ(misses("program"), is(Stage::kExecute) ? 1 : 0) << name;
    EXPECT_EQ(misses("unknown"), -1) << name << ": nothing was counted of it";
  }
}

TEST(RequestMetricsTest, WaitsThatClientsAreToldAreMeasuredByReason) {
  RequestMetrics metrics({"A"}, {0});
  const StageClock clock = ClockUpTo(Stage::kQueue);
  const auto refusal = [](Reason reason, int64_t pushback_ms) {
    return MakeError(reason, absl::StatusCode::kResourceExhausted, "", pushback_ms);
  };
  metrics.Record(
      {.tenant = 0, .op = 0, .status = refusal(Reason::kQueueFull, 40), .clock = &clock});
  metrics.RecordRejection(0, refusal(Reason::kQueueFull, 2000));
  metrics.RecordRejection(0, refusal(Reason::kTooLarge, -1));  // never
  metrics.RecordRejection(0, refusal(Reason::kDeviceUnavailable, 0));
  metrics.RecordPushback(refusal(Reason::kDeviceMemory, 1000));
  metrics.RecordPushback(refusal(Reason::kNone, 1000));

  const Families families = metrics.Collect(TenantSeries({"a"}, 200));

  const auto* full = Find(families, "opserve_retry_pushback_seconds", {{"reason", "queue_full"}});
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(full->histogram.sample_count, 2u);
  EXPECT_DOUBLE_EQ(full->histogram.sample_sum, 2.04);
  const auto* memory =
      Find(families, "opserve_retry_pushback_seconds", {{"reason", "device_memory"}});
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->histogram.sample_count, 1u);
  // Refusals that say when to come back are there from the start; others only if they do.
  EXPECT_NE(Find(families, "opserve_retry_pushback_seconds", {{"reason", "draining"}}), nullptr);
  EXPECT_EQ(Find(families, "opserve_retry_pushback_seconds", {{"reason", "too_large"}}), nullptr);
  // A call that is no request is not counted as one that was refused.
  EXPECT_EQ(Count(families, "opserve_admission_rejections_total",
                  {{"tenant", "a"}, {"reason", "device_memory"}}),
            0);
}

TEST(RequestMetricsTest, RefusalsOfKnownTenantsAreCountedFromZero) {
  const RequestMetrics metrics({"A"}, {0});

  const Families families = metrics.Collect(TenantSeries({"a", "b"}, 200));

  for (const char* tenant : {"a", "b", "_nobody"}) {
    EXPECT_EQ(Count(families, "opserve_admission_rejections_total",
                    {{"tenant", tenant}, {"reason", "queue_full"}}),
              0)
        << tenant;
  }
}

TEST(HistogramTest, BucketsAreCumulativeAndIncludeTheirBound) {
  static constexpr double kBounds[] = {1, 2};
  Histogram histogram(kBounds);
  for (double value : {0.5, 1.0, 1.5, 2.0, 7.0}) histogram.Observe(value);

  const auto collected = histogram.Collect();

  ASSERT_EQ(collected.bucket.size(), 3u);
  EXPECT_EQ(collected.bucket[0].cumulative_count, 2u);
  EXPECT_EQ(collected.bucket[1].cumulative_count, 4u);
  EXPECT_EQ(collected.bucket[2].cumulative_count, 5u);
  EXPECT_EQ(collected.sample_sum, 12);
}

TEST(StageClockTest, StagesSumToTheTotal) {
  StageClock clock;
  clock.Book(Stage::kRead);
  clock.Book(Stage::kExecute);
  clock.Book(Stage::kRead);

  EXPECT_EQ(clock.total_nanoseconds(),
            clock.nanoseconds(Stage::kRead) + clock.nanoseconds(Stage::kExecute));
  EXPECT_EQ(clock.nanoseconds(Stage::kQueue), 0);
}

TEST(StageClockTest, KnowsWhatItBookedLast) {
  StageClock clock;
  EXPECT_EQ(clock.last_stage(), Stage::kRead);
  for (const Stage stage : {Stage::kQueue, Stage::kPrepare, Stage::kQueue}) {
    clock.Book(stage);
    EXPECT_EQ(clock.last_stage(), stage);
  }
}

std::vector<std::string> Labels(absl::Span<const TenantSeries::Series> series) {
  std::vector<std::string> labels;
  for (const TenantSeries::Series& one : series) labels.push_back(one.label);
  return labels;
}

TEST(TenantSeriesTest, TheFirstHaveTheirOwnAndEachSlotIsInOne) {
  std::vector<std::string> names;
  for (int i = 0; i < 250; ++i) names.push_back(absl::StrCat("t", i));
  struct Case {
    size_t tenants, max_tenants, named, dropped;
  };
  for (const Case& c : {Case{0, 200, 0, 0}, Case{3, 200, 3, 0}, Case{200, 200, 200, 0},
                        Case{201, 200, 200, 1}, Case{250, 200, 200, 50}, Case{3, 3, 3, 0},
                        Case{3, 1, 1, 2}, Case{250, 7, 7, 243}, Case{250, 1000, 200, 50}}) {
    SCOPED_TRACE(absl::StrCat(c.tenants, " of ", c.max_tenants));
    const TenantSeries tenants(absl::MakeSpan(names).first(c.tenants), c.max_tenants);
    EXPECT_EQ(tenants.dropped(), c.dropped);
    EXPECT_EQ(tenants.tenants().size(), c.named + (c.dropped > 0 ? 1 : 0));
    EXPECT_EQ(tenants.all().size(), tenants.tenants().size() + 1);
    // Every tenant's amount is in exactly one of them.
    TenantAmounts amounts;
    for (uint32_t id = 0; id < c.tenants; ++id) amounts.Add(id, 1);
    double sum = 0;
    for (const TenantSeries::Series& series : tenants.tenants()) {
      sum += TenantSeries::Sum(series, [&](size_t slot) { return amounts.OfSlot(slot); });
    }
    EXPECT_EQ(sum, c.tenants);
  }
  EXPECT_THAT(Labels(TenantSeries({"a", "b", "c"}, 2).all()),
              ElementsAre("a", "b", "_other", "_nobody"));
}

absl::Time At(double seconds) { return absl::FromUnixSeconds(1000) + absl::Seconds(seconds); }

TEST(BusyTimeTest, CountsTheTimeInWhichAnybodyIsThereOnce) {
  BusyTime busy;
  EXPECT_EQ(busy.Total(At(5)), absl::ZeroDuration());
  busy.Begin(At(10));
  busy.Begin(At(12));
  EXPECT_EQ(busy.Total(At(13)), absl::Seconds(3));
  busy.End(At(14));
  EXPECT_EQ(busy.Total(At(15)), absl::Seconds(5));
  busy.End(At(16));
  EXPECT_EQ(busy.Total(At(100)), absl::Seconds(6));
  busy.Begin(At(200));
  EXPECT_EQ(busy.Total(At(201)), absl::Seconds(7));
  busy.End(At(202));
  EXPECT_EQ(busy.Total(At(300)), absl::Seconds(8));
}

TEST(UtilizationTest, IsThePartOfTheLastSecondsThatWasBusy) {
  Utilization utilization;
  absl::Duration busy;
  double now = 0;
  const auto ratio = [&] { return utilization.RatioUntil(busy, At(now)); };
  EXPECT_EQ(ratio(), 0);
  const auto run = [&](int seconds, double part) {
    for (int i = 0; i < seconds; ++i) {
      utilization.Sample(busy, At(now));
      busy += absl::Seconds(part);
      ++now;
    }
    utilization.Sample(busy, At(now));
  };
  run(4, 0.5);
  EXPECT_NEAR(ratio(), 0.5, 1e-9) << "of what there is";
  run(15, 1);
  EXPECT_NEAR(ratio(), 1, 1e-9) << "what was before is forgotten";
  run(5, 0);
  EXPECT_NEAR(ratio(), 10.0 / 15, 1e-9);
  run(10, 0);
  EXPECT_NEAR(ratio(), 0, 1e-9);
}

TEST(UtilizationTest, CountsUpToTheScrapeAlsoIfTheSamplerIsHeldUp) {
  Utilization utilization;
  utilization.Sample(absl::ZeroDuration(), At(0));
  utilization.Sample(absl::ZeroDuration(), At(1));
  EXPECT_EQ(utilization.RatioUntil(absl::Seconds(3), At(4)), 0.75);
  EXPECT_EQ(utilization.RatioUntil(absl::Seconds(100), At(101)), 1)
      << "of the time since the last sample, which is older than the window";
}

TEST(UtilizationTest, AClockThatIsSetMakesNoNonsense) {
  Utilization utilization;
  utilization.Sample(absl::Seconds(1), At(100));
  utilization.Sample(absl::Seconds(2), At(104));
  EXPECT_EQ(utilization.RatioUntil(absl::Seconds(3), At(50)), 0);
  utilization.Sample(absl::Seconds(3), At(50));
  utilization.Sample(absl::Seconds(4), At(52));
  EXPECT_EQ(utilization.RatioUntil(absl::Seconds(4), At(52)), 0.5);
  EXPECT_EQ(utilization.RatioUntil(absl::Seconds(90), At(53)), 1);
}

TEST(KindCountsTest, KindsAreCountedApartAndTogether) {
  FaultCounts counts;
  counts.Add(Fault::kMemory);
  counts.Add(Fault::kMemory);
  counts.Add(Fault::kSetUp);

  EXPECT_EQ(counts.of(Fault::kMemory), 2u);
  EXPECT_EQ(counts.of(Fault::kSetUp), 1u);
  EXPECT_EQ(counts.of(Fault::kKernel), 0u);
  EXPECT_EQ(counts.total(), 3u);
}

}  // namespace
}  // namespace opserve::server
