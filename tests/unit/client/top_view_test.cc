#include "client/cli/top/top_view.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kSample[] = R"pb(
  start_time { seconds: 1700000000 }
  version: "1.2.3"
  runtime: "host CANN"
  log_level: "info"
  connections: 1
  rejected_connections: 2
  pinned_allocated_bytes: 1048576
  pinned_reserved_bytes: 4194304
  devices {
    state: STATE_READY
    lanes: 4
    executing_requests: 2
    queued_requests: 7
    memory_total_bytes: 68719476736
    memory_used_bytes: 34359738368
    pool_reserved_bytes: 2147483648
    pool_allocated_bytes: 1610612736
    resident_tensors: 3
  }
  devices { device: 1 state: STATE_QUARANTINED lanes: 4 state_reason: "lost (507899)" }
  tenants {
    name: "batch"
    weight: 1
    pending_requests: 30
    requests: 5000
    success_seconds: 12.5
    devices { queued_requests: 6 device_bytes: 1024 lag_seconds: -0.25 }
  }
  tenants {
    name: "online"
    weight: 3
    pending_requests: 2
    resident_bytes: 2048
    prepared_programs: 5
    devices { device_bytes: 4096 lag_seconds: 1.5 }
  }
  tenants { name: "admin" weight: 1 }
  operators { name: "Add" requests: 3000 success_seconds: 1.2 }
)pb";

// The daemon `second` seconds after the first sample.
v1::AdminStatus Sample(int second) {
  v1::AdminStatus status;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSample, &status));
  status.mutable_time()->set_seconds(1700093784 + second);
  status.mutable_devices(0)->set_completed_requests(1000 + 250 * second);
  status.mutable_tenants(0)->mutable_devices(0)->set_lane_seconds(10 + second);
  v1::TenantStatus& online = *status.mutable_tenants(1);
  online.set_requests(700 + 200 * second);
  online.set_failed_requests(3 * second);
  online.set_success_seconds(9 + 0.5 * second);
  online.set_request_bytes((100 + second) << 20);
  online.set_response_bytes((50 + second) << 20);
  v1::OperatorStatus& kl = *status.add_operators();
  kl.set_name("KlDivBackward");
  kl.set_requests(700 + 200 * second);
  kl.set_failed_requests(3 * second);
  kl.set_success_seconds(9 + 0.5 * second);
  kl.set_response_bytes(4096 * second);
  online.mutable_devices(0)->set_lane_seconds(20 + 3 * second);
  return status;
}

TEST(TopViewTest, PlainTextShowsEverything) {
  const v1::AdminStatus earlier = Sample(0);
  EXPECT_EQ(
      RenderTop(&earlier, Sample(1), {}, {}),
      "opserved 1.2.3 on host CANN, up 1d 02:03:05, 1 connection (2 refused), log level info\n"
      "2023-11-16 00:16:25 UTC, rates over 1.0 s, pinned 1/4 MiB\n"
      "\n"
      "DEV  STATE        LANES  QUEUED  REQ/S       POOL     MEMORY  RESIDENT\n"
      "  0  ready          2/4       7  250.0  1.5/2 GiB  32/64 GiB         3\n"
      "  1  quarantined    0/4       0    0.0      0/0 B      0/0 B         0\n"
      "device 1 is quarantined: lost (507899)\n"
      "\n"
      "TENANT  PENDING  QUEUED  REQ/S  FAIL/S  SHARE  MEMORY  LATENCY  BYTES/S     LAG  WEIGHT  "
      "RESIDENT  PREPARED\n"
      "online        2       0  200.0     3.0  75.0%   4 KiB   2.54ms    2 MiB    1.5s       3     "
      "2 KiB         5\n"
      "batch        30       6    0.0     0.0  25.0%   1 KiB        -      0 B  -250ms       1  "
      "     0 B         0\n"
      "admin         0       0    0.0     0.0   0.0%     0 B        -      0 B     0ms       1  "
      "     0 B         0\n"
      "\n"
      "OPERATOR       REQ/S  FAIL/S  LATENCY  BYTES/S\n"
      "KlDivBackward  200.0     3.0   2.54ms    4 KiB\n"
      "Add              0.0     0.0        -      0 B\n");
}

TEST(TopViewTest, AWatchedScreenHasBarsAndNamesTheKeys) {
  const v1::AdminStatus earlier = Sample(0);
  const std::string text = RenderTop(&earlier, Sample(1), {.width = 100, .height = 24}, {});

  EXPECT_THAT(text, AllOf(HasSubstr("keys: s share*  n name  p pending  m memory  q quit\n"),
                          HasSubstr("####"), Not(HasSubstr("\x1b"))));
}

TEST(TopViewTest, TheFirstSampleHasMeansSinceTheStart) {
  EXPECT_THAT(RenderTop(nullptr, Sample(0), {}, {}),
              AllOf(HasSubstr("means since the start"), HasSubstr("66.7%")));
}

TEST(TopViewTest, TenantsStandInTheOrderAskedFor) {
  struct Case {
    TopOrder order;
    std::vector<std::string> names;
  };
  const Case kCases[] = {
      {TopOrder::kShare, {"online", "batch", "admin"}},
      {TopOrder::kName, {"admin", "batch", "online"}},
      {TopOrder::kPending, {"batch", "online", "admin"}},
      {TopOrder::kMemory, {"online", "batch", "admin"}},
  };
  for (const Case& c : kCases) {
    const std::vector<std::string> lines =
        absl::StrSplit(RenderTop(nullptr, Sample(0), {}, {.order = c.order}), '\n');
    ASSERT_EQ(lines.size(), 17u);
    for (size_t i = 0; i < 3; ++i) EXPECT_THAT(lines[9 + i], StartsWith(c.names[i]));
  }
}

TEST(TopViewTest, EqualsStandByName) {
  v1::AdminStatus status;
  for (const char* name : {"c", "a", "b"}) status.add_tenants()->set_name(name);
  for (const TopOrder order :
       {TopOrder::kShare, TopOrder::kName, TopOrder::kPending, TopOrder::kMemory}) {
    const std::string text = RenderTop(nullptr, status, {}, {.order = order});
    EXPECT_LT(text.find("\na "), text.find("\nb "));
    EXPECT_LT(text.find("\nb "), text.find("\nc "));
  }
}

TEST(TopViewTest, FitsAnyScreen) {
  v1::AdminStatus status = Sample(0);
  for (int i = 0; i < 40; ++i) status.add_tenants()->set_name(absl::StrCat("tenant-", i));
  for (int i = 2; i < 16; ++i) status.add_devices()->set_device(i);
  for (int i = 0; i < 30; ++i) status.add_operators()->set_name(absl::StrCat("Operator", i));
  for (size_t width = 1; width <= 130; width += 3) {
    for (size_t height = 1; height <= 70; height += 3) {
      const std::string text = RenderTop(nullptr, status, {.width = width, .height = height}, {});
      std::vector<std::string> lines = absl::StrSplit(text, '\n');
      EXPECT_EQ(lines.back(), "");
      lines.pop_back();
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(line.size(), width) << line;
    }
  }
}

TEST(TopViewTest, WhatFindsNoRoomIsCounted) {
  v1::AdminStatus status;
  for (int i = 0; i < 20; ++i) status.add_tenants()->set_name(absl::StrCat("tenant-", 10 + i));
  for (int i = 0; i < 8; ++i) status.add_devices()->set_device(i);
  struct Case {
    size_t height;
    const char* devices;  // "": all are shown
    const char* tenants;
  };
  const Case kCases[] = {
      {35, "", ""},
      {34, "", "... and 2 tenants more"},
      {20, "... and 3 devices more", "... and 14 tenants more"},
      {10, "... and 8 devices more", "... and 19 tenants more"},
  };
  for (const Case& c : kCases) {
    const std::string text = RenderTop(nullptr, status, {.width = 80, .height = c.height}, {});
    EXPECT_EQ(testing::Matches(HasSubstr("devices more"))(text), *c.devices != '\0') << text;
    EXPECT_EQ(testing::Matches(HasSubstr("tenants more"))(text), *c.tenants != '\0') << text;
    EXPECT_THAT(text, AllOf(HasSubstr(c.devices), HasSubstr(c.tenants)));
  }
}

TEST(TopViewTest, TablesShareTheRoomAndOneThatNeedsLessLeavesIt) {
  v1::AdminStatus status;
  for (int i = 0; i < 20; ++i) status.add_tenants()->set_name(absl::StrCat("tenant-", 10 + i));
  for (int i = 0; i < 40; ++i) status.add_operators()->set_name(absl::StrCat("Operator", 10 + i));
  status.add_devices();

  // Of 25 lines for tables 2 are the device's.
  const std::string text = RenderTop(nullptr, status, {.width = 80, .height = 31}, {});

  EXPECT_THAT(text, AllOf(HasSubstr("... and 11 tenants more\n"),
                          HasSubstr("... and 30 operators more\n")));
}

TEST(TopViewTest, StatesAndFailuresAreColored) {
  const v1::AdminStatus earlier = Sample(0);
  const std::string text =
      RenderTop(&earlier, Sample(1), {.width = 100, .height = 24}, {.has_colors = true});

  EXPECT_THAT(text,
              AllOf(HasSubstr("\x1b[32mready\x1b[0m"), HasSubstr("\x1b[1;31mquarantined\x1b[0m"),
                    HasSubstr("\x1b[1;31m3.0\x1b[0m")));
}

TEST(TopOrderTest, HasANameAndAKey) {
  EXPECT_EQ(TopOrderNamed("pending"), TopOrder::kPending);
  EXPECT_EQ(TopOrderNamed("p"), std::nullopt);
  EXPECT_EQ(TopOrderOfKey('m'), TopOrder::kMemory);
  EXPECT_EQ(TopOrderOfKey(kQuitKey), std::nullopt);
}

}  // namespace
}  // namespace opserve::cli
