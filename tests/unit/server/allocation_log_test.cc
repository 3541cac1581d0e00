// Logs of pools, and books that are led anew from them.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/device/memory/allocation_log.h"
#include "server/device/memory/allocation_replay.h"
#include "tests/seed.h"
#include "tests/unit/server/memory_pool_fixture.h"

namespace opserve::server {
namespace {

using testing::HasSubstr;
using Scrub = DeviceMemoryPool::Scrub;

class AllocationLogTest : public MemoryPoolFixture {
 protected:
  void TearDown() override {
    MemoryPoolFixture::TearDown();
    std::filesystem::remove(path_);
  }

  // What a thread of a daemon may do with the pool; `streams` are its own.
  void Use(unsigned seed, int first_stream, int streams) {
    BindThisThread();
    std::mt19937 random(seed);
    std::vector<DeviceBuffer> held(12);
    for (int i = 0; i < 3000; ++i) {
      DeviceBuffer& buffer = held[random() % held.size()];
      const aclrtStream on = stream(first_stream + static_cast<int>(random() % streams));
      const unsigned step = random() % 16;
      // What 0 to 2 say is true: the pool fills blocks in a stream's order, and another may get
      // them.
      if (step <= 2) Synchronize(first_stream, streams);
      switch (step) {
        case 0:
          pool().StreamIsIdle(on);
          break;
        case 1:
          pool().StreamWasAborted(on);
          break;
        case 2:
          pool().LeaveStream(buffer);
          break;
        case 3:
          buffer = DeviceBuffer();
          break;
        case 4:
          pool().TrimDecayed(absl::UnixEpoch() + absl::Seconds(i));
          break;
        case 5:
          if (random() % 64 == 0) held = std::vector<DeviceBuffer>(held.size());
          break;
        case 6:
          pool().JoinStream(buffer, on);
          break;
        default: {
          const size_t bytes = random() % (size_t{1} << (random() % 19));
          auto lent = pool().Allocate({.bytes = bytes,
                                       .stream = random() % 4 == 0 ? nullptr : on,
                                       .tenant = static_cast<uint32_t>(random() % 4)});
          if (lent.ok()) buffer = *std::move(lent);
        }
      }
    }
    Synchronize(first_stream, streams);  // the pool's memory may now go
  }

  void Synchronize(int first_stream, int streams) {
    for (int i = first_stream; i < first_stream + streams; ++i) {
      EXPECT_EQ(TestAcl().aclrtSynchronizeStream(stream(i)), 0);
    }
  }

  absl::StatusOr<AllocationReplay> Replay() {
    std::ifstream log(path_, std::ios::binary);
    return ReplayAllocationLog(log);
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/allocations.", getpid());
};

TEST_F(AllocationLogTest, AReplayHasTheStatisticsOfThePool) {
  const uint32_t seed = TestSeed(0);
  for (const Scrub scrub : {Scrub::kCrossTenant, Scrub::kNever}) {
    for (const unsigned threads : {1u, 4u}) {
      SCOPED_TRACE(absl::StrCat("scrub ", scrub != Scrub::kNever, ", threads ", threads));
      CreatePool({.max_bytes = 8 * kMiB,
                  .floor_bytes = 0,
                  .region_bytes = 512 * kKiB,
                  .decay = absl::Seconds(1),
                  .scrub = scrub,
                  .allocation_log = path_});
      InjectFaults("call=aclrtMalloc,nth=5,code=207001");
      std::vector<std::thread> users;
      for (unsigned i = 0; i < threads; ++i) {
        users.emplace_back([this, seed, i] { Use(seed + i, static_cast<int>(2 * i), 2); });
      }
      for (std::thread& user : users) user.join();
      const Pool::Statistics statistics = pool().statistics();
      CreatePool({});  // the other one ends its log

      const absl::StatusOr<AllocationReplay> replay = Replay();

      ASSERT_TRUE(replay.ok()) << replay.status();
      EXPECT_EQ(replay->bytes.reserved, statistics.reserved_bytes);
      EXPECT_EQ(replay->bytes.allocated, statistics.allocated_bytes);
      EXPECT_EQ(replay->bytes.requested, statistics.requested_bytes);
      EXPECT_EQ(replay->bytes.idle, statistics.idle_bytes);
      EXPECT_EQ(replay->bytes.retired, statistics.retired_bytes);
      EXPECT_EQ(replay->largest_idle_bytes, statistics.largest_free_bytes);
      EXPECT_EQ(replay->merges, statistics.merges_total);
      uint64_t lendings = 0;
      for (int outcome = 0; outcome < Pool::kOutOfMemory; ++outcome) {
        lendings += statistics.allocations[outcome];
      }
      EXPECT_EQ(replay->lendings, lendings);
      EXPECT_GT(replay->merges, 0u);
      EXPECT_GT(replay->states, 1u);
      EXPECT_GT(statistics.trims_total, 0u);
    }
  }
}

TEST_F(AllocationLogTest, MemoryThatAResetTookIsGoneInTheReplayToo) {
  CreatePool({.allocation_log = path_});
  DeviceBuffer held = Lend(1000, stream(0));
  for (const auto& region : pool().snapshot().regions) EXPECT_GT(region.bytes, 0u);
  const std::vector<char*> lost = {static_cast<char*>(held.data())};
  pool().ForgetAll();
  EXPECT_EQ(pool().statistics().reserved_bytes, 0u);
  held = DeviceBuffer();
  ASSERT_EQ(TestAcl().aclrtFree(lost[0]), 0);  // no reset took place
  CreatePool({});

  const absl::StatusOr<AllocationReplay> replay = Replay();

  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->bytes.reserved, 0u);
  EXPECT_EQ(replay->lendings, 1u);
}

TEST_F(AllocationLogTest, ALogIsItsOwnersAloneAndReplacesAnOlderOne) {
  std::ofstream(path_) << "older";
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  CreatePool({.allocation_log = path_});
  struct stat file = {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  CreatePool({});
  EXPECT_TRUE(Replay().ok());
  EXPECT_EQ(AllocationLog::Create("/nowhere/log").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AllocationLogTest, AFullLogSaysSoAndHasItsBeginning) {
  auto log = AllocationLog::Create(path_, /*max_bytes=*/200);
  ASSERT_TRUE(log.ok()) << log.status();
  {
    MemoryHeap heap(*std::move(log));
    BlockRequest request{.requested_bytes = 100,
                         .least_bytes = 512,
                         .class_bytes = 512,
                         .most_bytes = 1124,
                         .stream = nullptr,
                         .tenant = 1};
    MemoryBlock* block =
        heap.AddRegion(reinterpret_cast<void*>(uintptr_t{1} << 20), 8192, request).block;
    for (int i = 0; i < 100; ++i) {
      heap.Return(block);
      block = heap.TakeIdle(request).block;
    }
  }
  EXPECT_LE(std::filesystem::file_size(path_), 200u);
  const absl::StatusOr<AllocationReplay> replay = Replay();
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->is_full);
  EXPECT_GT(replay->lendings, 1u);
}

TEST(AllocationReplayTest, ALogThatIsWrongIsRefusedByTheLine) {
  constexpr char kRegion[] = "region 1048576 8192 100 512 512 1124 1 7\n";
  struct Case {
    std::string lines;
    absl::StatusCode code;
    const char* text;
  };
  for (const Case& c : {
           Case{"guess 1\n", absl::StatusCode::kInvalidArgument, "line 2: begins with no word"},
           Case{"return x\n", absl::StatusCode::kInvalidArgument, "line 2: word 2 is not a number"},
           Case{"return\n", absl::StatusCode::kInvalidArgument, "has 0 numbers, must have 1"},
           Case{"return 1\n", absl::StatusCode::kInvalidArgument, "nothing is lent as 1"},
           Case{"region 1048576 100 100 512 512 1124 1 7\n", absl::StatusCode::kInvalidArgument,
                "the region is not one of a pool"},
           Case{"region 1048576 8192 100 511 512 1124 1 7\n", absl::StatusCode::kInvalidArgument,
                "the sizes of the request"},
           Case{"idle 100 512 512 1124 1 7\n", absl::StatusCode::kDataLoss, "no such block"},
           Case{absl::StrCat(kRegion, "remove 1048576\n"), absl::StatusCode::kDataLoss,
                "line 3: there is no such idle region"},
           Case{absl::StrCat(kRegion, "state 8192 512 100 7680 0 7680 0\nreturn 1\nreturn 1\n"),
                absl::StatusCode::kInvalidArgument, "line 5: nothing is lent as 1"},
           Case{absl::StrCat(kRegion, "state 8192 512 100 7680 0 7680 1\n"),
                absl::StatusCode::kDataLoss,
                "line 3: the sums are 8192 512 100 7680 0 7680 0, the log has 8192 512 100 7680 0 "
                "7680 1"},
       }) {
    std::istringstream log(absl::StrCat(kAllocationLogHeader, "\n", c.lines));
    const absl::Status status = ReplayAllocationLog(log).status();
    EXPECT_EQ(status.code(), c.code) << c.lines << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
  std::istringstream other("something else\n");
  EXPECT_THAT(std::string(ReplayAllocationLog(other).status().message()),
              HasSubstr("this is no allocation log"));
}

}  // namespace
}  // namespace opserve::server
