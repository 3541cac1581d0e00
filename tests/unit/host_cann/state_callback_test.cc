// Callbacks about devices and streams that come and go, and about aborts.
#include <tuple>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

class StateCallbackTest : public RuntimeTest {
 protected:
  void TearDown() override {
    EXPECT_EQ(aclrtRegDeviceStateCallback("test", nullptr, nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtRegStreamStateCallback("test", nullptr, nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDeviceTaskAbortCallback("test", nullptr, nullptr), ACL_SUCCESS);
    RuntimeTest::TearDown();
  }

  static void NoteDevice(int32_t device, aclrtDeviceState state, void* args) {
    static_cast<StateCallbackTest*>(args)->devices_.push_back({device, state});
  }
  static void NoteStream(aclrtStream stream, aclrtStreamState state, void* args) {
    // The stream is alive in both states.
    int32_t id = -1;
    EXPECT_EQ(aclrtStreamGetId(stream, &id), ACL_SUCCESS);
    static_cast<StateCallbackTest*>(args)->streams_.push_back({stream, state});
  }

  static int32_t NoteAbort(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout,
                           void* args) {
    auto& self = *static_cast<StateCallbackTest*>(args);
    self.aborts_.push_back({device, stage, timeout});
    return stage == self.failing_stage_ ? 123 : 0;
  }

  std::vector<std::pair<int32_t, aclrtDeviceState>> devices_;
  std::vector<std::pair<aclrtStream, aclrtStreamState>> streams_;
  using Abort = std::tuple<int32_t, aclrtDeviceTaskAbortStage, uint32_t>;
  std::vector<Abort> aborts_;
  int failing_stage_ = -1;
};

TEST_F(StateCallbackTest, AbortsAreAnnouncedBeforeAndAfter) {
  ASSERT_EQ(aclrtSetDeviceTaskAbortCallback("test", &NoteAbort, this), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDeviceTaskAbortCallback("test", &NoteAbort, this), ACL_ERROR_RT_PARAM_INVALID);
  const Abort before = {0, ACL_RT_DEVICE_TASK_ABORT_PRE, 500};
  const Abort after = {0, ACL_RT_DEVICE_TASK_ABORT_POST, 500};
  EXPECT_EQ(aclrtDeviceTaskAbort(0, 500), ACL_SUCCESS);
  EXPECT_EQ(aborts_, (std::vector<Abort>{before, after}));

  for (const auto stage : {ACL_RT_DEVICE_TASK_ABORT_PRE, ACL_RT_DEVICE_TASK_ABORT_POST}) {
    aborts_.clear();
    failing_stage_ = stage;
    EXPECT_EQ(aclrtDeviceTaskAbort(0, 500), 123);
    EXPECT_EQ(aborts_.back(), stage == ACL_RT_DEVICE_TASK_ABORT_PRE ? before : after);
  }
}

TEST_F(StateCallbackTest, DevicesAreSetAndReleased) {
  ASSERT_EQ(aclrtRegDeviceStateCallback("test", &NoteDevice, this), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetDevice(1), ACL_SUCCESS);  // one use is left
  EXPECT_EQ(devices_, (decltype(devices_){{1, ACL_RT_DEVICE_STATE_SET_PRE},
                                          {1, ACL_RT_DEVICE_STATE_SET_POST},
                                          {1, ACL_RT_DEVICE_STATE_SET_PRE},
                                          {1, ACL_RT_DEVICE_STATE_SET_POST}}));
  devices_.clear();
  ASSERT_EQ(aclrtResetDevice(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_EQ(devices_, (decltype(devices_){{1, ACL_RT_DEVICE_STATE_RESET_PRE},
                                          {1, ACL_RT_DEVICE_STATE_RESET_POST},
                                          {0, ACL_RT_DEVICE_STATE_RESET_PRE},
                                          {0, ACL_RT_DEVICE_STATE_RESET_POST}}));
}

TEST_F(StateCallbackTest, StreamsAreCreatedAndDestroyed) {
  ASSERT_EQ(aclrtRegStreamStateCallback("test", &NoteStream, this), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  const aclrtStream forced = NewStream();
  ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStreamForce(forced), ACL_SUCCESS);
  EXPECT_EQ(streams_, (decltype(streams_){{stream, ACL_RT_STREAM_STATE_CREATE_POST},
                                          {forced, ACL_RT_STREAM_STATE_CREATE_POST},
                                          {stream, ACL_RT_STREAM_STATE_DESTROY_PRE},
                                          {forced, ACL_RT_STREAM_STATE_DESTROY_PRE}}));
}

TEST_F(StateCallbackTest, NamesAreRegisteredOnceAndRemovedByNull) {
  ASSERT_EQ(aclrtRegStreamStateCallback("test", &NoteStream, this), ACL_SUCCESS);
  EXPECT_EQ(aclrtRegStreamStateCallback("test", &NoteStream, this), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtRegStreamStateCallback(nullptr, &NoteStream, this), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRegStreamStateCallback("test", nullptr, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtRegStreamStateCallback("test", nullptr, nullptr), ACL_SUCCESS);
  NewStream();
  EXPECT_TRUE(streams_.empty());
}

}  // namespace
}  // namespace opserve::host_cann
