// Peer access: copies between devices, once it is enabled.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using PeerTest = RuntimeTest;

int32_t StatusOf(int32_t device, int32_t peer) {
  int32_t status = -1;
  EXPECT_EQ(aclrtDevicePeerAccessStatus(device, peer, &status), ACL_SUCCESS);
  return status;
}

TEST_F(PeerTest, CopiesBetweenDevicesNeedIt) {
  uint64_t value = 42, read = 0;
  void* const mine = NewDeviceMemory(8);
  ASSERT_EQ(aclrtMemcpy(mine, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  void* const theirs = NewDeviceMemory(8);
  const aclrtStream stream = NewStream();
  const auto copy = [&](bool async) {
    return async ? aclrtMemcpyAsync(theirs, 8, mine, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, stream)
                 : aclrtMemcpy(theirs, 8, mine, 8, ACL_MEMCPY_DEVICE_TO_DEVICE);
  };
  int32_t can = 0;
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&can, 1, 0), ACL_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(StatusOf(1, 0), 0);
  EXPECT_EQ(copy(false), ACL_ERROR_RT_PARAM_INVALID);

  ASSERT_EQ(aclrtDeviceEnablePeerAccess(0, 0), ACL_SUCCESS);
  EXPECT_EQ(StatusOf(1, 0), 1);
  EXPECT_EQ(StatusOf(0, 1), 0) << "one way";
  for (const bool async : {false, true}) {
    ASSERT_EQ(aclrtMemset(theirs, 8, 0, 8), ACL_SUCCESS);
    ASSERT_EQ(copy(async), ACL_SUCCESS) << RecentMessage();
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpy(&read, 8, theirs, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    EXPECT_EQ(read, 42u);
  }
  ASSERT_EQ(aclrtDeviceDisablePeerAccess(0), ACL_SUCCESS);
  EXPECT_EQ(copy(false), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(PeerTest, EndsWithTheDevicesRelease) {
  ASSERT_EQ(aclrtDeviceEnablePeerAccess(1, 0), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(StatusOf(0, 1), 0);
}

TEST_F(PeerTest, BadArguments) {
  int32_t value = 7;
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&value, 0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&value, 0, kNumDevices), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtDeviceCanAccessPeer(nullptr, 0, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(1, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDeviceEnablePeerAccess(-1, 0), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtDevicePeerAccessStatus(0, 9, &value), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(value, 7);
}

}  // namespace
}  // namespace opserve::host_cann
