// What the weights give tenants for which the configuration sets no zones.

#include "server/schedule/policy/default_zones.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "server/schedule/policy/resident_shares.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

std::vector<uint64_t> ResidentBytes(std::vector<TenantSettings> tenants, uint64_t capacity) {
  SetResidentBytes(capacity, &tenants);
  std::vector<uint64_t> bytes;
  for (const TenantSettings& tenant : tenants) bytes.push_back(tenant.resident_bytes);
  return bytes;
}

TEST(ResidentBytesTest, ATenantThatIsAloneHasNoBound) {
  EXPECT_EQ(ResidentBytes({{.tenant = 0}}, 1000), std::vector<uint64_t>{UINT64_MAX});
  EXPECT_EQ(ResidentBytes({{.tenant = 0}, {.tenant = 1, .is_configured = false}}, 1000)[0],
            UINT64_MAX);
}

TEST(ResidentBytesTest, WeightsDivideWhatNobodyReserves) {
  EXPECT_EQ(ResidentBytes({{.tenant = 0, .weight = 1}, {.tenant = 1, .weight = 3}}, 1000),
            (std::vector<uint64_t>{250, 750}));
  EXPECT_EQ(ResidentBytes({{.tenant = 0, .memory = {.reserved = 200}}, {.tenant = 1}}, 1000),
            (std::vector<uint64_t>{600, 400}));
}

TEST(ResidentBytesTest, AConfiguredSoftLimitIsTheBound) {
  EXPECT_EQ(ResidentBytes({{.tenant = 0, .memory = {.reserved = 0, .soft = 900, .hard = 1000}},
                           {.tenant = 1}},
                          1000),
            (std::vector<uint64_t>{900, 500}));
}

TEST(ResidentBytesTest, ATenantThatWasRemovedGetsNoMore) {
  EXPECT_EQ(
      ResidentBytes({{.tenant = 0}, {.tenant = 1}, {.tenant = 2, .is_configured = false}}, 1000),
      (std::vector<uint64_t>{500, 500, 0}));
}

TEST(PinnedZonesByWeightTest, ATenantThatIsAloneHasEverything) {
  const std::vector<TenantSettings> tenants = {{.tenant = 0}};
  const MemoryLimits pinned = WithPinnedZones(tenants, 1000)[0].pinned;
  EXPECT_EQ(pinned.reserved, 0u);
  EXPECT_EQ(pinned.hard, UINT64_MAX);
}

TEST(PinnedZonesByWeightTest, HalfIsReservedByWeightAndHalfIsLent) {
  const std::vector<TenantSettings> tenants = {{.tenant = 0, .weight = 1},
                                               {.tenant = 1, .weight = 3}};
  const auto zoned = WithPinnedZones(tenants, 800);
  EXPECT_EQ(zoned[0].pinned.reserved, 100u);
  EXPECT_EQ(zoned[0].pinned.hard, 300u);
  EXPECT_EQ(zoned[1].pinned.reserved, 300u);
  EXPECT_EQ(zoned[1].pinned.hard, 500u);
}

TEST(PinnedZonesByWeightTest, WhatIsConfiguredHolds) {
  const std::vector<TenantSettings> tenants = {
      {.tenant = 0, .pinned = {.reserved = 200, .soft = 300, .hard = 400}},
      {.tenant = 1, .pinned = {.reserved = 0, .soft = 50, .hard = 50}},
      {.tenant = 2}};
  const auto zoned = WithPinnedZones(tenants, 1000);
  EXPECT_EQ(zoned[0].pinned.reserved, 200u);
  EXPECT_EQ(zoned[0].pinned.soft, 300u);
  EXPECT_EQ(zoned[0].pinned.hard, 400u);
  EXPECT_EQ(zoned[1].pinned.reserved, 50u) << "its part is more than it may have";
  EXPECT_EQ(zoned[1].pinned.hard, 50u);
  EXPECT_EQ(zoned[2].pinned.reserved, 200u);
  EXPECT_EQ(zoned[2].pinned.hard, 400u);
}

// Whatever is configured, the zones are valid and no tenant's readers can keep another from what is
// reserved for it, nor alone from all of the rest.
TEST(PinnedZonesByWeightTest, ZonesOfAnyTenantsFitTheMemory) {
  std::mt19937_64 random(TestSeed(1));
  const auto up_to = [&](uint64_t most) { return random() % (most + 1); };
  for (int round = 0; round < 2000; ++round) {
    const uint64_t capacity = 1 + up_to(1'000'000);
    std::vector<TenantSettings> tenants(2 + up_to(20));
    uint64_t left = capacity;
    for (uint32_t i = 0; i < tenants.size(); ++i) {
      tenants[i].tenant = i;
      tenants[i].weight = static_cast<uint32_t>(1 + up_to(999));
      MemoryLimits& pinned = tenants[i].pinned;
      if (up_to(2) == 0) pinned.reserved = up_to(left);
      left -= pinned.reserved;
      if (up_to(2) == 0) pinned.soft = pinned.hard = pinned.reserved + up_to(capacity);
    }
    uint64_t reserved = 0;
    MemoryZones zones(capacity);
    for (const TenantSettings& tenant : WithPinnedZones(tenants, capacity)) {
      ASSERT_TRUE(zones.SetLimits(tenant.tenant, tenant.pinned).ok()) << round;
      reserved += tenant.pinned.reserved;
      if (tenants[tenant.tenant].pinned.hard != UINT64_MAX) continue;
      ASSERT_LE(tenant.pinned.hard - tenant.pinned.reserved, capacity / 4);
    }
    ASSERT_LE(reserved, capacity);
  }
}

TEST(ResidentSharesTest, ATenantGetsItsPartAndNoMore) {
  ResidentShares shares;
  shares.SetLimit(1, 100);
  EXPECT_TRUE(shares.Check(1, 100).ok());
  shares.Add(1, 60);
  EXPECT_EQ(shares.Left(1), 40u);
  const absl::Status later = shares.Check(1, 41);
  EXPECT_EQ(later.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(ErrorDetailOf(later)->retry_pushback_ms(), 0);
  const absl::Status never = shares.Check(1, 101);
  EXPECT_EQ(never.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorDetailOf(never)->reason(), "tenant_memory");
  EXPECT_EQ(ErrorDetailOf(never)->retry_pushback_ms(), -1);
  EXPECT_TRUE(shares.Check(2, 1'000'000).ok()) << "no limit was set";
  shares.SetLimit(1, 50);
  EXPECT_EQ(shares.Left(1), 0u);
  shares.Subtract(1, 20);
  EXPECT_EQ(shares.Left(1), 10u);
}

}  // namespace
}  // namespace opserve::server
