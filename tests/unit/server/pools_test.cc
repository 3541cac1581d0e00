#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/device.h"
#include "server/device/memory_pool.h"
#include "server/device/pinned_pool.h"
#include "server/device/size_class.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class PoolsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(TestAcl(), 0);
    for (uint32_t i = 0; i < 2; ++i) lanes_.push_back(*StreamLane::Create(*device_, i));
  }

  aclrtStream stream(int i) { return lanes_[i]->stream(); }
  DeviceMemoryPool& pool() { return device_->memory(); }

  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<StreamLane>> lanes_;
};

TEST(SizeClassTest, HoldsTheRequestAndWastesAnEighthAtMost) {
  for (size_t bytes = 1; bytes < 100000; ++bytes) {
    const size_t size = SizeClass(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_LE(size, std::max<size_t>(512, bytes + bytes / 8)) << bytes;
    ASSERT_EQ(SizeClass(size), size);
  }
  EXPECT_GE(SizeClass((size_t{1} << 62) - 1), (size_t{1} << 62) - 1);
}

TEST_F(PoolsTest, ABlockServesItsStreamAgainAtOnceAndOthersOnlyWhenTheStreamIsIdle) {
  void* first = pool().Allocate(1000, stream(0))->data();

  // Released, but stream 0 may still be using it.
  const DeviceBuffer other = *pool().Allocate(1000, stream(1));
  EXPECT_NE(other.data(), first);
  EXPECT_EQ(pool().Allocate(1000, stream(0))->data(), first);

  pool().StreamIsIdle(stream(0));
  EXPECT_EQ(pool().Allocate(1000, stream(1))->data(), first);
  const auto statistics = pool().statistics();
  EXPECT_EQ(statistics.allocations[DeviceMemoryPool::kGrow], 2u);
  EXPECT_EQ(statistics.allocations[DeviceMemoryPool::kHit], 1u);
  EXPECT_EQ(statistics.allocations[DeviceMemoryPool::kCrossStream], 1u);
}

TEST_F(PoolsTest, NothingIsAllocatedForZeroBytes) {
  const DeviceBuffer empty = *pool().Allocate(0, stream(0));

  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_EQ(pool().statistics().reserved_bytes, 0u);
}

TEST_F(PoolsTest, AnOutOfMemoryDeviceIsTrimmedAndTriedOnceMore) {
  { const DeviceBuffer large = *pool().Allocate(40 * kMiB, stream(0)); }
  pool().StreamIsIdle(stream(0));

  // 40 MiB idle of 64, in a block too small for this: only after a trim is there room.
  const auto fits = pool().Allocate(50 * kMiB, stream(0));

  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_EQ(pool().statistics().allocations[DeviceMemoryPool::kRetry], 1u);
}

TEST_F(PoolsTest, WhenNothingHelpsOnlyThatRequestIsRefused) {
  const DeviceBuffer held = *pool().Allocate(40 * kMiB, stream(0));

  const auto refused = pool().Allocate(50 * kMiB, stream(1));

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pool().Allocate(10 * kMiB, stream(1)).ok());
  EXPECT_EQ(pool().statistics().allocations[DeviceMemoryPool::kOutOfMemory], 1u);
}

TEST_F(PoolsTest, TrimLeavesWhatAStreamMayStillUse) {
  { const DeviceBuffer released = *pool().Allocate(kMiB, stream(0)); }
  pool().Trim();
  EXPECT_EQ(pool().statistics().idle_bytes, kMiB);

  pool().StreamIsIdle(stream(0));
  pool().Trim();
  EXPECT_EQ(pool().statistics().reserved_bytes, 0u);
  EXPECT_EQ(pool().statistics().trimmed_bytes_total, kMiB);
}

TEST_F(PoolsTest, RandomUseFromManyThreadsEndsWithNothingLentAndTheBooksInOrder) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  InjectFaults("call=aclrtMalloc,nth=5,count=20,code=207001");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t, seed] {
      ASSERT_TRUE(device_->BindThisThread().ok());
      std::mt19937 random(seed + t);
      std::vector<DeviceBuffer> held;
      for (int round = 0; round < 2000; ++round) {
        if (held.size() > 4 || (random() % 2 == 0 && !held.empty())) {
          std::swap(held[random() % held.size()], held.back());
          held.pop_back();
        } else if (auto buffer = pool().Allocate(random() % 100000, stream(t % 2)); buffer.ok()) {
          // Two holders of one block would see each other's bytes.
          if (buffer->size() > 0) std::memset(buffer->data(), t, buffer->size());
          held.push_back(*std::move(buffer));
        }
        for (const DeviceBuffer& buffer : held) {
          if (buffer.size() == 0) continue;
          ASSERT_EQ(static_cast<char*>(buffer.data())[buffer.size() - 1], t);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ClearFaults();

  auto statistics = pool().statistics();
  EXPECT_EQ(statistics.allocated_bytes, 0u);
  EXPECT_EQ(statistics.requested_bytes, 0u);
  EXPECT_EQ(statistics.reserved_bytes, statistics.idle_bytes);
  pool().StreamIsIdle(stream(0));
  pool().StreamIsIdle(stream(1));
  pool().Trim();
  EXPECT_EQ(pool().statistics().reserved_bytes, 0u);
  EXPECT_EQ(HostCount(OPSERVE_HOST_ALLOCATIONS), 0);
}

TEST_F(PoolsTest, PinnedBlocksAreReusedAndTheLimitHolds) {
  const auto pinned = PinnedPool::Create(TestAcl(), 4 * kMiB);
  void* first = pinned->Allocate(kMiB)->data();
  EXPECT_EQ(pinned->Allocate(kMiB)->data(), first);
  EXPECT_EQ(pinned->statistics().reserved_bytes, kMiB);

  {
    // The idle MiB makes room for a larger block.
    const PinnedBuffer large = *pinned->Allocate(4 * kMiB);
    EXPECT_EQ(pinned->Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(pinned->Allocate(5 * kMiB).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pinned->statistics().allocated_bytes, 0u);
  pinned->Close();
  EXPECT_EQ(pinned->statistics().reserved_bytes, 0u);
  EXPECT_EQ(HostCount(OPSERVE_HOST_PINNED_BYTES), 0);
}

TEST_F(PoolsTest, AFailedPinnedAllocationIsNotBooked) {
  const auto pinned = PinnedPool::Create(TestAcl(), 4 * kMiB);
  InjectFaults("call=aclrtMallocHost,code=207001");

  EXPECT_EQ(pinned->Allocate(kMiB).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pinned->statistics().reserved_bytes, 0u);
  EXPECT_TRUE(pinned->Allocate(4 * kMiB).ok());
  pinned->Close();
}

}  // namespace
}  // namespace opserve::server
