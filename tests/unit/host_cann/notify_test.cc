// Notifies: a record lets one wait pass.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using NotifyTest = RuntimeTest;

aclrtNotify NewNotify() {
  aclrtNotify notify = nullptr;
  EXPECT_EQ(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), ACL_SUCCESS) << RecentMessage();
  return notify;
}

TEST_F(NotifyTest, OrdersStreamsAgainAndAgain) {
  const aclrtStream producer = NewStream();
  const aclrtStream consumer = NewStream();
  const aclrtNotify notify = NewNotify();
  int value = -1;
  for (int round = 0; round < 20; ++round) {
    int seen = -1;
    ASSERT_EQ(aclrtWaitAndResetNotify(notify, consumer, 0), ACL_SUCCESS);
    ASSERT_EQ(Launch(consumer, [&] { seen = value; }), ACL_SUCCESS);
    ASSERT_EQ(Launch(producer, [&value, round] { value = round; }), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordNotify(notify, producer), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(consumer), ACL_SUCCESS);
    EXPECT_EQ(seen, round);
  }
  EXPECT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
}

TEST_F(NotifyTest, EachRecordLetsOneWaitPass) {
  const aclrtStream first = NewStream();
  const aclrtStream second = NewStream();
  const aclrtNotify notify = NewNotify();
  ASSERT_EQ(aclrtRecordNotify(notify, first), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, first, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, second, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(second, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  ASSERT_EQ(aclrtRecordNotify(notify, first), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(second), ACL_SUCCESS);
}

TEST_F(NotifyTest, WaitsHaveLimits) {
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtWaitAndResetNotify(NewNotify(), stream, /*timeout=*/1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_TASK_TIMEOUT);
}

TEST_F(NotifyTest, ABatchIsResetAtOnce) {
  const aclrtStream stream = NewStream();
  aclrtNotify notifies[] = {NewNotify(), NewNotify()};
  for (const aclrtNotify notify : notifies) {
    ASSERT_EQ(aclrtRecordNotify(notify, stream), ACL_SUCCESS);
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtNotifyBatchReset(notifies, 2), ACL_SUCCESS);
  ASSERT_EQ(aclrtWaitAndResetNotify(notifies[1], stream, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
}

TEST_F(NotifyTest, RecordsComeFromOtherDevices) {
  const aclrtStream stream = NewStream();
  const aclrtNotify notify = NewNotify();
  ASSERT_EQ(aclrtWaitAndResetNotify(notify, stream, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordNotify(notify, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(NotifyTest, LimitPerDeviceEndsWithItsReset) {
  aclrtNotify notify = nullptr;
  for (int i = 0; i < 8192; ++i) ASSERT_EQ(aclrtCreateNotify(&notify, 0), ACL_SUCCESS);
  aclrtNotify one_more = nullptr;
  EXPECT_EQ(aclrtCreateNotify(&one_more, 0), ACL_ERROR_RT_NO_NOTIFY_RESOURCE);
  EXPECT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateNotify(&one_more, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyNotify(one_more), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtCreateNotify(&one_more, 0), ACL_SUCCESS);
}

TEST_F(NotifyTest, BadArguments) {
  aclrtNotify notify = NewNotify();
  aclrtNotify other = NewNotify();
  uint32_t id = 0, other_id = 0;
  EXPECT_EQ(aclrtGetNotifyId(notify, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetNotifyId(other, &other_id), ACL_SUCCESS);
  EXPECT_NE(id, other_id);
  EXPECT_EQ(aclrtGetNotifyId(notify, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateNotify(nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateNotify(&other, 2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtRecordNotify(nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtNotifyBatchReset(&notify, 0), ACL_ERROR_INVALID_PARAM);
  ASSERT_EQ(aclrtDestroyNotify(notify), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyNotify(notify), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtWaitAndResetNotify(notify, nullptr, 0), ACL_ERROR_RT_INVALID_HANDLE);
}

}  // namespace
}  // namespace opserve::host_cann
