// Devices that are lost and come back, and aborting all of a device's work.
#include <atomic>
#include <thread>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

class DeviceLossTest : public RuntimeTest {
 protected:
  void TearDown() override {
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
    EXPECT_EQ(aclrtQueryDeviceStatus(0, &status), ACL_SUCCESS);
    EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
    RuntimeTest::TearDown();
  }
};

TEST_F(DeviceLossTest, EveryCallFailsUntilTheReset) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  void* const memory = NewDeviceMemory(64);
  char host[8] = {};
  ASSERT_EQ(opserveHostInjectFaults("device=0,lost"), ACL_SUCCESS) << RecentMessage();

  void* more = nullptr;
  aclrtStream new_stream = nullptr;
  size_t free = 0, total = 0;
  aclrtStreamStatus status;
  aclrtEventRecordedStatus recorded;
  const std::pair<const char*, std::function<aclError()>> kCalls[] = {
      {"set", [] { return aclrtSetDevice(0); }},
      {"reset", [] { return aclrtResetDevice(0); }},
      {"malloc", [&] { return aclrtMalloc(&more, 8, ACL_MEM_MALLOC_HUGE_FIRST); }},
      {"free", [&] { return aclrtFree(memory); }},
      {"info", [&] { return aclrtGetMemInfo(ACL_HBM_MEM, &free, &total); }},
      {"copy", [&] { return aclrtMemcpy(memory, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE); }},
      {"memset", [&] { return aclrtMemset(memory, 8, 0, 8); }},
      {"create stream", [&] { return aclrtCreateStream(&new_stream); }},
      {"destroy stream", [&] { return aclrtDestroyStream(stream); }},
      {"query", [&] { return aclrtStreamQuery(stream, &status); }},
      {"launch", [&] { return Launch(stream, [] {}); }},
      {"sync stream", [&] { return aclrtSynchronizeStream(stream); }},
      {"sync device", [] { return aclrtSynchronizeDevice(); }},
      {"record", [&] { return aclrtRecordEvent(event, stream); }},
      {"query event", [&] { return aclrtQueryEventStatus(event, &recorded); }},
      {"sync event", [&] { return aclrtSynchronizeEvent(event); }},
  };
  for (const auto& [name, call] : kCalls) EXPECT_EQ(call(), ACL_ERROR_RT_LOST_HEARTBEAT) << name;

  aclrtDeviceStatus health = ACL_RT_DEVICE_STATUS_NORMAL;
  EXPECT_EQ(aclrtQueryDeviceStatus(0, &health), ACL_SUCCESS);
  EXPECT_EQ(health, ACL_RT_DEVICE_STATUS_ABNORMAL);
  aclrtErrorInfo error = {};
  EXPECT_EQ(aclrtGetErrorVerbose(0, &error), ACL_SUCCESS);
  EXPECT_EQ(error.errorType, ACL_RT_ERROR_OTHERS);

  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetErrorVerbose(0, &error), ACL_SUCCESS);
  EXPECT_EQ(error.errorType, ACL_RT_NO_ERROR);
  bool ran = false;
  ASSERT_EQ(Launch(NewStream(), [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(DeviceLossTest, RunningAndQueuedTasksFail) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnHung,hang"), ACL_SUCCESS);
  std::atomic<bool> ran = false;
  ASSERT_EQ(Launch(
                stream, [] {}, "aclnnHung"),
            ACL_SUCCESS);
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  std::thread waiter([&] {
    ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    EXPECT_EQ(opserveHostInjectFaults("device=0,lost,code=507899"), ACL_SUCCESS);
  });
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
  waiter.join();
  EXPECT_FALSE(ran);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
}

TEST_F(DeviceLossTest, OtherDevicesWorkOn) {
  ASSERT_EQ(opserveHostInjectFaults("device=0,lost"), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  bool ran = false;
  ASSERT_EQ(Launch(NewStream(), [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_TRUE(ran);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
}

TEST_F(DeviceLossTest, MayTakeSeveralResets) {
  ASSERT_EQ(opserveHostInjectFaults("device=0,lost,resets=3"), ACL_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_RT_DEV_SETUP_ERROR);
  }
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST_F(DeviceLossTest, DeviceAbortEmptiesAllStreams) {
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnHung,hang,count=all"), ACL_SUCCESS);
  const aclrtStream streams[] = {NewStream(), NewStream(), nullptr};
  std::atomic<bool> ran = false;
  for (const aclrtStream stream : streams) {
    ASSERT_EQ(Launch(
                  stream, [] {}, "aclnnHung"),
              ACL_SUCCESS);
    ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtDeviceTaskAbort(0, 0), ACL_SUCCESS);
  for (const aclrtStream stream : streams) EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_FALSE(ran);
}

TEST_F(DeviceLossTest, DeviceAbortGivesUpOnWorkThatDoesNotEnd) {
  const aclrtStream stream = NewStream();
  Gate gate;
  gate.Close(stream);
  gate.AwaitArrival();
  EXPECT_EQ(aclrtDeviceTaskAbort(0, 5), ACL_ERROR_RT_TASK_TIMEOUT);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(DeviceLossTest, RepairOfMemoryErrors) {
  aclrtErrorInfo error = {};
  EXPECT_EQ(aclrtRepairError(0, &error), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  ASSERT_EQ(opserveHostInjectFaults("kernel=*,code=507053"), ACL_SUCCESS);
  ASSERT_EQ(Launch(nullptr, [] {}), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_DEVICE_MEM_ERROR);
  EXPECT_EQ(aclrtGetErrorVerbose(0, &error), ACL_SUCCESS);
  EXPECT_EQ(error.errorType, ACL_RT_ERROR_MEMORY);
  EXPECT_EQ(error.tryRepair, 1);
  EXPECT_EQ(aclrtRepairError(0, &error), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetErrorVerbose(0, &error), ACL_SUCCESS);
  EXPECT_EQ(error.errorType, ACL_RT_NO_ERROR);
}

}  // namespace
}  // namespace opserve::host_cann
