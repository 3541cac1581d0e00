#include "server/device/memory/pinned_pool.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "gtest/gtest.h"
#include "server/device/memory/size_class.h"
#include "tests/bytes.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {
namespace {

class PinnedPoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(TestAcl().aclrtSetDevice(0), 0); }
  void TearDown() override {
    ClearFaults();
    pool_->Close();
    EXPECT_EQ(pool_->statistics().reserved_bytes, 0u);
    EXPECT_EQ(HostCount(OPSERVE_HOST_PINNED_BYTES), 0);
  }

  PinnedPool& CreatePool(size_t limit_bytes, bool allow_host_fallback = false) {
    pool_ = PinnedPool::Create(TestAcl(), limit_bytes, allow_host_fallback);
    return *pool_;
  }

  std::shared_ptr<PinnedPool> pool_;
};

TEST_F(PinnedPoolTest, ABlockIsReusedForRequestsOfItsClassAlone) {
  PinnedPool& pool = CreatePool(4 * kMiB);
  void* const first = pool.Allocate(kMiB)->data();

  EXPECT_EQ(pool.Allocate(kMiB)->data(), first);
  EXPECT_EQ(pool.Allocate(kMiB - 100)->data(), first);
  EXPECT_EQ(pool.statistics().reserved_bytes, kMiB);

  // Half of a block is not wasted.
  EXPECT_NE(pool.Allocate(kMiB / 2)->data(), first);
  EXPECT_EQ(pool.statistics().reserved_bytes, kMiB + kMiB / 2);
}

TEST_F(PinnedPoolTest, NoBlockIsMoreThanAnEighthTooLarge) {
  PinnedPool& pool = CreatePool(16 * kMiB);
  for (size_t bytes = 1; bytes < 2 * kMiB; bytes += bytes / 7 + 1) {
    const PinnedBuffer buffer = *pool.Allocate(bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    ASSERT_LE(pool.statistics().allocated_bytes, std::max<size_t>(512, bytes + bytes / 8));
  }
}

TEST_F(PinnedPoolTest, IdleBlocksMakeRoomUnderTheLimit) {
  PinnedPool& pool = CreatePool(4 * kMiB);
  { const PinnedBuffer first = *pool.Allocate(kMiB), second = *pool.Allocate(2 * kMiB); }

  const PinnedBuffer large = *pool.Allocate(4 * kMiB);

  EXPECT_EQ(pool.statistics().reserved_bytes, 4 * kMiB);
  EXPECT_EQ(pool.Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PinnedPoolTest, NothingIsGivenBackForARequestThatWouldNotFitAfterIt) {
  PinnedPool& pool = CreatePool(4 * kMiB);
  const PinnedBuffer held = *pool.Allocate(2 * kMiB);
  void* const idle = pool.Allocate(kMiB)->data();

  EXPECT_EQ(pool.Allocate(3 * kMiB).status().code(), absl::StatusCode::kResourceExhausted);

  EXPECT_EQ(pool.Allocate(kMiB)->data(), idle);
}

TEST_F(PinnedPoolTest, WhatIsLargerThanTheLimitCanNeverBeHad) {
  for (bool allow_host_fallback : {false, true}) {
    PinnedPool& pool = CreatePool(4 * kMiB, allow_host_fallback);
    EXPECT_EQ(pool.Allocate(5 * kMiB).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(pool.statistics().fallbacks_total, 0u);
  }
}

TEST_F(PinnedPoolTest, WithTheFallbackOrdinaryMemoryIsLentWhenTheLimitIsReached) {
  PinnedPool& pool = CreatePool(4 * kMiB, /*allow_host_fallback=*/true);
  PinnedBuffer pinned = *pool.Allocate(4 * kMiB);

  PinnedBuffer ordinary = *pool.Allocate(1001);

  EXPECT_EQ(reinterpret_cast<uintptr_t>(ordinary.data()) % 64, 0u);
  EXPECT_EQ(ordinary.size(), 1001u);
  std::memset(ordinary.data(), 1, ordinary.size());
  EXPECT_EQ(pool.statistics().fallbacks_total, 1u);
  EXPECT_EQ(pool.statistics().reserved_bytes, 4 * kMiB);
  EXPECT_EQ(pool.statistics().allocated_bytes, 4 * kMiB);

  // Ordinary memory is nobody's next block, pinned memory is used again as soon as there is some.
  PinnedBuffer moved = std::move(ordinary);
  EXPECT_EQ(ordinary.data(), nullptr);
  moved = PinnedBuffer();
  pinned = PinnedBuffer();
  EXPECT_TRUE(pool.Allocate(1001).ok());
  EXPECT_EQ(pool.statistics().fallbacks_total, 1u);
}

TEST_F(PinnedPoolTest, WhatWasBookedIsGivenBackAfterTheLastBlock) {
  PinnedPool& pool = CreatePool(4 * kMiB);
  uint64_t left = UINT64_MAX;  // in the pool, when what was booked was given back
  PinnedAllowance allowance{.charge = std::shared_ptr<void>(&pool, [&left](void* p) {
                              left = static_cast<PinnedPool*>(p)->statistics().allocated_bytes;
                            })};
  PinnedBuffer first = *pool.Allocate(kMiB, allowance);
  PinnedBuffer second = *pool.Allocate(kMiB, allowance);
  allowance = {};
  first = PinnedBuffer();
  EXPECT_EQ(left, UINT64_MAX);
  PinnedBuffer moved = std::move(second);
  second = PinnedBuffer();
  EXPECT_EQ(left, UINT64_MAX);
  moved = PinnedBuffer();
  EXPECT_EQ(left, 0u);
}

TEST_F(PinnedPoolTest, WithoutLeaveForPinnedMemoryOrdinaryMemoryIsLent) {
  PinnedPool& pool = CreatePool(4 * kMiB);
  const PinnedBuffer ordinary = *pool.Allocate(kMiB, {.charge = nullptr, .is_pinned = false});
  std::memset(ordinary.data(), 1, ordinary.size());
  EXPECT_EQ(pool.statistics().allocated_bytes, 0u);
  EXPECT_EQ(pool.statistics().fallbacks_total, 1u);
}

TEST_F(PinnedPoolTest, BlocksTakeWhatIsSaidOfThem) {
  PinnedPool& pool = CreatePool(4 * kMiB);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, kMiB - 1, kMiB + 1}) {
    const PinnedBuffer buffer = *pool.Allocate(bytes);
    EXPECT_EQ(pool.statistics().allocated_bytes, PinnedPool::BlockBytes(bytes)) << bytes;
  }
}

TEST_F(PinnedPoolTest, AFailedAllocationIsNotBooked) {
  PinnedPool& pool = CreatePool(4 * kMiB);
  InjectFaults("call=aclrtMallocHost,code=207001");

  EXPECT_EQ(pool.Allocate(kMiB).status().code(), absl::StatusCode::kResourceExhausted);

  EXPECT_EQ(pool.statistics().reserved_bytes, 0u);
  EXPECT_TRUE(pool.Allocate(4 * kMiB).ok());
}

TEST_F(PinnedPoolTest, ABufferMayOutliveThePoolsOwner) {
  auto pool = PinnedPool::Create(TestAcl(), 4 * kMiB);
  PinnedBuffer buffer = *pool->Allocate(1000);
  pool_ = pool;
  pool->Close();

  pool.reset();
  std::memset(buffer.data(), 1, buffer.size());
  buffer = PinnedBuffer();
}

}  // namespace
}  // namespace opserve::server
