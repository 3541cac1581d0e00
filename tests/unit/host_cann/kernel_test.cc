// Kernels: memory they may touch, cores, time limits.
#include <atomic>
#include <cstring>

#include "tests/await.h"
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

class KernelTest : public RuntimeTest {
 protected:
  static aclError LaunchOn(aclrtStream stream, std::vector<MemoryRange> ranges,
                           std::function<void(kernels::TaskRunner&)> run) {
    return LaunchKernel(stream, {"aclnnTest", std::move(ranges), std::move(run)});
  }
};

TEST_F(KernelTest, RangesMustBeLiveMemoryOfTheDevice) {
  constexpr size_t kBytes = 1000;
  char* const memory = static_cast<char*>(NewDeviceMemory(kBytes));
  char* const freed = static_cast<char*>(NewDeviceMemory(1 << 21));
  ASSERT_EQ(aclrtFree(freed), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  char* const foreign = static_cast<char*>(NewDeviceMemory(kBytes));
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  char local[8];
  const struct {
    const char* name;
    MemoryRange range;
    bool ok;
  } kCases[] = {
      {"all", {memory, kBytes}, true},         {"inside", {memory + 10, 20}, true},
      {"nothing", {nullptr, 0}, true},         {"too long", {memory, kBytes + 1}, false},
      {"before", {memory - 1, 2}, false},      {"behind", {memory + kBytes, 1}, false},
      {"huge", {memory + 1, SIZE_MAX}, false}, {"host", {local, 8}, false},
      {"null", {nullptr, 1}, false},           {"freed", {freed, 1}, false},
      {"other device", {foreign, 1}, false},
  };
  for (const auto& c : kCases) {
    bool ran = false;
    MemoryRange range = c.range;
    range.name = "target";
    ASSERT_EQ(LaunchOn(nullptr, {range}, [&](kernels::TaskRunner&) { ran = true; }), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), c.ok ? 0 : 507035) << c.name;
    EXPECT_EQ(ran, c.ok) << c.name;
    EXPECT_EQ(RecentMessage().find("target") == std::string::npos, c.ok) << c.name;
  }
}

TEST_F(KernelTest, MemoryFreedWhileAKernelRunsStaysUntilItEnds) {
  // The kernel writes after the free; with the sanitizers this is a use after free if memory went.
  for (const size_t bytes : {size_t{64}, size_t{4} << 20}) {
    const aclrtStream stream = NewStream();
    void* const memory = NewDeviceMemory(bytes);
    std::atomic<bool> started = false, freed = false;
    ASSERT_EQ(LaunchOn(stream, {{memory, bytes, "out"}},
                       [&](kernels::TaskRunner&) {
                         started = true;
                         EXPECT_TRUE(Await([&] { return freed.load(); }));
                         std::memset(memory, 1, bytes);
                       }),
              ACL_SUCCESS);
    EXPECT_TRUE(Await([&] { return started.load(); }));
    EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
    EXPECT_EQ(opserveHostDeviceCount(0, OPSERVE_HOST_ALLOCATED_BYTES), 0);
    freed = true;
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }
}

TEST_F(KernelTest, CoresRunEveryTaskOnce) {
  for (const int64_t num_tasks : {0, 1, 2, 3, 100, 5000}) {
    std::vector<std::atomic<int>> counts(num_tasks);
    ASSERT_EQ(LaunchOn(nullptr, {},
                       [&](kernels::TaskRunner& cores) {
                         const auto count = [](void* context, int64_t index) {
                           ++(*static_cast<std::vector<std::atomic<int>>*>(context))[index];
                         };
                         cores.Run(num_tasks, count, &counts);
                       }),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    for (const std::atomic<int>& count : counts) EXPECT_EQ(count, 1);
  }
}

TEST_F(KernelTest, CoresWorkAtOnceAndForSeveralStreams) {
  // Each of two tasks ends only after both have started.
  struct Meeting {
    std::atomic<int> arrived = 0;
  };
  const auto meet = [](void* context, int64_t) {
    auto& meeting = *static_cast<Meeting*>(context);
    ++meeting.arrived;
    EXPECT_TRUE(Await([&] { return meeting.arrived == 2; }));
  };
  Meeting meetings[2];
  for (Meeting& meeting : meetings) {
    ASSERT_EQ(
        LaunchOn(NewStream(), {},
                 [&meeting, meet](kernels::TaskRunner& cores) { cores.Run(2, meet, &meeting); }),
        ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

TEST_F(KernelTest, ExecutionLimitIsRoundedToTheInterval) {
  uint64_t interval = 0, actual = 0;
  ASSERT_EQ(aclrtGetOpTimeOutInterval(&interval), ACL_SUCCESS);
  EXPECT_EQ(interval, kTimeoutIntervalUs);
  const struct {
    uint64_t timeout, actual;
  } kCases[] = {{1, 1000},        {1000, 1000},     {1001, 2000},
                {254000, 254000}, {999999, 254000}, {0, UINT64_MAX}};
  for (const auto& c : kCases) {
    EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(c.timeout, &actual), ACL_SUCCESS);
    EXPECT_EQ(actual, c.actual) << c.timeout;
  }
  uint32_t ms = 0;
  EXPECT_EQ(aclrtSetOpExecuteTimeOutWithMs(20), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetOpExecuteTimeout(&ms), ACL_SUCCESS);
  EXPECT_EQ(ms, 20u);
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetOpExecuteTimeout(&ms), ACL_SUCCESS);
  EXPECT_EQ(ms, UINT32_MAX);
}

TEST_F(KernelTest, HungAndSlowKernelsEndAtTheLimit) {
  ASSERT_EQ(aclrtSetOpExecuteTimeOutV2(5000, nullptr), ACL_SUCCESS);
  for (const char* fault : {"kernel=*,hang", "kernel=*,slow=3600000000"}) {
    ASSERT_EQ(opserveHostInjectFaults(fault), ACL_SUCCESS);
    const aclrtStream stream = NewStream();
    ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_TIMEOUT) << fault;
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }
  ASSERT_EQ(aclrtSetOpExecuteTimeOutV2(0, nullptr), ACL_SUCCESS);
}

TEST_F(KernelTest, SlowKernelsRun) {
  ASSERT_EQ(opserveHostInjectFaults("kernel=*,slow=1000"), ACL_SUCCESS);
  bool ran = false;
  ASSERT_EQ(Launch(nullptr, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(KernelTest, ExceptionsOfAKernelAreErrorsOfItsTask) {
  ASSERT_EQ(LaunchOn(nullptr, {}, [](kernels::TaskRunner&) { throw std::bad_alloc(); }),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_INTERNAL_ERROR);
}

}  // namespace
}  // namespace opserve::host_cann
