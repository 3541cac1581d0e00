// W12 of server/device/README.md: the books, against a model that knows what every stream may use.
#include <algorithm>
#include <map>
#include <random>

#include "tests/seed.h"
#include "tests/unit/server/memory_pool_fixture.h"

namespace opserve::server {
namespace {

using Scrub = DeviceMemoryPool::Scrub;

class MemoryPoolModelTest : public MemoryPoolFixture, public ::testing::WithParamInterface<Scrub> {
 protected:
  // Bytes on the device.
  struct Piece {
    uintptr_t start;
    uintptr_t end;
    aclrtStream stream;

    bool Overlaps(const Piece& other) const { return start < other.end && other.start < end; }
  };
  struct Held {
    DeviceBuffer buffer;
    Piece block;
  };

  void Allocate() {
    const int on = static_cast<int>(random_() % 5) - 1;
    const size_t bytes = 1 + random_() % (random_() % 10 == 0 ? 1000000 : 20000);
    aclrtStream const stream = on < 0 ? nullptr : this->stream(on);
    const uint64_t allocated = pool().statistics().allocated_bytes;
    auto buffer = pool().Allocate(
        {.bytes = bytes, .stream = stream, .tenant = static_cast<uint32_t>(random_() % 3)});
    if (!buffer.ok()) {
      ASSERT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
      return;
    }
    const auto start = reinterpret_cast<uintptr_t>(buffer->data());
    const Piece block{start, start + pool().statistics().allocated_bytes - allocated, stream};
    for (const Held& other : held_) ASSERT_FALSE(block.Overlaps(other.block));
    TakeFromRetired(block);
    held_.push_back({*std::move(buffer), block});
  }

  void TakeFromRetired(const Piece& block) {
    std::vector<Piece> left;
    for (const Piece& piece : retired_) {
      if (!block.Overlaps(piece)) {
        left.push_back(piece);
        continue;
      }
      ASSERT_EQ(piece.stream, block.stream) << "another stream may still be using it";
      if (piece.start < block.start) left.push_back({piece.start, block.start, piece.stream});
      if (block.end < piece.end) left.push_back({block.end, piece.end, piece.stream});
    }
    retired_ = std::move(left);
  }

  void Release() {
    if (held_.empty()) return;
    std::swap(held_[random_() % held_.size()], held_.back());
    if (held_.back().block.stream != nullptr) retired_.push_back(held_.back().block);
    held_.pop_back();
  }

  void SynchronizeOne() {
    aclrtStream const idle = stream(static_cast<int>(random_() % 4));
    ASSERT_EQ(TestAcl().aclrtSynchronizeStream(idle), 0);
    random_() % 8 == 0 ? pool().StreamWasAborted(idle) : pool().StreamIsIdle(idle);
    std::erase_if(retired_, [idle](const Piece& piece) { return piece.stream == idle; });
  }

  void Check() {
    const auto snapshot = pool().snapshot();
    const auto& statistics = snapshot.statistics;
    uint64_t reserved = 0, requested = 0, largest = 0;
    std::map<BlockState, uint64_t> bytes, count;
    for (const auto& region : snapshot.regions) {
      uint64_t offset = 0;
      for (const auto& block : region.blocks) {
        ASSERT_EQ(block.offset, offset);
        ASSERT_EQ(block.requested_bytes > 0, block.state == BlockState::kAllocated);
        offset += block.bytes;
        bytes[block.state] += block.bytes;
        ++count[block.state];
        requested += block.requested_bytes;
        if (block.state == BlockState::kIdle) largest = std::max(largest, block.bytes);
      }
      ASSERT_EQ(offset, region.bytes);
      reserved += region.bytes;
    }
    ASSERT_EQ(statistics.reserved_bytes, reserved);
    ASSERT_EQ(statistics.allocated_bytes, bytes[BlockState::kAllocated]);
    ASSERT_EQ(statistics.idle_bytes, bytes[BlockState::kIdle]);
    ASSERT_EQ(statistics.retired_bytes, bytes[BlockState::kRetired]);
    ASSERT_EQ(statistics.requested_bytes, requested);
    ASSERT_EQ(statistics.largest_free_bytes, largest);
    ASSERT_GE(statistics.peak_bytes, reserved);
    ASSERT_EQ(reserved,
              statistics.allocated_bytes + statistics.idle_bytes + statistics.retired_bytes);

    uint64_t held_bytes = 0, retired_bytes = 0;
    for (const Held& held : held_) held_bytes += held.buffer.size();
    for (const Piece& piece : retired_) retired_bytes += piece.end - piece.start;
    ASSERT_EQ(requested, held_bytes);
    ASSERT_EQ(count[BlockState::kAllocated], held_.size());
    ASSERT_EQ(statistics.retired_bytes, retired_bytes);
    ASSERT_LE(BytesTakenFromDevice(), pool().options().max_bytes);
  }

  std::mt19937 random_;
  std::vector<Held> held_;
  std::vector<Piece> retired_;  // released on a stream that was not seen idle since
};

TEST_P(MemoryPoolModelTest, TheBooksAreInOrderAfterEveryStep) {
  random_.seed(TestSeed());
  CreatePool({.max_bytes = 6 * kMiB,
              .floor_bytes = kMiB,
              .region_bytes = kMiB,
              .decay = absl::Seconds(20),
              .scrub = GetParam()});
  absl::Time now = absl::UnixEpoch();
  for (int round = 0; round < 10000 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    const uint32_t choice = random_() % 100;
    if (choice < 50) {
      Allocate();
    } else if (choice < 88) {
      Release();
    } else if (choice < 94) {
      SynchronizeOne();
    } else if (choice < 95) {
      pool().Trim();
    } else if (choice < 98) {
      now += absl::Seconds(random_() % 20);
      pool().TrimDecayed(now);
    } else if (choice < 99) {
      InjectFaults("call=aclrtMalloc,count=2,code=207001");
    } else {
      for (int i = 0; i < 20; ++i) Release();
    }
    Check();
  }

  held_.clear();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(TestAcl().aclrtSynchronizeStream(stream(i)), 0);
    pool().StreamIsIdle(stream(i));
  }
  pool().Trim();
  EXPECT_EQ(pool().statistics().reserved_bytes, 0u);
  EXPECT_EQ(BytesTakenFromDevice(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Scrubs, MemoryPoolModelTest,
                         ::testing::Values(Scrub::kCrossTenant, Scrub::kAlways, Scrub::kNever));

TEST(MemoryPoolResetTest, WhatWasForgottenIsInNoSumAndMayStillBeReturned) {
  using Pool = DeviceMemoryPool;
  const AclLibrary& acl = TestAcl();
  ASSERT_EQ(acl.aclrtSetDevice(1), 0);
  aclrtStream stream = nullptr;
  ASSERT_EQ(acl.aclrtCreateStream(&stream), 0);
  Pool pool(acl, {.region_bytes = kMiB, .scrub = Scrub::kNever});
  DeviceBuffer lent = *pool.Allocate({.bytes = 1000, .stream = stream});
  DeviceBuffer resident = *pool.Allocate({.bytes = 4 * kMiB});
  { DeviceBuffer retired = *pool.Allocate({.bytes = 5000, .stream = stream}); }
  ASSERT_EQ(acl.aclrtResetDeviceForce(1), 0);
  ASSERT_EQ(acl.aclrtSetDevice(1), 0);
  ASSERT_EQ(acl.aclrtCreateStream(&stream), 0);

  pool.ForgetAll();

  EXPECT_EQ(pool.statistics().reserved_bytes, 0u);
  EXPECT_EQ(pool.statistics().idle_bytes, 0u);
  EXPECT_EQ(pool.statistics().retired_bytes, 0u);
  EXPECT_EQ(pool.statistics().allocated_bytes, 0u);
  EXPECT_EQ(pool.statistics().allocations[Pool::kGrow], 2u);
  DeviceBuffer next = *pool.Allocate({.bytes = 2000, .stream = stream});
  lent = DeviceBuffer();
  resident = DeviceBuffer();
  EXPECT_EQ(pool.statistics().requested_bytes, 2000u);
  EXPECT_EQ(pool.snapshot().regions.size(), 1u);
  next = DeviceBuffer();
  pool.StreamIsIdle(stream);
  EXPECT_GT(pool.Trim(), 0u);
  EXPECT_EQ(HostCount(OPSERVE_HOST_ALLOCATIONS), 0);
  EXPECT_EQ(acl.aclrtDestroyStream(stream), 0);
  EXPECT_EQ(acl.aclrtResetDevice(1), 0);
}

}  // namespace
}  // namespace opserve::server
