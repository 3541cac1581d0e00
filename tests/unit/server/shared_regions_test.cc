#include "server/shared_memory/shared_regions.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/shared_files.h"

namespace opserve::server {
namespace {

constexpr SharedMemoryLimits kLimits = {.max_bytes = 10 * kPageBytes, .max_regions = 4};

class SharedRegionsTest : public ::testing::Test {
 protected:
  absl::Status Register(const std::string& key, uint64_t id, uint64_t bytes = 1) {
    return regions_.Register(key, id, SealedFile(bytes).get(), {.size = bytes}, kLimits);
  }

  SharedMemoryQuota quota_;
  SharedRegions regions_{[](int32_t, auto) { FAIL() << "no device has any"; }, quota_};
  const std::string a_ = regions_.AddConnection(/*tenant=*/1);
  const std::string b_ = regions_.AddConnection(/*tenant=*/1);
  const std::string stranger_ = regions_.AddConnection(/*tenant=*/2);
};

TEST_F(SharedRegionsTest, KeysAreRandom) {
  std::set<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.insert(regions_.AddConnection(1));
  EXPECT_EQ(keys.size(), 1000u);
  for (const std::string& key : keys) EXPECT_EQ(key.size(), SharedRegions::kKeyBytes);
}

TEST_F(SharedRegionsTest, ARegionIsFoundByItsConnectionsKeyAndItsTenant) {
  ASSERT_TRUE(Register(a_, 7, 100).ok());
  const auto found = regions_.Find(1, a_, 7);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->size(), 100u);

  const absl::Status elsewhere = regions_.Find(1, b_, 7).status();
  const absl::Status nowhere = regions_.Find(1, a_, 8).status();
  EXPECT_EQ(elsewhere.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(elsewhere, nowhere);

  const absl::Status foreign = regions_.Find(2, a_, 7).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& key : {std::string(), std::string(16, 'x'), a_ + "x"}) {
    EXPECT_EQ(regions_.Find(1, key, 7).status(), foreign);
  }
}

TEST_F(SharedRegionsTest, RegionsCountUntilTheirLastUserIsGone) {
  ASSERT_TRUE(Register(a_, 1, 10 * kPageBytes).ok());
  auto used = *regions_.Find(1, a_, 1);
  ASSERT_TRUE(regions_.Unregister(a_, 1).ok());
  EXPECT_EQ(Register(b_, 1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(quota_.tenant_bytes().OfSlot(1), 10 * kPageBytes);
  EXPECT_EQ(quota_.tenant_regions().OfSlot(1), 1u);
  // Others have quotas of their own.
  EXPECT_TRUE(Register(stranger_, 1).ok());

  used.reset();
  EXPECT_EQ(quota_.tenant_bytes().OfSlot(1), 0u);
  EXPECT_TRUE(Register(b_, 1).ok());
}

TEST_F(SharedRegionsTest, BytesAndRegionsAreLimited) {
  for (uint64_t id = 0; id < 4; ++id) EXPECT_TRUE(Register(id % 2 == 0 ? a_ : b_, id).ok());
  const absl::Status full = Register(a_, 9);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorDetailOf(full)->retry_pushback_ms(), -1);
  EXPECT_EQ(ErrorDetailOf(full)->reason(), "tenant_memory");
  ASSERT_TRUE(regions_.Unregister(a_, 2).ok());
  EXPECT_FALSE(Register(a_, 9, 10 * kPageBytes).ok());
  EXPECT_TRUE(Register(a_, 9, 9 * kPageBytes).ok());
}

TEST_F(SharedRegionsTest, AFailureLeavesTheIdFree) {
  EXPECT_FALSE(
      regions_.Register(a_, 1, SealedFile(1).get(), {.size = 2 * kPageBytes}, kLimits).ok());
  const FileDescriptor file = SealedFile(1);
  EXPECT_EQ(regions_.Register(a_, 1, ReadOnly(file).get(), {.size = 1}, kLimits).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Register(a_, 1).ok());
  EXPECT_EQ(Register(a_, 1).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(regions_.Find(1, a_, 1).ok());
}

TEST_F(SharedRegionsTest, AConnectionTakesItsRegionsWithIt) {
  for (uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(Register(a_, id, kPageBytes).ok());
  ASSERT_TRUE(Register(b_, 0).ok());
  regions_.RemoveConnection(a_);
  EXPECT_EQ(regions_.Find(1, a_, 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(quota_.tenant_regions().OfSlot(1), 1u);
  EXPECT_EQ(CountMemoryMappings(), 1);
  regions_.RemoveConnection(a_);  // no effect
}

TEST_F(SharedRegionsTest, AListIsInOrderAndOfOneConnection) {
  ASSERT_TRUE(Register(a_, 9, 5).ok());
  ASSERT_TRUE(
      regions_.Register(a_, 2, SealedFile(7).get(), {.size = 7, .read_only = true}, kLimits).ok());
  ASSERT_TRUE(Register(b_, 1).ok());
  const auto list = regions_.List(a_);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].id, 2u);
  EXPECT_EQ(list[0].size, 7u);
  EXPECT_TRUE(list[0].is_read_only);
  EXPECT_EQ(list[1].id, 9u);
  EXPECT_FALSE(list[1].is_read_only);
}

TEST_F(SharedRegionsTest, ManyThreadsAtOnceLeaveNothing) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string key = regions_.AddConnection(3);
        const bool is_registered = Register(key, 1).ok();
        EXPECT_EQ(regions_.Find(3, key, 1).ok(), is_registered);
        if (t % 2 == 0) regions_.Unregister(key, 1).IgnoreError();
        regions_.RemoveConnection(key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(quota_.tenant_bytes().OfSlot(3), 0u);
  EXPECT_EQ(CountMemoryMappings(), 0);
}

}  // namespace
}  // namespace opserve::server
