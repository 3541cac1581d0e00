// Devices, contexts and the threads bound to them.
#include <thread>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using ContextTest = RuntimeTest;

void OnThread(const std::function<void()>& body) { std::thread(body).join(); }

aclrtContext CurrentContext() {
  aclrtContext context = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  return context;
}

TEST_F(ContextTest, ThreadsShareTheDefaultContextOfADevice) {
  const aclrtContext mine = CurrentContext();
  OnThread([&] {
    aclrtContext none = nullptr;
    EXPECT_EQ(aclrtGetCurrentContext(&none), ACL_ERROR_RT_CONTEXT_NULL);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(CurrentContext(), mine);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  });
  EXPECT_EQ(CurrentContext(), mine);
}

TEST_F(ContextTest, TheLastResetEndsEverythingOnTheDevice) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  void* const memory = NewDeviceMemory(100);
  const aclrtContext context = CurrentContext();
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);

  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);

  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_EQ(opserveHostDeviceCount(0, OPSERVE_HOST_ALLOCATIONS), 0);

  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSetCurrentContext(context), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(memory), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(ContextTest, ForcedResetIgnoresTheCount) {
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
}

TEST_F(ContextTest, ForcedResetWaitsForQueuedWorkAndEndsHungWork) {
  bool ran = false;
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnHung,hang"), ACL_SUCCESS) << RecentMessage();
  const aclrtStream stream = NewStream();
  ASSERT_EQ(Launch(
                stream, [] {}, "aclnnHung"),
            ACL_SUCCESS);
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);

  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(ContextTest, StreamsBelongToTheirContext) {
  const aclrtStream stream = NewStream();
  const aclrtContext default_context = CurrentContext();
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_EQ(CurrentContext(), context);

  aclrtStreamStatus status;
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
  EXPECT_EQ(Launch(stream, [] {}), ACL_ERROR_RT_STREAM_CONTEXT);
  // Waiting and asking need no context of the stream's own.
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 60000), ACL_SUCCESS);

  ASSERT_EQ(aclrtSetCurrentContext(default_context), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
}

TEST_F(ContextTest, AnotherContextsSynchroniseReportsTheStreamsError) {
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnBad,code=507035"), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  ASSERT_EQ(Launch(
                stream, [] {}, "aclnnBad"),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(ContextTest, SwitchingTheContextSwitchesTheDevice) {
  const aclrtContext first = CurrentContext();
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  int32_t id = -1;
  EXPECT_EQ(aclrtGetDevice(&id), ACL_SUCCESS);
  EXPECT_EQ(id, 1);
  ASSERT_EQ(aclrtSetCurrentContext(first), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&id), ACL_SUCCESS);
  EXPECT_EQ(id, 0);
}

TEST_F(ContextTest, DestroyedContextIsCurrentNowhere) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  bool ran = false;
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);

  ASSERT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_TRUE(ran);
  EXPECT_FALSE(HasCurrentContext());
  EXPECT_EQ(aclrtSetCurrentContext(context), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_ERROR_RT_PARAM_INVALID);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(ContextTest, OptionsHaveTheirScope) {
  int64_t value = -1;
  ASSERT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  ASSERT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 2), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 2);
  ASSERT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0), ACL_SUCCESS);
}

TEST_F(ContextTest, DevicesHaveAttributesAndIdentities) {
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B3");
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);
  const struct {
    aclrtDevAttr attr;
    int64_t expected;
  } kAttributes[] = {{ACL_DEV_ATTR_NPU_ARCH, 2201},
                     {ACL_DEV_ATTR_VECTOR_CORE_NUM, 40},
                     {ACL_DEV_ATTR_PHY_CHIP_ID, 1},
                     {ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, kDeviceBytes}};
  for (const auto& row : kAttributes) {
    int64_t value = -1;
    EXPECT_EQ(aclrtGetDeviceInfo(1, row.attr, &value), ACL_SUCCESS);
    EXPECT_EQ(value, row.expected) << row.attr;
  }
  char bus[2][13];
  aclrtUuid uuid[2];
  for (int32_t id = 0; id < 2; ++id) {
    EXPECT_EQ(aclrtDeviceGetPCIBusId(id, bus[id], 13), ACL_SUCCESS) << RecentMessage();
    EXPECT_EQ(aclrtDeviceGetUuid(id, &uuid[id]), ACL_SUCCESS);
  }
  EXPECT_STRNE(bus[0], bus[1]);
  EXPECT_NE(std::string(uuid[0].bytes, 16), std::string(uuid[1].bytes, 16));
}

TEST_F(ContextTest, ManyThreadsSetAndReset) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
        // Another thread's last reset may come at any moment, but only with this one's.
        aclrtStream stream = nullptr;
        ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS) << RecentMessage();
        ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS) << RecentMessage();
        ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS) << RecentMessage();
        ASSERT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace opserve::host_cann
