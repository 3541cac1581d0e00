#include "client/cli/top/status_rates.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

v1::AdminStatus Parse(const std::string& text) {
  v1::AdminStatus status;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &status));
  return status;
}

const char kEarlier[] = R"(
    start_time { seconds: 1000 } time { seconds: 1100 }
    devices { device: 3 completed_requests: 100 }
    tenants { name: "a" requests: 50 failed_requests: 4 success_seconds: 7 request_bytes: 1000
              response_bytes: 100 devices { lane_seconds: 10 } }
    operators { name: "Add" requests: 5 success_seconds: 1 request_bytes: 50 })";

const char kNow[] = R"(
    start_time { seconds: 1000 } time { seconds: 1102 }
    devices { device: 3 completed_requests: 130 }
    devices { device: 5 completed_requests: 10 }
    tenants { name: "a" weight: 2 pending_requests: 9 requests: 70 failed_requests: 5
              success_seconds: 7.19 request_bytes: 3000 response_bytes: 500
              devices { queued_requests: 1 device_bytes: 10 lane_seconds: 11 lag_seconds: -2 }
              devices { queued_requests: 2 device_bytes: 20 lane_seconds: 2 lag_seconds: -1 } }
    tenants { name: "b" requests: 8 devices { lane_seconds: 1 lag_seconds: 0.5 } }
    operators { name: "Mul" requests: 4 failed_requests: 4 response_bytes: 6 }
    operators { name: "Add" requests: 7 success_seconds: 3 request_bytes: 90 })";

TEST(StatusRatesTest, AreDifferencesOverTheTimeBetweenTheSamples) {
  const v1::AdminStatus earlier = Parse(kEarlier);

  const StatusRates rates = RatesOf(&earlier, Parse(kNow));

  EXPECT_FALSE(rates.is_since_start);
  EXPECT_EQ(rates.interval, absl::Seconds(2));
  EXPECT_THAT(rates.device_requests_per_second, ElementsAre(15, 5));
  ASSERT_EQ(rates.tenants.size(), 2u);
  const TenantRates& a = rates.tenants[0];
  EXPECT_EQ(a.requests.requests_per_second, 10);
  EXPECT_EQ(a.requests.failures_per_second, 0.5);
  EXPECT_EQ(a.requests.bytes_per_second, 1200);
  EXPECT_NEAR(absl::ToDoubleSeconds(*a.requests.latency), 0.01, 1e-9);
  EXPECT_THAT(a.lane_share, DoubleEq(0.75));
  EXPECT_THAT(rates.tenants[1].lane_share, DoubleEq(0.25));
}

TEST(StatusRatesTest, OperatorsHaveRatesAndTheMeanLatencyOfSuccesses) {
  const v1::AdminStatus earlier = Parse(kEarlier);

  const StatusRates rates = RatesOf(&earlier, Parse(kNow));

  ASSERT_EQ(rates.operators.size(), 2u);
  EXPECT_EQ(rates.operators[0].name, "Mul");
  EXPECT_EQ(rates.operators[0].requests.failures_per_second, 2);
  EXPECT_EQ(rates.operators[0].requests.bytes_per_second, 3);
  EXPECT_EQ(rates.operators[0].requests.latency, std::nullopt);
  EXPECT_EQ(rates.operators[1].requests.requests_per_second, 1);
  EXPECT_EQ(rates.operators[1].requests.bytes_per_second, 20);
  EXPECT_EQ(rates.operators[1].requests.latency, absl::Seconds(1));
}

TEST(StatusRatesTest, ATenantIsTheSumOfItsDevicesAndLagsWhereItLagsMost) {
  const StatusRates rates = RatesOf(nullptr, Parse(kNow));

  const TenantRates& a = rates.tenants[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.weight, 2u);
  EXPECT_EQ(a.pending_requests, 9u);
  EXPECT_EQ(a.queued_requests, 3u);
  EXPECT_EQ(a.device_bytes, 30u);
  EXPECT_EQ(a.lag_seconds, -1);
}

TEST(StatusRatesTest, WithoutAnEarlierSampleOfTheSameDaemonTheyAreMeansSinceItsStart) {
  v1::AdminStatus before_restart = Parse(kEarlier);
  before_restart.mutable_start_time()->set_seconds(1);
  for (const v1::AdminStatus* earlier : {static_cast<v1::AdminStatus*>(nullptr), &before_restart}) {
    const StatusRates rates = RatesOf(earlier, Parse(kNow));
    EXPECT_TRUE(rates.is_since_start);
    EXPECT_EQ(rates.interval, absl::Seconds(102));
    EXPECT_THAT(rates.device_requests_per_second[0], DoubleEq(130.0 / 102));
  }
}

TEST(StatusRatesTest, CountersThatBeganAnewCountFromZero) {
  v1::AdminStatus earlier = Parse(kEarlier);
  earlier.mutable_tenants(0)->set_requests(1000);

  EXPECT_EQ(RatesOf(&earlier, Parse(kNow)).tenants[0].requests.requests_per_second, 35);
}

TEST(StatusRatesTest, NoTimeAndNoWorkGiveZeros) {
  v1::AdminStatus status = Parse(kEarlier);
  const StatusRates same = RatesOf(&status, status);
  EXPECT_EQ(same.tenants[0].requests.requests_per_second, 0);
  EXPECT_EQ(same.tenants[0].lane_share, 0);

  v1::AdminStatus clock_set_back = status;
  clock_set_back.mutable_time()->set_seconds(1050);
  EXPECT_EQ(RatesOf(&status, clock_set_back).interval, absl::ZeroDuration());
}

}  // namespace
}  // namespace opserve::cli
