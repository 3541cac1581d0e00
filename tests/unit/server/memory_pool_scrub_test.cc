// W10 of server/device/README.md: nobody sees what another tenant wrote.
#include <algorithm>
#include <cstring>
#include <random>

#include "tests/seed.h"
#include "tests/unit/server/memory_pool_fixture.h"

namespace opserve::server {
namespace {

using Scrub = DeviceMemoryPool::Scrub;

class MemoryPoolScrubTest : public MemoryPoolFixture {
 protected:
  // Everything on the stream has run, and the pool knows.
  void Synchronize(aclrtStream stream) {
    ASSERT_EQ(TestAcl().aclrtSynchronizeStream(stream), 0);
    pool().StreamIsIdle(stream);
  }

  // Lends to each in turn on a stream that is idle in between; returns the bytes scrubbed for the
  // last one.
  uint64_t ScrubbedForLastOf(std::vector<uint32_t> tenants, size_t bytes = 1000) {
    uint64_t before = 0;
    for (uint32_t tenant : tenants) {
      before = pool().statistics().scrubbed_bytes_total;
      Lend(bytes, stream(0), tenant);
      Synchronize(stream(0));
    }
    return pool().statistics().scrubbed_bytes_total - before;
  }
};

// The one block of a pool of which there can be only one.
const DeviceMemoryPool::Options kOneBlock = {.max_bytes = 2048, .region_bytes = 2048};

TEST_F(MemoryPoolScrubTest, FreshMemoryIsScrubbedBecauseNobodyKnowsWhoseItWas) {
  CreatePool(kOneBlock);

  EXPECT_EQ(ScrubbedForLastOf({1}), 1536u);
}

TEST_F(MemoryPoolScrubTest, ABlockIsScrubbedBetweenTenantsAndNotForTheSameOne) {
  CreatePool(kOneBlock);

  EXPECT_EQ(ScrubbedForLastOf({1, 1}), 0u);
  EXPECT_EQ(ScrubbedForLastOf({2}), 1536u);
  EXPECT_EQ(ScrubbedForLastOf({2, 2}), 0u);
  EXPECT_EQ(ScrubbedForLastOf({1}), 1536u);
}

TEST_F(MemoryPoolScrubTest, TheModesAlwaysAndNeverDoWhatTheySay) {
  auto options = kOneBlock;
  options.scrub = Scrub::kAlways;
  CreatePool(options);
  EXPECT_EQ(ScrubbedForLastOf({1, 1}), 1536u);

  options.scrub = Scrub::kNever;
  CreatePool(options);
  EXPECT_EQ(ScrubbedForLastOf({1, 2}), 0u);
}

TEST_F(MemoryPoolScrubTest, WhatIsLentWithoutAStreamIsNotScrubbedButForWhoeverHasItNext) {
  CreatePool(kOneBlock);
  ScrubbedForLastOf({1});
  const uint64_t before = pool().statistics().scrubbed_bytes_total;

  // Tenant 2 need not write every byte, so some may still be tenant 1's.
  Lend(1000, nullptr, 2);

  EXPECT_EQ(pool().statistics().scrubbed_bytes_total, before);
  EXPECT_EQ(ScrubbedForLastOf({2}), 1536u);
}

TEST_F(MemoryPoolScrubTest, TenantsThatTakeTurnsKeepToTheirOwnBlocks) {
  CreatePool({.region_bytes = 2 * kMiB});
  ScrubbedForLastOf({1, 2, 3, 4, 5, 6, 7, 8}, 100 * kKiB);

  // Of the usual size, among however many others.
  EXPECT_EQ(ScrubbedForLastOf({1}, 100 * kKiB), 0u);
  EXPECT_EQ(ScrubbedForLastOf({8}, 100 * kKiB), 0u);
  EXPECT_EQ(ScrubbedForLastOf({5}, 100 * kKiB), 0u);
  // Of another size, among a few.
  EXPECT_EQ(ScrubbedForLastOf({3}, 90 * kKiB), 0u);
  EXPECT_EQ(pool().statistics().allocations[Pool::kGrow], 1u);
}

TEST_F(MemoryPoolScrubTest, MergingForARequestKeepsWhatItDoesNotNeed) {
  CreatePool({.max_bytes = 4 * kMiB, .region_bytes = 4 * kMiB});
  {
    std::vector<DeviceBuffer> held;
    for (uint32_t tenant = 1; tenant <= 3; ++tenant) {
      held.push_back(Lend(kMiB, stream(0), tenant));
    }
  }
  Synchronize(stream(0));

  ScrubbedForLastOf({4}, 2 * kMiB);

  EXPECT_EQ(ScrubbedForLastOf({3}, kMiB), 0u);
}

TEST_F(MemoryPoolScrubTest, AFailedScrubReturnsTheBlockWhichIsStillToBeScrubbed) {
  CreatePool(kOneBlock);
  ScrubbedForLastOf({1});
  const uint64_t before = pool().statistics().scrubbed_bytes_total;
  InjectFaults("call=aclrtMemsetAsync,code=507899");

  const absl::Status status = StatusOf({.bytes = 1000, .stream = stream(0), .tenant = 2});

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pool().statistics().allocated_bytes, 0u);
  EXPECT_EQ(pool().statistics().scrubbed_bytes_total, before);
  EXPECT_EQ(ScrubbedForLastOf({2}), 1536u);
}

TEST_F(MemoryPoolScrubTest,
       WhatAnAbortedStreamUsedIsScrubbedAgainSinceItsScrubsMayHaveBeenDropped) {
  CreatePool({.region_bytes = 2 * kMiB});
  DeviceBuffer lent = Lend(4000, stream(0), 1);
  { DeviceBuffer retired = Lend(1000, stream(0), 1); }
  const uint64_t before = pool().statistics().scrubbed_bytes_total;

  pool().StreamWasAborted(stream(0));

  EXPECT_EQ(pool().statistics().retired_bytes, 0u);
  EXPECT_EQ(pool().statistics().idle_bytes, pool().statistics().largest_free_bytes);
  Lend(1000, stream(1), 1);
  EXPECT_EQ(pool().statistics().scrubbed_bytes_total, before + 1536);
  lent = DeviceBuffer();
  pool().StreamIsIdle(stream(0));
  Lend(4000, stream(1), 1);
  EXPECT_EQ(pool().statistics().scrubbed_bytes_total, before + 1536 + 4096);
}

TEST_F(MemoryPoolScrubTest, NoBytesOfAnotherTenantAreEverSeenOnAStream) {
  std::mt19937 random(TestSeed());
  CreatePool({.max_bytes = 2 * kMiB, .region_bytes = 256 * kKiB});
  struct Held {
    DeviceBuffer buffer;
    int stream;  // -1: none
  };
  std::vector<Held> held;
  for (int round = 0; round < 5000; ++round) {
    if (random() % 4 == 0) Synchronize(stream(random() % 3));
    if (random() % 50 == 0) pool().Trim();
    if (held.size() > 8 || (random() % 3 == 0 && !held.empty())) {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
      continue;
    }
    const uint32_t tenant = 1 + random() % 4;
    const int on = static_cast<int>(random() % 4) - 1;
    auto allocated = pool().Allocate({.bytes = 1 + random() % 100000,
                                      .stream = on < 0 ? nullptr : stream(on),
                                      .tenant = tenant});
    if (!allocated.ok()) continue;
    auto* const bytes = static_cast<char*>(allocated->data());
    if (on >= 0) {
      ASSERT_EQ(TestAcl().aclrtSynchronizeStream(stream(on)), 0);
      // Each tenant writes its own number, so 0 and that are all it may find.
      ASSERT_TRUE(std::all_of(
          bytes, bytes + allocated->size(),
          [tenant](char byte) { return byte == 0 || byte == static_cast<char>(tenant); }))
          << "round " << round;
    }
    // Some leave bytes as they were.
    std::memset(bytes, static_cast<int>(tenant), 1 + random() % allocated->size());
    held.push_back({*std::move(allocated), on});
  }
  EXPECT_GT(pool().statistics().allocations[Pool::kHit], 0u);
  EXPECT_GT(pool().statistics().scrubbed_bytes_total, 0u);
}

}  // namespace
}  // namespace opserve::server
