// Tasks that fail: where and how often their errors are reported.
#include <atomic>
#include <mutex>

#include "tests/await.h"
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

class FailureTest : public RuntimeTest {
 protected:
  void LaunchFailing(aclrtStream stream) {
    ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnFailing,code=507035"), ACL_SUCCESS);
    ASSERT_EQ(Launch(
                  stream, [] { FAIL() << "must not run"; }, "aclnnFailing"),
              ACL_SUCCESS);
  }
};

TEST_F(FailureTest, ReportedOnceByTheNextSynchronise) {
  const aclrtStream stream = NewStream();
  bool ran = false;
  LaunchFailing(stream);
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_NE(RecentMessage().find("aclnnFailing"), std::string::npos);
  EXPECT_TRUE(ran);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(FailureTest, OtherStreamsAreUnharmed) {
  const aclrtStream failing = NewStream();
  const aclrtStream other = NewStream();
  LaunchFailing(failing);
  ASSERT_EQ(Launch(other, [] {}), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(failing), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
}

TEST_F(FailureTest, QueryDoesNotReport) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  LaunchFailing(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  EXPECT_TRUE(Await([&] {
    EXPECT_EQ(aclrtQueryEventStatus(event, &recorded), ACL_SUCCESS);
    return recorded != ACL_EVENT_RECORDED_STATUS_NOT_READY;
  }));
  aclrtStreamStatus status;
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
}

TEST_F(FailureTest, EventsReportWhatFailedBeforeThem) {
  const aclrtStream stream = NewStream();
  const aclrtEvent before = NewEvent();
  const aclrtEvent after = NewEvent();
  ASSERT_EQ(aclrtRecordEvent(before, stream), ACL_SUCCESS);
  LaunchFailing(stream);
  ASSERT_EQ(aclrtRecordEvent(after, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(before), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(after), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(FailureTest, SynchronizeDeviceReportsOneStreamAtATime) {
  const aclrtStream first = NewStream();
  const aclrtStream second = NewStream();
  LaunchFailing(first);
  LaunchFailing(second);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(second), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
}

TEST_F(FailureTest, SynchronousCopiesLeaveTheDefaultStreamsErrorToItsSynchronise) {
  char bytes[8] = {};
  void* const memory = NewDeviceMemory(8);
  LaunchFailing(nullptr);
  Gate gate;
  gate.Close(nullptr);
  gate.AwaitArrival();
  EXPECT_EQ(aclrtMemcpy(bytes, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
}

TEST_F(FailureTest, StopModeStopsTheContext) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  const aclrtStream other = NewStream();
  ASSERT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), ACL_ERROR_RT_PARAM_INVALID);
  bool ran = false;
  Gate gate;
  gate.Close(stream);
  LaunchFailing(stream);
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  gate.Open();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    EXPECT_EQ(aclrtSynchronizeStream(other), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  }
  EXPECT_FALSE(ran);
  EXPECT_EQ(Launch(other, [] {}), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
}

struct Seen {
  uint32_t device, stream, task, thread, code;
};
std::mutex seen_mutex;
std::vector<Seen> seen;  // guarded by seen_mutex

void Note(aclrtExceptionInfo* info) {
  std::lock_guard lock(seen_mutex);
  seen.push_back({aclrtGetDeviceIdFromExceptionInfo(info), aclrtGetStreamIdFromExceptionInfo(info),
                  aclrtGetTaskIdFromExceptionInfo(info), aclrtGetThreadIdFromExceptionInfo(info),
                  aclrtGetErrorCodeFromExceptionInfo(info)});
}

TEST_F(FailureTest, ExceptionCallbacksNameTheTask) {
  {
    std::lock_guard lock(seen_mutex);
    seen.clear();
  }
  ASSERT_EQ(aclrtExceptionInfoCallbackRegister(Note), ACL_SUCCESS);
  ASSERT_EQ(aclrtExceptionInfoCallbackRegister(Note), ACL_SUCCESS) << "again: still called once";
  const aclrtStream stream = NewStream();
  int32_t stream_id = -1;
  uint32_t task_id = 0;
  ASSERT_EQ(aclrtStreamGetId(stream, &stream_id), ACL_SUCCESS);
  ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS);
  LaunchFailing(stream);
  ASSERT_EQ(aclrtGetThreadLastTaskId(&task_id), ACL_SUCCESS);
  ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(aclrtExceptionInfoCallbackUnregister(Note), ACL_SUCCESS);
  EXPECT_EQ(aclrtExceptionInfoCallbackUnregister(Note), ACL_SUCCESS) << "an unknown one";
  LaunchFailing(stream);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);

  std::lock_guard lock(seen_mutex);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].device, 0u);
  EXPECT_EQ(seen[0].stream, static_cast<uint32_t>(stream_id));
  EXPECT_EQ(seen[0].task, task_id);
  EXPECT_EQ(seen[0].code, 507035u);
  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
}

TEST_F(FailureTest, LastErrorOfTheThread) {
  EXPECT_EQ(aclrtSetDevice(77), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

TEST_F(FailureTest, MessagesComeTogetherNewestFirst) {
  EXPECT_EQ(aclrtSetDevice(77), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetDevice(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetDevice(78), ACL_ERROR_RT_INVALID_DEVICEID);
  const std::string message = RecentMessage();
  const size_t newest = message.find("78"), null = message.find("EH0008: deviceId"),
               oldest = message.find("77");
  EXPECT_LT(newest, null) << message;
  EXPECT_LT(null, oldest) << message;
  EXPECT_NE(oldest, std::string::npos) << message;
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST_F(FailureTest, UnreadMessagesAreBounded) {
  for (int i = 0; i < 10000; ++i) aclrtSetDevice(1000 + i);
  const std::string message = RecentMessage();
  EXPECT_NE(message.find("10999"), std::string::npos);
  EXPECT_EQ(message.find("deviceId is 1000,"), std::string::npos);
  EXPECT_LT(message.size(), 20000u);
}

TEST_F(FailureTest, MessagesAreClearedByReading) {
  EXPECT_EQ(aclrtSetDevice(77), ACL_ERROR_RT_INVALID_DEVICEID);
  const std::string message = RecentMessage();
  EXPECT_EQ(message.substr(0, 7), "EE1001:");
  EXPECT_NE(message.find("77"), std::string::npos);
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

}  // namespace
}  // namespace opserve::host_cann
