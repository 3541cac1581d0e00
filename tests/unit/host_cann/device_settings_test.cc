// What programs set and ask for that leaves the kernels as they are: limits of cores, overflow,
// features.
#include <thread>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using DeviceSettingsTest = RuntimeTest;

constexpr aclrtDevResLimitType kCube = ACL_RT_DEV_RES_CUBE_CORE;
constexpr aclrtDevResLimitType kVector = ACL_RT_DEV_RES_VECTOR_CORE;

uint32_t OfDevice(aclrtDevResLimitType type) {
  uint32_t value = 0;
  EXPECT_EQ(aclrtGetDeviceResLimit(0, type, &value), ACL_SUCCESS);
  return value;
}
uint32_t OfStream(aclrtStream stream, aclrtDevResLimitType type) {
  uint32_t value = 0;
  EXPECT_EQ(aclrtGetStreamResLimit(stream, type, &value), ACL_SUCCESS);
  return value;
}
uint32_t OfThread(aclrtDevResLimitType type) {
  uint32_t value = 0;
  EXPECT_EQ(aclrtGetResInCurrentThread(type, &value), ACL_SUCCESS);
  return value;
}

TEST_F(DeviceSettingsTest, LimitsOfCoresFallBackToTheDevice) {
  const aclrtStream stream = NewStream();
  EXPECT_EQ(OfDevice(kCube), 20u);
  EXPECT_EQ(OfStream(stream, kVector), 40u);

  ASSERT_EQ(aclrtSetDeviceResLimit(0, kVector, 30), ACL_SUCCESS);
  EXPECT_EQ(OfDevice(kVector), 30u);
  EXPECT_EQ(OfStream(stream, kVector), 30u);
  EXPECT_EQ(OfDevice(kCube), 20u);
  ASSERT_EQ(aclrtSetStreamResLimit(stream, kVector, 8), ACL_SUCCESS);
  EXPECT_EQ(OfStream(stream, kVector), 8u);
  EXPECT_EQ(OfThread(kVector), 30u);

  ASSERT_EQ(aclrtUseStreamResInCurrentThread(stream), ACL_SUCCESS);
  EXPECT_EQ(OfThread(kVector), 8u);
  EXPECT_EQ(OfThread(kCube), 20u);
  std::thread([] {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(OfThread(kVector), 30u) << "another thread";
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  }).join();
  ASSERT_EQ(aclrtUnuseStreamResInCurrentThread(stream), ACL_SUCCESS);
  EXPECT_EQ(OfThread(kVector), 30u);

  ASSERT_EQ(aclrtResetStreamResLimit(stream), ACL_SUCCESS);
  EXPECT_EQ(OfStream(stream, kVector), 30u);
  ASSERT_EQ(aclrtResetDeviceResLimit(0), ACL_SUCCESS);
  EXPECT_EQ(OfDevice(kVector), 40u);
}

TEST_F(DeviceSettingsTest, BadLimitsOfCores) {
  uint32_t value = 7;
  const auto unknown = static_cast<aclrtDevResLimitType>(2);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, kCube, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, kCube, 21), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetDeviceResLimit(0, unknown, 1), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetDeviceResLimit(9, kCube, 1), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetDeviceResLimit(0, unknown, &value), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetDeviceResLimit(0, kCube, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetStreamResLimit(nullptr, kVector, 41), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(value, 7u);
}

TEST_F(DeviceSettingsTest, ResultsAreInfiniteAndRecordNoOverflow) {
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);

  void* const status = NewDeviceMemory(64);
  ASSERT_EQ(aclrtMemset(status, 64, 1, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetOverflowStatus(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetOverflowStatus(status, 63, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetOverflowStatus(nullptr, 64, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetOverflowStatus(status, 64, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  std::string read(64, '\1');
  ASSERT_EQ(aclrtMemcpy(read.data(), 64, status, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(read, std::string(64, '\0'));
}

TEST_F(DeviceSettingsTest, TheOverflowSwitchOfAStreamIsKept) {
  const aclrtStream stream = NewStream();
  uint32_t flag = 7;
  aclrtStreamAttrValue value = {};
  EXPECT_EQ(aclrtGetStreamOverflowSwitch(stream, &flag), ACL_SUCCESS);
  EXPECT_EQ(flag, 0u);
  EXPECT_EQ(aclrtSetStreamOverflowSwitch(stream, 2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSetStreamOverflowSwitch(stream, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamOverflowSwitch(stream, &flag), ACL_SUCCESS);
  EXPECT_EQ(flag, 1u);
  EXPECT_EQ(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value), 0);
  EXPECT_EQ(value.overflowSwitch, 1u);
}

TEST(CannAttributeTest, TheListHasWhatTheQueriesConfirm) {
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  ASSERT_EQ(aclGetCannAttributeList(&attributes, &count), ACL_SUCCESS);
  EXPECT_EQ(std::vector<aclCannAttr>(attributes, attributes + count),
            (std::vector<aclCannAttr>{ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                      ACL_CANN_ATTR_JIT_COMPILE}));
  for (size_t i = 0; i < count; ++i) {
    int32_t value = -1;
    EXPECT_EQ(aclGetCannAttribute(attributes[i], &value), ACL_SUCCESS);
    EXPECT_EQ(value, 1);
  }
  int32_t value = -1;
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetCannAttribute(static_cast<aclCannAttr>(3), &value), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetCannAttribute(ACL_CANN_ATTR_BF16, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetCannAttributeList(nullptr, &count), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace opserve::host_cann
