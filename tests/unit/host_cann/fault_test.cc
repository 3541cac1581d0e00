// Faults on request: their text, which calls they hit, the counters.
#include <chrono>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using FaultTest = RuntimeTest;

TEST_F(FaultTest, MalformedTextAddsNothing) {
  const struct {
    const char* text;
    const char* expected;  // in the message
  } kCases[] = {
      {"", "is not one of"},
      {"call", "names no function"},
      {"call=malloc,code=1", "names no function"},
      {"call=aclrtMalloc", "exactly one of"},
      {"call=aclrtMalloc,code=1,slow=1", "exactly one of"},
      {"call=aclrtMalloc,slow=0", "\"slow=0\""},
      {"call=aclrtMalloc,code=0", "from 1 to"},
      {"call=aclrtMalloc,code=x", "\"code=x\""},
      {"call=aclrtMalloc,code=-5", "\"code=-5\""},
      {"call=aclrtMalloc,code=1,nth=0", "\"nth=0\""},
      {"call=aclrtMalloc,code=1,count=none", "\"count=none\""},
      {"call=aclrtMalloc,code=1,hang", "\"hang\" does not belong"},
      {"call=aclrtMalloc,code=1,", "\"\" does not belong"},
      {"call=aclrtMalloc,code=1;", "fault 2"},
      {"kernel=*", "exactly one of"},
      {"kernel=*,hang,code=1", "exactly one of"},
      {"kernel=*,hang=1", "does not belong"},
      {"kernel=KlDiv,hang", "names no operator"},
      {"kernel=*,slow=0", "\"slow=0\""},
      {"copies", "rate=BYTES is missing"},
      {"copies=all,rate=1", "copies takes no value"},
      {"copies,rate=fast", "\"rate=fast\""},
      {"copies,rate=1T", "\"rate=1T\""},
      {"device=0", "\"lost\" is missing"},
      {"device=x,lost", "\"device=x\""},
      {"device=0,lost,nth=2", "\"nth\" does not belong"},
      {"network=down", "is not one of"},
      {"call=aclrtFree,code=1;kernel=*,hnag", "fault 2 (\"kernel=*,hnag\")"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(opserveHostInjectFaults(c.text), ACL_ERROR_INVALID_PARAM) << c.text;
    EXPECT_NE(RecentMessage().find(c.expected), std::string::npos) << c.text;
  }
  EXPECT_EQ(opserveHostInjectFaults(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(opserveHostInjectFaults("call=aclrtFree,code=1;device=2,lost"), 107001);
  EXPECT_EQ(aclrtFree(NewDeviceMemory(1)), ACL_SUCCESS);
}

// The codes of ten calls of one function.
std::vector<aclError> TenCalls() {
  std::vector<aclError> codes;
  int32_t device = 0;
  for (int i = 0; i < 10; ++i) codes.push_back(aclrtGetDevice(&device));
  return codes;
}

TEST_F(FaultTest, WindowsSayWhichCallsFail) {
  const struct {
    const char* fault;
    std::vector<aclError> expected;
  } kCases[] = {
      {"call=aclrtGetDevice,code=5", {5, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
      {"call=aclrtGetDevice,nth=3,code=5", {0, 0, 5, 0, 0, 0, 0, 0, 0, 0}},
      {"call=aclrtGetDevice,nth=9,count=all,code=5", {0, 0, 0, 0, 0, 0, 0, 0, 5, 5}},
      {"call=aclrtGetDevice,nth=2,count=3,code=5", {0, 5, 5, 5, 0, 0, 0, 0, 0, 0}},
      {"call=aclrtGetDevice,code=5;call=aclrtGetDevice,nth=4,code=6",
       {5, 0, 0, 6, 0, 0, 0, 0, 0, 0}},
      {"call=aclrtGetDeviceCount,code=5", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
  };
  for (const auto& c : kCases) {
    ASSERT_EQ(opserveHostInjectFaults(c.fault), ACL_SUCCESS) << RecentMessage();
    EXPECT_EQ(TenCalls(), c.expected) << c.fault;
    opserveHostClearFaults();
    EXPECT_EQ(TenCalls(), std::vector<aclError>(10)) << c.fault;
  }
}

TEST_F(FaultTest, ASlowCallTakesItsTimeAndSucceeds) {
  ASSERT_EQ(opserveHostInjectFaults("call=aclrtGetDevice,nth=2,slow=2000"), ACL_SUCCESS);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(TenCalls(), std::vector<aclError>(10));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(2));
}

TEST_F(FaultTest, AFailedCallDoesNothing) {
  ASSERT_EQ(opserveHostInjectFaults("call=aclrtMalloc,code=207001;call=aclrtGetSocName,code=1"),
            ACL_SUCCESS);
  void* memory = nullptr;
  EXPECT_EQ(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_EQ(memory, nullptr);
  EXPECT_NE(RecentMessage().find("injected"), std::string::npos);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_ALLOCATIONS), 0);
  EXPECT_EQ(aclrtGetSocName(), nullptr);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B3");
}

TEST_F(FaultTest, KernelsAreHitByNameAndNumber) {
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnOne,nth=2,code=507015"), ACL_SUCCESS);
  const struct {
    const char* name;
    aclError expected;
  } kLaunches[] = {
      {"aclnnTwo", 0}, {"aclnnOne", 0}, {"aclnnTwo", 0}, {"aclnnOne", 507015}, {"aclnnOne", 0}};
  for (const auto& launch : kLaunches) {
    ASSERT_EQ(Launch(
                  nullptr, [] {}, launch.name),
              ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), launch.expected) << launch.name;
  }
}

// One of everything, and its end; the code of the first call that fails.
aclError UseEverything() {
  std::vector<std::function<void()>> cleanup;
  const auto run = [&]() -> aclError {
    aclrtStream stream = nullptr;
    aclrtEvent event = nullptr;
    void* memory = nullptr;
    void* host = nullptr;
    if (const aclError code = aclrtCreateStream(&stream)) return code;
    cleanup.push_back([stream] { aclrtDestroyStreamForce(stream); });
    if (const aclError code = aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC)) return code;
    cleanup.push_back([event] { aclrtDestroyEvent(event); });
    if (const aclError code = aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST)) return code;
    cleanup.push_back([memory] { aclrtFree(memory); });
    if (const aclError code = aclrtMallocHost(&host, 64)) return code;
    cleanup.push_back([host] { aclrtFreeHost(host); });
    if (const aclError code = aclrtMemsetAsync(memory, 64, 0, 64, stream)) return code;
    if (const aclError code =
            aclrtMemcpyAsync(host, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST, stream)) {
      return code;
    }
    if (const aclError code = aclrtRecordEvent(event, stream)) return code;
    if (const aclError code = aclrtStreamWaitEvent(stream, event)) return code;
    if (const aclError code = aclrtSynchronizeEvent(event)) return code;
    return aclrtSynchronizeStream(stream);
  };
  const aclError code = run();
  for (auto end = cleanup.rbegin(); end != cleanup.rend(); ++end) (*end)();
  return code;
}

TEST_F(FaultTest, EachFunctionCanFailAndNothingIsHeld) {
  const char* const kFunctions[] = {"aclrtCreateStream",     "aclrtCreateEventExWithFlag",
                                    "aclrtMalloc",           "aclrtMallocHost",
                                    "aclrtMemsetAsync",      "aclrtMemcpyAsync",
                                    "aclrtRecordEvent",      "aclrtStreamWaitEvent",
                                    "aclrtSynchronizeEvent", "aclrtSynchronizeStream"};
  const LiveCounts before = LiveCounts::Now();
  for (const char* function : kFunctions) {
    const uint64_t calls = opserveHostCalls(function);
    const std::string fault = "call=" + std::string(function) + ",code=500000";
    ASSERT_EQ(opserveHostInjectFaults(fault.c_str()), ACL_SUCCESS);
    EXPECT_EQ(UseEverything(), ACL_ERROR_INTERNAL_ERROR) << function;
    EXPECT_EQ(LiveCounts::Now(), before) << function;
    EXPECT_EQ(UseEverything(), ACL_SUCCESS) << function;
    EXPECT_EQ(opserveHostCalls(function), calls + 2) << function;
  }
}

TEST_F(FaultTest, CountersOfLiveObjects) {
  const int64_t launches = opserveHostDeviceCount(0, OPSERVE_HOST_LAUNCHES);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  NewStream();
  NewEvent();
  NewDeviceMemory(64);
  ASSERT_EQ(Launch(nullptr, [] {}), ACL_SUCCESS);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_CONTEXTS), 1);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_STREAMS), 1);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_EVENTS), 1);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_ALLOCATIONS), 1);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_ALLOCATED_BYTES), 96);
  EXPECT_EQ(opserveHostDeviceCount(0, OPSERVE_HOST_LAUNCHES), launches + 1);
  AdjustLiveCount(OPSERVE_HOST_TENSORS, 2);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_TENSORS), 2);
  AdjustLiveCount(OPSERVE_HOST_TENSORS, -2);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_NUM_COUNTERS), -1);
  EXPECT_EQ(opserveHostDeviceCount(0, OPSERVE_HOST_STREAMS), -1);
  EXPECT_EQ(opserveHostDeviceCount(5, OPSERVE_HOST_LAUNCHES), -1);
  EXPECT_EQ(opserveHostCalls("aclrtNeverCalled"), 0u);
}

}  // namespace
}  // namespace opserve::host_cann
