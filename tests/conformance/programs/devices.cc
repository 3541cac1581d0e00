// Programs about devices: two that share memory, their names, and overflow.

#include <cstring>

#include "program.h"

namespace {

// Device 1 gets a copy of the memory of device 0 without a detour through the host.
void DeviceP2p() {
  constexpr size_t kBytes = 1024;
  CHECK_OK(aclInit(nullptr));
  uint32_t num_devices = 0;
  CHECK_OK(aclrtGetDeviceCount(&num_devices));
  CHECK_TRUE(num_devices >= 2);
  void* memory[2] = {};
  for (int32_t device = 0; device < 2; ++device) {
    int32_t possible = 0;
    CHECK_OK(aclrtDeviceCanAccessPeer(&possible, device, 1 - device));
    CHECK_TRUE(possible == 1);
    CHECK_OK(aclrtSetDevice(device));
    CHECK_OK(aclrtDeviceEnablePeerAccess(1 - device, 0));
    CHECK_OK(aclrtMalloc(&memory[device], kBytes, ACL_MEM_MALLOC_HUGE_FIRST_P2P));
    CHECK_OK(aclrtMemset(memory[device], kBytes, 0xA0 + device, kBytes));
  }
  void* host = nullptr;
  CHECK_OK(aclrtMallocHost(&host, kBytes));
  CHECK_OK(aclrtMemset(host, kBytes, 0, kBytes));
  CHECK_OK(aclrtMemcpy(memory[1], kBytes, memory[0], kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  CHECK_OK(aclrtMemcpy(host, kBytes, memory[1], kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  for (size_t i = 0; i < kBytes; ++i) CHECK_TRUE(static_cast<uint8_t*>(host)[i] == 0xA0);
  CHECK_OK(aclrtFreeHost(host));
  for (int32_t device = 0; device < 2; ++device) {
    CHECK_OK(aclrtSetDevice(device));
    CHECK_OK(aclrtFree(memory[device]));
    CHECK_OK(aclrtDeviceDisablePeerAccess(1 - device));
    CHECK_OK(aclrtResetDeviceForce(device));
  }
  CHECK_OK(aclFinalize());
}

// A device by the numbers of the process, of the machine and of the hardware, by its UUID and by
// its address on the bus.
void DeviceIdentityMapping() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  int32_t logic = -1, phy = -1, id = -1;
  CHECK_OK(aclrtGetLogicDevIdByUserDevId(0, &logic));
  CHECK_OK(aclrtGetUserDevIdByLogicDevId(logic, &id));
  CHECK_TRUE(id == 0);
  CHECK_OK(aclrtGetPhyDevIdByLogicDevId(logic, &phy));
  CHECK_OK(aclrtGetLogicDevIdByPhyDevId(phy, &id));
  CHECK_TRUE(id == logic);
  CHECK_OK(aclrtGetUserDevIdByPhyDevId(phy, &id));
  CHECK_TRUE(id == 0);
  CHECK_OK(aclrtGetPhyDevIdByUserDevId(0, &id));
  CHECK_TRUE(id == phy);
  aclrtUuid uuid = {}, none = {};
  CHECK_OK(aclrtDeviceGetUuid(0, &uuid));
  CHECK_TRUE(std::memcmp(&uuid, &none, sizeof(uuid)) != 0);
  char address[32] = {};
  CHECK_OK(aclrtDeviceGetPCIBusId(0, address, sizeof(address)));
  CHECK_OK(aclrtDeviceGetByPCIBusId(address, &id));
  CHECK_TRUE(id == 0);
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// Asks for saturation, which an A2 may refuse; then infinities are computed and no overflow shows.
void OverflowDetection() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  CHECK_CODE(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION),
             ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK_OK(aclrtGetDeviceSatMode(&mode));
  CHECK_TRUE(mode == ACL_RT_OVERFLOW_MODE_INFNAN);
  uint32_t enabled = 0;
  CHECK_OK(aclrtSetStreamOverflowSwitch(stream, 1));
  CHECK_OK(aclrtGetStreamOverflowSwitch(stream, &enabled));
  CHECK_TRUE(enabled == 1);
  constexpr size_t kStatusNumbers = 16;
  uint32_t* const status = Upload(Ascending(1, kStatusNumbers));
  CHECK_OK(aclrtResetOverflowStatus(stream));
  CHECK_OK(aclrtGetOverflowStatus(status, kStatusNumbers * sizeof(uint32_t), stream));
  CHECK_OK(aclrtSynchronizeStream(stream));
  CHECK_TRUE(Download(status, 1)[0] == 0);
  CHECK_OK(aclrtFree(status));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

}  // namespace

std::vector<Program> DevicePrograms() {
  return {{"device_p2p", DeviceP2p},
          {"device_identity_mapping", DeviceIdentityMapping},
          {"overflow_detection", OverflowDetection}};
}
