// Names and numbers of devices and chips.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using DeviceIdsTest = RuntimeTest;

TEST_F(DeviceIdsTest, IdsAndAddressesLeadBackToTheDevice) {
  for (int32_t user = 0; user < kNumDevices; ++user) {
    int32_t logic = -1, physical = -1, back = -1;
    ASSERT_EQ(aclrtGetLogicDevIdByUserDevId(user, &logic), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetUserDevIdByLogicDevId(logic, &back), ACL_SUCCESS);
    EXPECT_EQ(back, user);
    ASSERT_EQ(aclrtGetPhyDevIdByLogicDevId(logic, &physical), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetLogicDevIdByPhyDevId(physical, &back), ACL_SUCCESS);
    EXPECT_EQ(back, logic);
    EXPECT_EQ(aclrtGetUserDevIdByPhyDevId(physical, &back), ACL_SUCCESS);
    EXPECT_EQ(back, user);
    EXPECT_EQ(aclrtGetPhyDevIdByUserDevId(user, &back), ACL_SUCCESS);
    EXPECT_EQ(back, physical);

    char bus_id[13] = {};
    ASSERT_EQ(aclrtDeviceGetPCIBusId(user, bus_id, sizeof(bus_id)), ACL_SUCCESS);
    EXPECT_EQ(aclrtDeviceGetByPCIBusId(bus_id, &back), ACL_SUCCESS);
    EXPECT_EQ(back, user);
  }
}

TEST_F(DeviceIdsTest, UnknownIdsAreRefused) {
  int32_t id = 7;
  const struct {
    const char* name;
    aclError code;
    aclError expected;
  } kCases[] = {
      {"user", aclrtGetLogicDevIdByUserDevId(kNumDevices, &id), ACL_ERROR_RT_INVALID_DEVICEID},
      {"logic", aclrtGetUserDevIdByLogicDevId(-1, &id), ACL_ERROR_RT_INVALID_DEVICEID},
      {"logic to physical", aclrtGetPhyDevIdByLogicDevId(9, &id), ACL_ERROR_RT_INVALID_DEVICEID},
      {"physical to logic", aclrtGetLogicDevIdByPhyDevId(9, &id), ACL_ERROR_RT_INVALID_DEVICEID},
      {"bus", aclrtDeviceGetByPCIBusId("0000:00:00.0", &id), ACL_ERROR_RT_INVALID_DEVICEID},
      {"null bus", aclrtDeviceGetByPCIBusId(nullptr, &id), ACL_ERROR_INVALID_PARAM},
      {"null result", aclrtGetUserDevIdByPhyDevId(0, nullptr), ACL_ERROR_INVALID_PARAM},
  };
  for (const auto& c : kCases) EXPECT_EQ(c.code, c.expected) << c.name;
  EXPECT_EQ(id, 7);
}

TEST_F(DeviceIdsTest, ChipsOfOneArchitectureRunEachOthersOperators) {
  const struct {
    const char* chip;
    int32_t compatible;
  } kCases[] = {
      {"Ascend910B3", 1}, {"Ascend910B1", 1}, {"Ascend910_9391", 1},
      {"Ascend910A", 0},  {"Ascend310P3", 0},
  };
  for (const auto& c : kCases) {
    int32_t compatible = -1;
    EXPECT_EQ(aclrtCheckArchCompatibility(c.chip, &compatible), ACL_SUCCESS) << c.chip;
    EXPECT_EQ(compatible, c.compatible) << c.chip;
  }
  int32_t compatible = -1;
  EXPECT_EQ(aclrtCheckArchCompatibility("Ascend1", &compatible), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(RecentMessage().find("socVersion is \"Ascend1\""), std::string::npos);
  EXPECT_EQ(aclrtCheckArchCompatibility(nullptr, &compatible), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(compatible, -1);
}

}  // namespace
}  // namespace opserve::host_cann
