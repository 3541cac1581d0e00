// What a scrape of a daemon tells, as requests make it.

#include <cmath>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/await_session.h"
#include "tests/integration/door.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

// Their tokens are their names.
constexpr char kTenants[] = R"(
  tenant { name: "a"
           token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
  tenant { name: "b"
           token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" })";

Config WithTenants(Config config) {
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kTenants, &config.values));
  config.tenants = *TenantsFrom(config.values);
  return config;
}

class MetricsTest : public ::testing::TestWithParam<Door> {
 protected:
  void TearDown() override { ClearFaults(); }

  // A daemon of one lane, on which a kernel hangs, so that all else waits.
  void StartWithHangingKernel(const Config& config, const std::string& token = "") {
    daemon_.emplace(config);
    client_ = Connect(token);
    if (GetParam() == Door::kSession) AwaitSession(*daemon_, *client_);
    InjectFaults("kernel=*,hang");
    const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
    hanging_ = client_->ExecuteAsync(OnesRequest(10), [](const auto&) {});
    ASSERT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
  }

  std::unique_ptr<Client> Connect(const std::string& token) {
    return *Client::Connect(
        daemon_->target(),
        {.token = token, .retry = {.max_attempts = 1}, .session = GetParam() == Door::kSession});
  }

  double Value(const std::string& family, const MetricLabels& labels) {
    return MetricValue(daemon_->daemon(), family, labels);
  }
  bool Becomes(double value, const std::string& family, const MetricLabels& labels) {
    return Await([&] { return Value(family, labels) == value; });
  }

  std::optional<InProcessDaemon> daemon_;
  std::unique_ptr<Client> client_;
  CallHandle hanging_;
};

TEST_P(MetricsTest, WhoLeavesIsCountedWhereItsRequestWas) {
  StartWithHangingKernel(InProcessDaemon::OneLane());
  const MetricLabels in_queue = {{"device", "0"}, {"tenant", "default"}};
  const CallHandle waiting = client_->ExecuteAsync(OnesRequest(10), [](const auto&) {});
  ASSERT_TRUE(Becomes(1, "opserve_queue_depth", in_queue));

  waiting.Cancel();
  EXPECT_TRUE(Becomes(1, "opserve_cancelled_requests_total", {{"stage", "queue"}}));
  EXPECT_TRUE(Becomes(0, "opserve_queue_depth", in_queue));
  hanging_.Cancel();
  EXPECT_TRUE(Becomes(1, "opserve_cancelled_requests_total", {{"stage", "execute"}}));

  for (const char* stage : {"queue", "execute"}) {
    EXPECT_EQ(
        Value("opserve_deadline_misses_total", {{"operator", "L1LossBackward"}, {"stage", stage}}),
        0);
  }
  EXPECT_GE(Value("opserve_stream_aborts_total", {{"device", "0"}, {"kind", "cancelled"}}), 1);
  EXPECT_EQ(Value("opserve_device_errors_total", {{"device", "0"}, {"kind", "timeout"}}), 0);
}

// gRPC cancels calls whose deadlines pass: that is not counted as a caller that left.
TEST_P(MetricsTest, DeadlinesThatPassAreCountedWhereTheRequestWas) {
  StartWithHangingKernel(InProcessDaemon::OneLane());
  Request late = OnesRequest(10);
  late.timeout = absl::Seconds(1);  // so long that a slow build's request is there by then
  EXPECT_EQ(client_->Execute(late).status().code(), absl::StatusCode::kDeadlineExceeded);
  const auto misses = [](const char* stage) {
    return MetricLabels{{"operator", "L1LossBackward"}, {"stage", stage}};
  };
  EXPECT_TRUE(Becomes(1, "opserve_deadline_misses_total", misses("queue")));
  hanging_.Cancel();
  ASSERT_TRUE(Becomes(1, "opserve_cancelled_requests_total", {{"stage", "execute"}}));

  InjectFaults("kernel=*,hang");
  EXPECT_EQ(client_->Execute(late).status().code(), absl::StatusCode::kDeadlineExceeded);

  EXPECT_TRUE(Becomes(1, "opserve_deadline_misses_total", misses("execute")));
  EXPECT_EQ(Value("opserve_cancelled_requests_total", {{"stage", "queue"}}), 0);
  EXPECT_EQ(Value("opserve_cancelled_requests_total", {{"stage", "execute"}}), 1);
  EXPECT_EQ(Value("opserve_requests_total", {{"operator", "L1LossBackward"},
                                             {"tenant", "default"},
                                             {"device", "none"},
                                             {"code", "DEADLINE_EXCEEDED"}}),
            2);
}

TEST_P(MetricsTest, TenantsHaveQueuesOfTheirOwn) {
  StartWithHangingKernel(WithTenants(InProcessDaemon::OneLane()), "a");
  const auto b = Connect("b");
  std::vector<std::future<absl::StatusOr<Response>>> waiting;
  waiting.push_back(client_->ExecuteAsync(OnesRequest(10)));
  for (int i = 0; i < 2; ++i) waiting.push_back(b->ExecuteAsync(OnesRequest(10)));

  EXPECT_TRUE(Becomes(1, "opserve_queue_depth", {{"device", "0"}, {"tenant", "a"}}));
  EXPECT_TRUE(Becomes(2, "opserve_queue_depth", {{"device", "0"}, {"tenant", "b"}}));
  for (const char* tenant : {"a", "b"}) {
    EXPECT_GE(Value("opserve_tenant_device_seconds_total", {{"device", "0"}, {"tenant", tenant}}),
              0);
    EXPECT_EQ(
        Value("opserve_admission_rejections_total", {{"tenant", tenant}, {"reason", "queue_full"}}),
        0);
  }

  hanging_.Cancel();
  for (auto& response : waiting) EXPECT_TRUE(IsAllOnes(response.get(), 10));
  EXPECT_EQ(Value("opserve_queue_depth", {{"device", "0"}, {"tenant", "b"}}), 0);
}

TEST_P(MetricsTest, TenantsBeyondTheMostAreShownTogether) {
  Config config = WithTenants(InProcessDaemon::OneLane());
  config.metrics_max_tenants = 1;
  StartWithHangingKernel(config, "b");

  EXPECT_EQ(Value("opserve_metrics_series_dropped_total", {}), 1);
  EXPECT_EQ(Value("opserve_queue_depth", {{"device", "0"}, {"tenant", "a"}}), 0);
  const auto waiting = client_->ExecuteAsync(OnesRequest(10));
  EXPECT_TRUE(Becomes(1, "opserve_queue_depth", {{"device", "0"}, {"tenant", "_other"}}));
  EXPECT_TRUE(std::isnan(Value("opserve_queue_depth", {{"device", "0"}, {"tenant", "b"}})));
  hanging_.Cancel();
}

TEST_P(MetricsTest, BoundsThatAreReachedAreShown) {
  Config config = InProcessDaemon::OneLane();
  config.queue_capacity_total = 2;
  StartWithHangingKernel(config);
  const auto pressure = [&](const char* monitor) {
    return Value("opserve_overload_pressure_ratio", {{"monitor", monitor}});
  };
  const auto is_active = [&](const char* action) {
    return Value("opserve_overload_action_active", {{"action", action}}) == 1;
  };
  EXPECT_EQ(pressure("queue"), 0);
  EXPECT_FALSE(is_active("refuse_requests"));
  EXPECT_GT(pressure("connections"), 0);
  EXPECT_FALSE(is_active("refuse_connections"));
  EXPECT_GT(pressure("device_memory"), 0);
  EXPECT_LT(pressure("device_memory"), 1);
  EXPECT_FALSE(is_active("wait_for_device_memory"));
  EXPECT_FALSE(is_active("wait_for_pinned_memory"));

  std::vector<std::future<absl::StatusOr<Response>>> waiting;
  for (int i = 0; i < 2; ++i) waiting.push_back(client_->ExecuteAsync(OnesRequest(10)));

  EXPECT_TRUE(Becomes(1, "opserve_overload_pressure_ratio", {{"monitor", "queue"}}));
  EXPECT_TRUE(is_active("refuse_requests"));
  EXPECT_FALSE(is_active("refuse_tenant_requests"));
  EXPECT_EQ(client_->Execute(OnesRequest(10)).status().code(),
            absl::StatusCode::kResourceExhausted);
  hanging_.Cancel();
  for (auto& response : waiting) EXPECT_TRUE(IsAllOnes(response.get(), 10));
  EXPECT_EQ(pressure("queue"), 0);
  EXPECT_FALSE(is_active("refuse_requests"));
}

TEST_P(MetricsTest, ATenantAtItsOwnBoundIsShown) {
  Config config = WithTenants(InProcessDaemon::OneLane());
  config.tenants.tenants[0].max_pending_requests = 1;
  StartWithHangingKernel(config, "a");

  EXPECT_EQ(Value("opserve_overload_pressure_ratio", {{"monitor", "tenant_requests"}}), 1);
  EXPECT_EQ(Value("opserve_overload_action_active", {{"action", "refuse_tenant_requests"}}), 1);
  EXPECT_EQ(Value("opserve_overload_action_active", {{"action", "refuse_requests"}}), 0);
  EXPECT_EQ(client_->Execute(OnesRequest(10)).status().code(),
            absl::StatusCode::kResourceExhausted);
  hanging_.Cancel();
}

TEST_P(MetricsTest, DevicesSayWhoTheyAreAndTheDaemonWhatItIs) {
  daemon_.emplace();
  const AclLibrary& acl = daemon_->daemon().scheduler().Find(0)->device().acl();
  for (int device = 0; device < 2; ++device) {
    EXPECT_EQ(Value("opserve_device_info",
                    {{"device", absl::StrCat(device)},
                     {"id", absl::StrCat(device)},
                     {"pcie_bus_info", absl::StrCat("0000:8", device + 1, ":00.0")},
                     {"model_name", acl.soc_name()}}),
              1);
  }
  int builds = 0;
  for (const prometheus::MetricFamily& family : daemon_->daemon().CollectMetrics()) {
    if (family.name != "opserve_build_info") continue;
    ++builds;
    ASSERT_EQ(family.metric.size(), 1u);
    for (const auto& label : family.metric[0].label) EXPECT_NE(label.value, "") << label.name;
  }
  EXPECT_EQ(builds, 1);
}

MetricLabels Shadow(const char* result) {
  return {{"operator", "L1LossBackward"}, {"result", result}};
}

Config WithShadowChecks(Config config) {
  config.shadow_check_ratio = 1;
  return config;
}

TEST_P(MetricsTest, RequestsAreRunAgainOnAnotherDeviceAtNobodysCost) {
  daemon_.emplace(WithShadowChecks(InProcessDaemon::DefaultConfig()));
  ASSERT_TRUE(IsAllOnes(daemon_->client().Execute(OnesRequest(1000)), 1000));

  EXPECT_TRUE(Becomes(1, "opserve_shadow_checks_total", Shadow("match")));
  EXPECT_EQ(Value("opserve_shadow_checks_total", Shadow("mismatch")), 0);
  EXPECT_EQ(Value("opserve_shadow_checks_total", Shadow("skipped")), 0);
  absl::Duration of_nobody;
  int with_tenants = 0;
  for (const auto& service : daemon_->daemon().scheduler().devices()) {
    with_tenants += service->TenantTime(0) > absl::ZeroDuration();
    of_nobody += service->TenantTime(kNobody);
  }
  EXPECT_EQ(with_tenants, 1);
  EXPECT_GT(of_nobody, absl::ZeroDuration());
  EXPECT_EQ(daemon_->HeldByRequests(), 0);
}

TEST_P(MetricsTest, ADeviceThatComputesWrongIsFoundOut) {
  daemon_.emplace(WithShadowChecks(InProcessDaemon::DefaultConfig()));
  for (const int device : {0, 1}) {
    InjectFaults(absl::StrCat("kernel=aclnnL1LossBackward,wrong,on=", device));
    ASSERT_TRUE(daemon_->client().Execute(OnesRequest(1000)).ok());
    EXPECT_TRUE(Becomes(device + 1, "opserve_shadow_checks_total", Shadow("mismatch")));
  }
  EXPECT_EQ(Value("opserve_shadow_checks_total", Shadow("match")), 0);
}

TEST_P(MetricsTest, WhatCannotBeRunAgainIsSkipped) {
  daemon_.emplace(WithShadowChecks(InProcessDaemon::OneLane()));
  ASSERT_TRUE(daemon_->client().Execute(OnesRequest(10)).ok());
  EXPECT_TRUE(Becomes(1, "opserve_shadow_checks_total", Shadow("skipped")));

  daemon_.reset();
  daemon_.emplace(WithShadowChecks(InProcessDaemon::DefaultConfig()));
  const auto resident = daemon_->client().Upload(Tensor::Owning<float>({1}, {3.0f}));
  ASSERT_TRUE(resident.ok()) << resident.status();
  Request request = OnesRequest(1);
  request.invocations[0].inputs[1].value = *resident;
  ASSERT_TRUE(daemon_->client().Execute(request).ok());
  EXPECT_TRUE(Becomes(1, "opserve_shadow_checks_total", Shadow("skipped")));
  EXPECT_EQ(Value("opserve_shadow_checks_total", Shadow("match")), 0);
}

TEST_P(MetricsTest, NothingIsRunAgainUnlessAskedFor) {
  daemon_.emplace();
  ASSERT_TRUE(daemon_->client().Execute(OnesRequest(10)).ok());
  for (const char* result : {"match", "mismatch", "skipped"}) {
    // No operator has a series.
    EXPECT_TRUE(std::isnan(Value("opserve_shadow_checks_total", Shadow(result))));
  }
}

TEST_P(MetricsTest, ABusyDeviceIsSeenToBeBusy) {
  StartWithHangingKernel(InProcessDaemon::OneLane());
  EXPECT_TRUE(Await([&] {
    const double ratio = Value("opserve_device_utilization_ratio", {{"device", "0"}});
    return ratio > 0 && ratio <= 1;
  }));
  hanging_.Cancel();
}

INSTANTIATE_TEST_SUITE_P(Doors, MetricsTest, BothDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
