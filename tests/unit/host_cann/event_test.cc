// Events: both queries, re-recording, waits between streams, times.
#include <thread>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using EventTest = RuntimeTest;

aclrtEventRecordedStatus EventStatusOf(aclrtEvent event) {
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  EXPECT_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS) << RecentMessage();
  return status;
}

TEST_F(EventTest, CompletesAfterTheTasksBeforeIt) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);  // never recorded
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);

  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event, 1), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event, 60000), ACL_SUCCESS);
  EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

TEST_F(EventTest, FlagsOfRecordsAndWaits) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  const aclrtEvent event = NewEvent();
  Gate gate;
  gate.Close(producer);
  ASSERT_EQ(aclrtRecordEventWithFlag(event, producer, ACL_EVENT_RECORD_DEFAULT), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEventWithFlag(consumer, event, 60, ACL_EVENT_WAIT_DEFAULT), 0);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(consumer, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);

  const uint32_t unknown = 2;
  EXPECT_EQ(aclrtRecordEventWithFlag(event, producer, ACL_EVENT_RECORD_EXTERNAL), 107029);
  EXPECT_EQ(aclrtStreamWaitEventWithFlag(consumer, event, 0, ACL_EVENT_WAIT_EXTERNAL), 107029);
  EXPECT_EQ(aclrtRecordEventWithFlag(event, producer, unknown), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtStreamWaitEventWithFlag(consumer, event, 0, unknown), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(EventTest, TheOldQueryHasTheOppositePolarity) {
  const aclrtStream stream = NewStream();
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEvent(event, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_STATUS_NOT_READY);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtQueryEvent(event, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_STATUS_COMPLETE);
  EXPECT_EQ(aclrtQueryEvent(NewEvent(), &status), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

TEST_F(EventTest, RecordingAgainReplacesTheRecord) {
  const aclrtStream first = NewStream();
  const aclrtStream second = NewStream();
  const aclrtEvent event = NewEvent();
  Gate first_gate, second_gate;
  first_gate.Close(first);
  second_gate.Close(second);
  ASSERT_EQ(aclrtRecordEvent(event, first), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, second), ACL_SUCCESS);
  first_gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
  EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  second_gate.Open();
  ASSERT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
}

TEST_F(EventTest, OrdersStreams) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  for (int round = 0; round < 50; ++round) {
    const aclrtEvent event = NewEvent();
    int value = 0;
    int seen = -1;
    Gate gate;
    if (round % 2 == 0) gate.Close(producer);
    ASSERT_EQ(Launch(producer, [&] { value = round; }), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
    ASSERT_EQ(Launch(consumer, [&] { seen = value; }), ACL_SUCCESS);
    gate.Open();
    ASSERT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
    EXPECT_EQ(seen, round);
    EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  }
}

TEST_F(EventTest, WaitStatusTellsWhetherWaitsAreLeft) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  Gate gate;
  gate.Close(producer);
  ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
  aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEventWaitStatus(event, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_NOT_READY);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
  EXPECT_EQ(aclrtQueryEventWaitStatus(event, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_COMPLETE);
}

TEST_F(EventTest, WaitNeedsTheSyncFlag) {
  const aclrtEvent event = NewEvent(ACL_EVENT_TIME_LINE);
  EXPECT_EQ(aclrtStreamWaitEvent(NewStream(), event), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

TEST_F(EventTest, WaitBeyondItsLimitFailsAsATask) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  const aclrtEvent event = NewEvent();
  Gate gate;
  gate.Close(producer);
  ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEventWithTimeout(consumer, event, /*timeout=*/1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(consumer), ACL_ERROR_RT_TASK_TIMEOUT);
  EXPECT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
}

TEST_F(EventTest, OtherDevicesEventsCanBeAskedButNotRecorded) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(aclrtRecordEvent(event, nullptr), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(EventTest, OrdersStreamsOfDifferentDevices) {
  const aclrtStream producer = NewStream();
  const aclrtEvent event = NewEvent();
  Gate gate;
  gate.Close(producer);
  int value = 0, seen = -1;
  ASSERT_EQ(Launch(producer, [&] { value = 7; }), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);

  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  const aclrtStream consumer = NewStream();
  ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS) << RecentMessage();
  ASSERT_EQ(Launch(consumer, [&] { seen = value; }), ACL_SUCCESS);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
  EXPECT_EQ(seen, 7);
}

// An event that has not been recorded: each way to create one answers differently.
TEST_F(EventTest, BeforeTheFirstRecord) {
  const auto create = [](aclrtEvent* event) { return aclrtCreateEvent(event); };
  const auto with_flag = [](aclrtEvent* event) {
    return aclrtCreateEventWithFlag(event, ACL_EVENT_TIME_LINE);
  };
  const auto ex = [](aclrtEvent* event) {
    return aclrtCreateEventExWithFlag(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
  };
  const struct {
    const char* name;
    std::function<aclError(aclrtEvent*)> create;
    aclrtEventRecordedStatus status;
    aclError wait;
  } kCases[] = {
      {"aclrtCreateEvent", create, ACL_EVENT_RECORDED_STATUS_NOT_READY, ACL_ERROR_RT_PARAM_INVALID},
      {"aclrtCreateEventWithFlag", with_flag, ACL_EVENT_RECORDED_STATUS_NOT_READY,
       ACL_ERROR_RT_FEATURE_NOT_SUPPORT},  // without ACL_EVENT_SYNC
      {"aclrtCreateEventExWithFlag", ex, ACL_EVENT_RECORDED_STATUS_COMPLETE, ACL_SUCCESS},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    aclrtEvent event = nullptr;
    ASSERT_EQ(c.create(&event), ACL_SUCCESS);
    EXPECT_EQ(EventStatusOf(event), c.status);
    EXPECT_EQ(aclrtStreamWaitEvent(nullptr, event), c.wait);
    EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    uint64_t timestamp = 0;
    EXPECT_EQ(aclrtEventGetTimestamp(event, &timestamp), ACL_ERROR_RT_INTERNAL_ERROR);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  }
}

TEST_F(EventTest, AWaitForAFlaggedEventBlocksUntilItIsRecorded) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  int value = 0, seen = -1;
  ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS) << RecentMessage();
  ASSERT_EQ(Launch(consumer, [&] { seen = value; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(consumer, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);

  ASSERT_EQ(Launch(producer, [&] { value = 3; }), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
  EXPECT_EQ(seen, 3);
  // It stays set: a later wait passes at once.
  ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
}

TEST_F(EventTest, AResetTakesAFlaggedEventBackToItsBeginning) {
  const aclrtStream stream = NewStream();
  const aclrtStream consumer = NewStream();
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
    EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    ASSERT_EQ(aclrtResetEvent(event, stream), ACL_SUCCESS) << RecentMessage();
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  }
  ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(consumer, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtStreamAbort(consumer), ACL_SUCCESS);

  aclrtEvent untied = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&untied, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetEvent(untied, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtResetEvent(NewEvent(), stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtResetEvent(nullptr, stream), ACL_ERROR_INVALID_PARAM);
}

TEST_F(EventTest, AnUnrecordedWaitIsAborted) {
  const aclrtStream stream = NewStream();
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(EventTest, ElapsedTime) {
  const aclrtStream stream = NewStream();
  const aclrtEvent start = NewEvent();
  const aclrtEvent end = NewEvent();
  const aclrtEvent untimed = NewEvent(ACL_EVENT_SYNC);
  float ms = -1;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_INTERNAL_ERROR);  // not recorded
  Gate gate;
  ASSERT_EQ(aclrtRecordEvent(start, stream), ACL_SUCCESS);
  gate.Close(stream);
  ASSERT_EQ(aclrtRecordEvent(end, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(untimed, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);

  EXPECT_EQ(aclrtEventElapsedTime(&ms, start, end), ACL_SUCCESS);
  EXPECT_GE(ms, 0);
  float back = 1;
  EXPECT_EQ(aclrtEventElapsedTime(&back, end, start), ACL_SUCCESS);
  EXPECT_EQ(back, -ms);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, start, untimed), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  uint64_t start_us = 0, end_us = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(start, &start_us), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventGetTimestamp(end, &end_us), ACL_SUCCESS);
  EXPECT_LE(start_us, end_us);
}

TEST_F(EventTest, DestroyDoesNotWait) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  const aclrtEvent event = NewEvent();
  Gate gate;
  gate.Close(producer);
  ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
}

TEST_F(EventTest, AnAbortedRecordNeverCompletes) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  const aclrtEvent event = NewEvent();
  ASSERT_EQ(opserveHostInjectFaults("kernel=*,hang"), ACL_SUCCESS);
  ASSERT_EQ(Launch(producer, [] {}), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(consumer, event), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamAbort(producer), ACL_SUCCESS);

  EXPECT_EQ(EventStatusOf(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_STREAM_ABORT);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(consumer, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtStreamAbort(consumer), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, producer), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
}

TEST_F(EventTest, LimitPerDevice) {
  uint32_t available = 0;
  ASSERT_EQ(aclrtGetEventAvailNum(&available), ACL_SUCCESS);
  EXPECT_EQ(available, 65536u);
  aclrtEvent event = nullptr;
  for (uint32_t i = 0; i < available; ++i) event = NewEvent();
  aclrtEvent one_more = nullptr;
  EXPECT_EQ(aclrtCreateEvent(&one_more), ACL_ERROR_RT_NO_EVENT_RESOURCE);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateEvent(&one_more), ACL_SUCCESS);
}

}  // namespace
}  // namespace opserve::host_cann
