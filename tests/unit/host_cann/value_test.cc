// Words of device memory: writes and waits in stream order.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

class ValueTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    word_ = NewDeviceMemory(64);
    ASSERT_EQ(aclrtMemset(word_, 64, 0, 64), ACL_SUCCESS);
  }
  uint64_t Read() {
    uint64_t value = 0;
    EXPECT_EQ(aclrtMemcpy(&value, 8, word_, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    return value;
  }
  void* word_ = nullptr;
};

TEST_F(ValueTest, WritesInStreamOrder) {
  const aclrtStream stream = NewStream();
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtValueWrite(word_, 0x123456789ABCDEF0, 0, stream), ACL_SUCCESS);
  EXPECT_EQ(Read(), 0u);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(Read(), 0x123456789ABCDEF0u);
}

TEST_F(ValueTest, AWaitEndsWhenTheWordCompares) {
  const struct {
    uint32_t flag;
    uint64_t before, value, after;  // waits while `before` stands, ends with `after`
  } kCases[] = {
      {ACL_STREAM_WAIT_VALUE_GEQ, 6, 7, 7},
      {ACL_STREAM_WAIT_VALUE_GEQ, UINT64_MAX, 1, 2},  // -1 is below 1
      {ACL_STREAM_WAIT_VALUE_EQ, 8, 7, 7},
      {ACL_STREAM_WAIT_VALUE_AND, 0b1010, 0b0101, 0b0010 | 0b0100},
      {ACL_STREAM_WAIT_VALUE_NOR, ~uint64_t{4}, 4, ~uint64_t{12}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.flag);
    const aclrtStream writer = NewStream();
    const aclrtStream waiter = NewStream();
    ASSERT_EQ(aclrtValueWrite(word_, c.before, 0, writer), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(writer), ACL_SUCCESS);
    ASSERT_EQ(aclrtValueWait(word_, c.value, c.flag, waiter), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(waiter, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    ASSERT_EQ(aclrtValueWrite(word_, c.after, 0, writer), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(waiter), ACL_SUCCESS);
  }
}

TEST_F(ValueTest, ACopyEndsAWaitToo) {
  const aclrtStream waiter = NewStream();
  const uint64_t value = 5;
  ASSERT_EQ(aclrtValueWait(word_, value, ACL_STREAM_WAIT_VALUE_EQ, waiter), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy(word_, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(waiter), ACL_SUCCESS);
}

TEST_F(ValueTest, AWaitIsAbortedAndReleased) {
  const aclrtStream waiter = NewStream();
  ASSERT_EQ(aclrtValueWait(word_, 1, ACL_STREAM_WAIT_VALUE_EQ, waiter), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamAbort(waiter), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(waiter), ACL_SUCCESS);
  ASSERT_EQ(aclrtValueWait(word_, 1, ACL_STREAM_WAIT_VALUE_EQ, waiter), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
}

TEST_F(ValueTest, BadArguments) {
  char host[16] = {};
  char* const word = static_cast<char*>(word_);
  EXPECT_EQ(aclrtValueWrite(nullptr, 0, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtValueWait(nullptr, 0, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtValueWrite(word, 0, 1, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtValueWait(word, 0, 4, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtValueWrite(word + 4, 0, 0, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtValueWrite(word + 64, 0, 0, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtValueWait(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(host + 8) / 8 * 8),
                           0, 0, nullptr),
            ACL_ERROR_RT_PARAM_INVALID);
}

}  // namespace
}  // namespace opserve::host_cann
