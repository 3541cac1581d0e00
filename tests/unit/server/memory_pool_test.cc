// W1 to W8 of server/device/README.md: how blocks are found, divided, merged, taken and given back.
#include <cstring>

#include "proto/status/error.h"
#include "server/device/memory/size_class.h"
#include "tests/unit/server/memory_pool_fixture.h"

namespace opserve::server {
namespace {

using MemoryPoolTest = MemoryPoolFixture;
using Scrub = DeviceMemoryPool::Scrub;

TEST(SizeClassTest, HoldsTheRequestAndWastesAnEighthAtMost) {
  for (size_t bytes = 1; bytes < 100000; ++bytes) {
    const size_t size = SizeClass(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_LE(size, std::max<size_t>(512, bytes + bytes / 8)) << bytes;
    ASSERT_EQ(SizeClass(size), size);
  }
  EXPECT_GE(SizeClass((size_t{1} << 62) - 1), (size_t{1} << 62) - 1);
}

TEST_F(MemoryPoolTest, NothingIsTakenForZeroBytes) {
  CreatePool({});

  const DeviceBuffer empty = Lend(0, stream(0));

  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_EQ(empty.size(), 0u);
  EXPECT_EQ(pool().statistics().reserved_bytes, 0u);
}

TEST_F(MemoryPoolTest, ABufferKeepsItsBlockWhenItIsMovedAndReturnsItOnce) {
  CreatePool({});
  DeviceBuffer first = Lend(1000, stream(0));
  void* const data = first.data();

  DeviceBuffer second = std::move(first);
  DeviceBuffer third = Lend(2000, stream(0));
  third = std::move(second);

  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 1000u);
  EXPECT_EQ(NumBlocks(BlockState::kAllocated), 1u);
  third = DeviceBuffer();
  EXPECT_EQ(pool().statistics().allocated_bytes, 0u);
  EXPECT_EQ(pool().statistics().requested_bytes, 0u);
}

TEST_F(MemoryPoolTest, AReleasedBlockServesItsStreamAgainWithoutAnyAclCall) {
  CreatePool({});
  void* const first = Lend(1000, stream(0)).data();
  const uint64_t calls = NumAclCalls();

  for (int i = 0; i < 10; ++i) EXPECT_EQ(Lend(1000, stream(0)).data(), first);

  EXPECT_EQ(NumAclCalls(), calls);
  EXPECT_EQ(pool().statistics().allocations[Pool::kHit], 10u);
}

TEST_F(MemoryPoolTest, OtherStreamsGetABlockOnlyWhenItsStreamWasSeenIdle) {
  CreatePool({});
  void* const first = Lend(1000, stream(0)).data();

  // Released, but stream 0 may still be using it.
  EXPECT_NE(Lend(1000, stream(1)).data(), first);
  EXPECT_NE(Lend(1000, nullptr).data(), first);
  pool().StreamIsIdle(stream(1));
  EXPECT_NE(Lend(1000, stream(1)).data(), first);

  pool().StreamIsIdle(stream(0));
  Pool::Outcome outcome = Pool::kOutcomes;
  DeviceBuffer again = Lend(1000, nullptr, 1, &outcome);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(outcome, Pool::kCrossStream);
}

TEST_F(MemoryPoolTest, WhatIsLentWithoutAStreamIsFreeForAllAsSoonAsItIsReturned) {
  CreatePool({});
  void* const first = Lend(1000, nullptr).data();

  EXPECT_EQ(pool().statistics().retired_bytes, 0u);
  EXPECT_EQ(Lend(1000, stream(3)).data(), first);
}

TEST_F(MemoryPoolTest, ABlockIsAlignedWithSlackBehindItAndAnEighthAnd512BytesTooLargeAtMost) {
  CreatePool({.region_bytes = 4 * kMiB, .scrub = Scrub::kNever});
  size_t held_bytes = 0;
  std::vector<DeviceBuffer> held;
  for (size_t bytes = 1; held_bytes < 24 * kMiB; bytes += bytes / 13 + 1) {
    if (bytes > 2 * kMiB) bytes = 1;
    // Half of them come from blocks that others left behind.
    if (held.size() % 3 == 2) std::swap(held[0], held.back()), held.pop_back();
    pool().StreamIsIdle(stream(0));
    const uint64_t allocated = pool().statistics().allocated_bytes;
    held.push_back(Lend(bytes, stream(0)));
    held_bytes += bytes;
    const uint64_t block_bytes = pool().statistics().allocated_bytes - allocated;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(held.back().data()) % 512, 0u);
    ASSERT_GE(block_bytes, bytes + 32);
    ASSERT_LE(block_bytes, bytes + bytes / 8 + 512);
  }
}

// What stays is lent without a stream.
TEST_F(MemoryPoolTest, WhatStaysTakesItsOwnSizeAndNoBlockThatIsMuchLarger) {
  const struct {
    size_t bytes;
    size_t most;  // of a block that is there already and is taken as a whole
  } kCases[] = {{16 * kKiB, 18 * kKiB + 512},
                {1025 * kKiB, 1089 * kKiB + 512},
                {3 * kMiB + 1, 3 * kMiB + 64 * kKiB + 512}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.bytes);
    CreatePool({.region_bytes = 32 * kMiB, .scrub = Scrub::kNever});
    std::vector<DeviceBuffer> held;
    const size_t exact = (c.bytes + 32 + 511) / 512 * 512;
    const auto taken_by = [&, this](aclrtStream stream) {
      const uint64_t before = pool().statistics().allocated_bytes;
      held.push_back(Lend(c.bytes, stream));
      return pool().statistics().allocated_bytes - before;
    };

    EXPECT_EQ(taken_by(nullptr), exact);  // of a new region
    EXPECT_EQ(taken_by(nullptr), exact);  // of its rest
    EXPECT_GE(taken_by(stream(0)), SizeClass(c.bytes + 32));

    // Blocks that others leave behind, between some that stay.
    {
      std::vector<DeviceBuffer> left;
      for (const size_t bytes : {c.most - 512, c.most}) {
        left.push_back(Lend(bytes, nullptr));
        held.push_back(Lend(1, nullptr));
      }
    }
    EXPECT_EQ(taken_by(nullptr), c.most);  // as it is, since little is wasted
    EXPECT_EQ(taken_by(nullptr), exact);
  }
}

TEST_F(MemoryPoolTest, SmallRequestsShareARegionEvenIfItIsNotAligned) {
  // Regions this small come from the heap, which aligns them to 64 bytes.
  CreatePool({.region_bytes = 64 * kKiB, .scrub = Scrub::kNever});
  std::vector<DeviceBuffer> held;

  for (int i = 0; i < 63; ++i) held.push_back(Lend(992, stream(0)));

  for (const DeviceBuffer& buffer : held) {
    ASSERT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 512, 0u);
    std::memset(buffer.data(), 1, buffer.size() + 32);
  }
  EXPECT_EQ(pool().statistics().allocations[Pool::kGrow], 1u);
  EXPECT_LE(BytesTakenFromDevice(), 64 * kKiB);
}

TEST_F(MemoryPoolTest, ALargerBlockIsSplitAndTheRestServesOthers) {
  CreatePool({.region_bytes = 8 * kMiB});
  { DeviceBuffer large = Lend(6 * kMiB, stream(0)); }

  DeviceBuffer first = Lend(2 * kMiB, stream(0));
  DeviceBuffer second = Lend(2 * kMiB, stream(0));

  EXPECT_EQ(pool().statistics().allocations[Pool::kSplit], 2u);
  EXPECT_EQ(pool().statistics().allocations[Pool::kGrow], 1u);
  EXPECT_EQ(static_cast<char*>(second.data()) - static_cast<char*>(first.data()),
            static_cast<ptrdiff_t>(SizeClass(2 * kMiB + 32)));
}

TEST_F(MemoryPoolTest, WhenEverythingIsBackEveryRegionIsOneIdleBlock) {
  CreatePool({.region_bytes = 2 * kMiB, .scrub = Scrub::kNever});
  std::vector<DeviceBuffer> held;
  for (size_t i = 0; i < 200; ++i) {
    held.push_back(Lend(1000 + 977 * (i % 60), i % 5 == 4 ? nullptr : stream(i % 4)));
  }
  // Every third first, so that most find no free neighbour.
  for (size_t start : {0, 2, 1}) {
    for (size_t i = start; i < held.size(); i += 3) held[i] = DeviceBuffer();
  }
  for (int i = 0; i < 4; ++i) pool().StreamIsIdle(stream(i));

  const auto snapshot = pool().snapshot();
  EXPECT_GT(snapshot.regions.size(), 2u);
  for (const auto& region : snapshot.regions) {
    ASSERT_EQ(region.blocks.size(), 1u);
    EXPECT_EQ(region.blocks[0].state, BlockState::kIdle);
    EXPECT_EQ(region.blocks[0].bytes, region.bytes);
  }
}

TEST_F(MemoryPoolTest, NeighboursRetiredOnOneStreamMergeAndServeItTogether) {
  CreatePool({.region_bytes = 8 * kMiB, .scrub = Scrub::kNever});
  {
    DeviceBuffer first = Lend(kMiB, stream(0)), second = Lend(kMiB, stream(0));
    DeviceBuffer other = Lend(kMiB, stream(1)), last = Lend(kMiB, stream(0));
  }
  EXPECT_EQ(NumBlocks(BlockState::kRetired), 3u);

  EXPECT_EQ(OutcomeOf(2 * kMiB, stream(0)), Pool::kHit);
}

TEST_F(MemoryPoolTest, IdleNeighboursOfDifferentTenantsMergeWhenTheyAreNeededTogether) {
  CreatePool({.max_bytes = 8 * kMiB, .region_bytes = 8 * kMiB});
  {
    std::vector<DeviceBuffer> held;
    for (uint32_t tenant = 1; tenant <= 6; ++tenant) {
      held.push_back(Lend(kMiB, stream(0), tenant));
    }
  }
  pool().StreamIsIdle(stream(0));
  EXPECT_EQ(NumBlocks(BlockState::kIdle), 7u);

  EXPECT_EQ(OutcomeOf(7 * kMiB, stream(1), 9), Pool::kSplit);

  EXPECT_EQ(pool().statistics().allocations[Pool::kGrow], 1u);
}

TEST_F(MemoryPoolTest, AFailedGrowthChangesNothingAndSmallerRequestsStillSucceed) {
  CreatePool({.region_bytes = 2 * kMiB});
  DeviceBuffer held = Lend(kMiB, stream(0));
  const auto before = pool().statistics();
  const uint64_t taken = BytesTakenFromDevice();

  // More than the device has.
  EXPECT_EQ(StatusOf({.bytes = 70 * kMiB, .stream = stream(1)}).code(),
            absl::StatusCode::kResourceExhausted);

  const auto after = pool().statistics();
  EXPECT_EQ(after.reserved_bytes, before.reserved_bytes);
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_EQ(after.idle_bytes, before.idle_bytes);
  EXPECT_EQ(after.allocations[Pool::kOutOfMemory], 1u);
  EXPECT_EQ(BytesTakenFromDevice(), taken);
  EXPECT_EQ(OutcomeOf(30 * kMiB, stream(1)), Pool::kGrow);
  EXPECT_EQ(OutcomeOf(kMiB / 2, stream(2)), Pool::kSplit);
}

TEST_F(MemoryPoolTest, WhicheverGrowthFailsTheNextRequestSucceedsAndNothingIsLost) {
  for (int failures = 1; failures <= 3; ++failures) {
    CreatePool({.region_bytes = 2 * kMiB});
    { DeviceBuffer trimmable = Lend(kMiB, nullptr); }
    InjectFaults("call=aclrtMalloc,count=" + std::to_string(failures) + ",code=207001");
    Pool::Outcome outcome = Pool::kOutcomes;

    // The class of this size is larger than the size: a region, the exact size, and again.
    const auto buffer = pool().Allocate({.bytes = 4 * kMiB, .stream = stream(0)}, &outcome);

    EXPECT_EQ(outcome, failures == 1   ? Pool::kGrow
                       : failures == 2 ? Pool::kRetry
                                       : Pool::kOutOfMemory);
    EXPECT_EQ(buffer.status().code(),
              failures == 3 ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk);
    ClearFaults();
    EXPECT_EQ(OutcomeOf(4 * kMiB, stream(1)), Pool::kGrow);
    EXPECT_EQ(pool().statistics().requested_bytes, buffer.ok() ? 4 * kMiB : 0);
  }
}

TEST_F(MemoryPoolTest, ADeviceThatFailsOtherwiseIsReportedAtOnceAndNothingIsTrimmed) {
  CreatePool({.region_bytes = 2 * kMiB});
  { DeviceBuffer trimmable = Lend(kMiB, nullptr); }
  InjectFaults("call=aclrtMalloc,count=all,code=507010");

  const absl::Status status = StatusOf({.bytes = 4 * kMiB, .stream = stream(0)});

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorDetailOf(status)->acl_error(), 507010);
  EXPECT_EQ(pool().statistics().trimmed_bytes_total, 0u);
}

TEST_F(MemoryPoolTest, MemoryIsLookedForInTheOrderOfWhatItCosts) {
  CreatePool({.max_bytes = 40 * kMiB, .region_bytes = 8 * kMiB, .scrub = Scrub::kNever});
  { DeviceBuffer own = Lend(6 * kMiB, stream(0)), other = Lend(6 * kMiB, stream(1)); }
  pool().StreamIsIdle(stream(1));

  EXPECT_EQ(OutcomeOf(6 * kMiB, stream(0)), Pool::kHit);  // its own first
  DeviceBuffer first = Lend(6 * kMiB, stream(0));
  EXPECT_EQ(OutcomeOf(4 * kMiB, stream(0)), Pool::kSplit);  // then what is idle
  DeviceBuffer second = Lend(6 * kMiB, stream(0));
  EXPECT_EQ(OutcomeOf(6 * kMiB, stream(0)), Pool::kGrow);  // then new memory
  pool().StreamIsIdle(stream(0));
  EXPECT_EQ(OutcomeOf(20 * kMiB, stream(0)), Pool::kRetry);  // then after a trim
  EXPECT_EQ(StatusOf({.bytes = 30 * kMiB, .stream = stream(0)}).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_GT(pool().statistics().trimmed_bytes_total, 0u);
}

TEST_F(MemoryPoolTest, NothingIsTrimmedForARequestThatWouldNotFitAfterIt) {
  CreatePool({.max_bytes = 32 * kMiB, .region_bytes = 8 * kMiB});
  DeviceBuffer held = Lend(6 * kMiB, stream(0));
  { DeviceBuffer idle = Lend(6 * kMiB, nullptr); }

  EXPECT_EQ(StatusOf({.bytes = 30 * kMiB, .stream = stream(0)}).code(),
            absl::StatusCode::kResourceExhausted);

  EXPECT_EQ(pool().statistics().trimmed_bytes_total, 0u);
}

TEST_F(MemoryPoolTest, NearTheLimitABlockIsOfTheExactSizeAndServesTheSameRequestAgain) {
  CreatePool({.max_bytes = 33 * kMiB, .region_bytes = 8 * kMiB});

  // The class above is 36 MiB.
  void* const first = Lend(32 * kMiB, stream(0)).data();
  pool().StreamIsIdle(stream(0));

  EXPECT_EQ(Lend(32 * kMiB, stream(1)).data(), first);
  EXPECT_EQ(pool().statistics().reserved_bytes, 32 * kMiB + 512);
}

TEST_F(MemoryPoolTest, WhatTheLimitCanNeverGiveIsAnotherErrorThanWhatItCannotGiveNow) {
  CreatePool({.max_bytes = 8 * kMiB});

  for (size_t bytes : {8 * kMiB, 9 * kMiB, size_t{1} << 40, SIZE_MAX}) {
    const absl::Status status = StatusOf({.bytes = bytes, .wait_until = absl::InfiniteFuture()});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << bytes;
    EXPECT_EQ(ErrorDetailOf(status)->reason(), "device_memory");
    EXPECT_EQ(ErrorDetailOf(status)->retry_pushback_ms(), -1);
  }

  DeviceBuffer held = Lend(7 * kMiB, stream(0));
  const absl::Status status = StatusOf({.bytes = 7 * kMiB, .stream = stream(1)});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorDetailOf(status)->reason(), "device_memory");
  EXPECT_EQ(ErrorDetailOf(status)->retry_pushback_ms(), 0);
}

TEST_F(MemoryPoolTest, TrimGivesBackRegionsInWhichNothingIsLentOrRetired) {
  CreatePool({.region_bytes = 2 * kMiB});
  DeviceBuffer lent = Lend(kMiB, stream(0));
  { DeviceBuffer retired = Lend(8 * kMiB, stream(0)), idle = Lend(16 * kMiB, nullptr); }
  const uint64_t reserved = pool().statistics().reserved_bytes;

  const uint64_t trimmed = pool().Trim();

  EXPECT_GE(trimmed, 16 * kMiB);
  EXPECT_LE(trimmed, 18 * kMiB);
  EXPECT_EQ(pool().statistics().reserved_bytes, reserved - trimmed);
  EXPECT_EQ(pool().statistics().trimmed_bytes_total, trimmed);
  EXPECT_LE(BytesTakenFromDevice(), reserved - trimmed + 2 * 512);
  EXPECT_EQ(pool().Trim(), 0u);
}

TEST_F(MemoryPoolTest, AfterASpikeAndThreeTimesTheDecayNoMoreThanTheFloorIsReserved) {
  CreatePool({.floor_bytes = 4 * kMiB, .region_bytes = 2 * kMiB, .decay = absl::Seconds(10)});
  DeviceBuffer held = Lend(kMiB, stream(0));
  EXPECT_EQ(OutcomeOf(57 * kMiB, stream(0)), Pool::kGrow);  // about 90 % of the device
  pool().StreamIsIdle(stream(0));

  const absl::Time start = absl::UnixEpoch();
  absl::Time now = start;
  while (now != absl::InfiniteFuture() && now <= start + absl::Seconds(30)) {
    now = pool().TrimDecayed(now);
  }

  EXPECT_EQ(now, absl::InfiniteFuture());
  EXPECT_LE(pool().statistics().reserved_bytes, 4 * kMiB);
  EXPECT_GE(pool().statistics().peak_bytes, 57 * kMiB);
}

TEST_F(MemoryPoolTest, DecayTakesRegionsThatWereIdleLongestAndStopsAtTheFloor) {
  CreatePool({.floor_bytes = 12 * kMiB, .region_bytes = kMiB, .decay = absl::Seconds(10)});
  std::vector<DeviceBuffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(Lend(5 * kMiB, nullptr));
  const absl::Time start = absl::UnixEpoch();

  // All are in use: nothing to do before something can have decayed.
  EXPECT_EQ(pool().TrimDecayed(start), start + absl::Seconds(10));
  held[2] = DeviceBuffer();
  EXPECT_EQ(pool().TrimDecayed(start), start + absl::Seconds(10));
  for (int i : {0, 1, 3}) held[i] = DeviceBuffer();
  EXPECT_EQ(pool().TrimDecayed(start + absl::Seconds(5)), start + absl::Seconds(10));
  EXPECT_EQ(pool().statistics().trimmed_bytes_total, 0u);

  // The oldest goes; the others' time has not come.
  EXPECT_EQ(pool().TrimDecayed(start + absl::Seconds(10)), start + absl::Seconds(15));
  EXPECT_EQ(pool().snapshot().regions.size(), 3u);
  // One more, and the floor is reached.
  EXPECT_EQ(pool().TrimDecayed(start + absl::Seconds(15)), absl::InfiniteFuture());
  EXPECT_EQ(pool().snapshot().regions.size(), 2u);
}

TEST_F(MemoryPoolTest, ARegionThatWasUsedInTheMeantimeBeginsToDecayAnew) {
  CreatePool({.floor_bytes = 0, .region_bytes = 2 * kMiB, .decay = absl::Seconds(10)});
  EXPECT_EQ(OutcomeOf(kMiB, nullptr), Pool::kGrow);
  const absl::Time start = absl::UnixEpoch();
  pool().TrimDecayed(start);

  Lend(kMiB, nullptr);

  EXPECT_EQ(pool().TrimDecayed(start + absl::Seconds(10)), start + absl::Seconds(20));
  EXPECT_EQ(pool().snapshot().regions.size(), 1u);
  pool().TrimDecayed(start + absl::Seconds(20));
  EXPECT_EQ(pool().snapshot().regions.size(), 0u);
}

TEST_F(MemoryPoolTest, FragmentationTellsOneLargeIdleBlockFromManySmallOnes) {
  CreatePool({.region_bytes = 2 * kMiB, .scrub = Scrub::kNever});
  EXPECT_EQ(pool().statistics().fragmentation(), 0);
  std::vector<DeviceBuffer> held;
  for (int i = 0; i < 16; ++i) held.push_back(Lend(100 * kKiB, nullptr));
  for (int i = 0; i < 16; i += 2) held[i] = DeviceBuffer();

  EXPECT_GT(pool().statistics().fragmentation(), 0.5);
  held.clear();
  EXPECT_EQ(pool().statistics().fragmentation(), 0);
  EXPECT_EQ(pool().statistics().largest_free_bytes, pool().statistics().reserved_bytes);
}

}  // namespace
}  // namespace opserve::server
