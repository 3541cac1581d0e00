#include "server/telemetry/status_page/status_history.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using nlohmann::json;
using prometheus::MetricType;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const absl::Time kFirst = absl::FromUnixSeconds(1'000'000);

prometheus::MetricFamily Family(const char* name, MetricType type, const MetricLabels& labels,
                                double value) {
  return MetricFamilyBuilder(name, "", type).Add(labels, value).Build();
}

std::vector<prometheus::MetricFamily> Requests(double count) {
  return {Family("opserve_requests_total", MetricType::Counter,
                 {{"operator", "Add"}, {"device", "0"}, {"code", "OK"}, {"tenant", "a"}}, count)};
}

json HistoryOf(const StatusHistory& history) { return json::parse(history.ToJson(kFirst)); }

TEST(StatusHistoryTest, HasTheFiguresThatThePageDraws) {
  StatusHistory history;
  MetricFamilyBuilder queue("opserve_queue_depth", "", MetricType::Gauge);
  queue.Add({{"tenant", "a"}, {"device", "0"}}, 2).Add({{"tenant", "b"}, {"device", "0"}}, 3);
  MetricFamilyBuilder states("opserve_device_state", "", MetricType::Gauge);
  states.Add({{"device", "0"}, {"state", "ready"}}, 1);
  states.Add({{"device", "0"}, {"state", "failed"}}, 0);
  MetricFamilyBuilder memory("opserve_tenant_memory_bytes", "", MetricType::Gauge);
  memory.Add({{"tenant", "a"}, {"kind", "hbm"}}, 0.5);
  memory.Add({{"tenant", "a"}, {"kind", "other"}}, 7);

  history.Add(std::vector{queue.Build(), states.Build(), memory.Build(),
                          Family("opserve_log_queued_bytes", MetricType::Gauge, {}, 9)},
              kFirst);

  const json all = HistoryOf(history);
  EXPECT_EQ(all["now"], absl::ToUnixMillis(kFirst));
  EXPECT_EQ(all["times"], json::array({absl::ToUnixMillis(kFirst)}));
  EXPECT_THAT(all["series"],
              UnorderedElementsAre(json({"waiting", "0", 5}), json({"states", "0", "ready", 1}),
                                   json({"tenantDeviceMemory", "a", 0.5})));
}

TEST(StatusHistoryTest, SumsBucketsOfHistogramsOverOperators) {
  StatusHistory history;
  MetricFamilyBuilder family("opserve_request_duration_seconds", "", MetricType::Histogram);
  Histogram seconds(SecondsBounds());
  seconds.Observe(0.02);
  for (const char* op : {"Add", "Mul"}) {
    for (const char* stage : {"total", "queue"}) {
      family.Add({{"operator", op}, {"stage", stage}}, seconds.Collect());
    }
  }

  history.Add(std::vector{family.Build()}, kFirst);

  const json series = HistoryOf(history)["series"];
  EXPECT_THAT(series, Contains(json({"durations", "Add", "0.025", 1})));
  EXPECT_THAT(series, Contains(json({"durations", "Mul", "+Inf", 1})));
  EXPECT_THAT(series, Contains(json({"stageDurations", "queue", "0.01", 0})));
  EXPECT_THAT(series, Contains(json({"stageDurations", "queue", "+Inf", 2})));
}

TEST(StatusHistoryTest, IsARingAndExact) {
  StatusHistory history;
  const double first = 9'007'199'254'000'000;  // near the last that doubles have exactly
  for (size_t i = 0; i < StatusHistory::kSamples + 3; ++i) {
    history.Add(Requests(first + static_cast<double>(i)),
                kFirst + static_cast<int64_t>(i) * StatusHistory::kPeriod);
  }

  const json all = HistoryOf(history);
  ASSERT_THAT(all["times"], SizeIs(StatusHistory::kSamples));
  EXPECT_EQ(all["times"][0], absl::ToUnixMillis(kFirst + 3 * StatusHistory::kPeriod));
  const json values = all["series"][0].back();
  ASSERT_THAT(values, SizeIs(StatusHistory::kSamples));
  EXPECT_EQ(values[0], int64_t{9'007'199'254'000'003});
  EXPECT_EQ(values.back(), int64_t{9'007'199'254'000'092});
}

TEST(StatusHistoryTest, SeriesThatAreOverGo) {
  StatusHistory history;
  history.Add(Requests(1), kFirst);
  history.Add({}, kFirst);
  EXPECT_EQ(HistoryOf(history)["series"][0].back(), json({1, nullptr}));
  EXPECT_GT(history.bytes(), 0u);

  for (size_t i = 0; i < StatusHistory::kSamples; ++i) history.Add({}, kFirst);

  EXPECT_THAT(HistoryOf(history)["series"], IsEmpty());
  EXPECT_EQ(history.bytes(), 0u);
}

TEST(StatusHistoryTest, IsBoundedInBytes) {
  StatusHistory history;
  MetricFamilyBuilder family("opserve_requests_total", "", MetricType::Counter);
  for (int i = 0; i < 20'000; ++i) family.Add({{"tenant", absl::StrCat("tenant-", i)}}, 1);
  const std::vector<prometheus::MetricFamily> families = {family.Build()};

  for (int i = 0; i < 3; ++i) history.Add(families, kFirst);

  EXPECT_LE(history.bytes(), StatusHistory::kMaxBytes);
  EXPECT_GT(history.bytes(), StatusHistory::kMaxBytes / 2);
  EXPECT_EQ(history.left_out_series() + HistoryOf(history)["series"].size(), 20'000u);
  history.Add(Requests(1), kFirst);
  EXPECT_EQ(history.left_out_series(), 3u) << "by code, device and tenant";
}

TEST(StatusHistoryTest, NamesMayBeAnything) {
  StatusHistory history;
  history.Add(
      std::vector{Family("opserve_queue_depth", MetricType::Gauge, {{"device", "\"\\\n\xff"}}, 1)},
      kFirst);
  EXPECT_EQ(HistoryOf(history)["series"][0][1], "\"\\\n\uFFFD");
}

TEST(StatusHistoryTest, SamplesUntilItIsStopped) {
  StatusHistory history;
  absl::Notification sampled;
  history.Start([&] {
    if (!sampled.HasBeenNotified()) sampled.Notify();
    return Requests(5);
  });
  sampled.WaitForNotification();
  history.Stop();
  EXPECT_EQ(HistoryOf(history)["series"][0].back(), 5);
  history.Stop();
}

}  // namespace
}  // namespace opserve::server
