// Names and numbers of devices: ids of the process, the machine and the hardware, UUIDs, PCI
// addresses.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

std::string PciBusId(const Device& device) {
  std::array<char, 16> text{};
  // An invented place on the bus, one apart for each device.
  std::snprintf(text.data(), text.size(), "0000:%02x:00.0",
                0x81u + static_cast<uint32_t>(device.physical_id()));
  return text.data();
}

// The id of the first visible device that `matches`. -1: none does.
template <typename Matches>
int32_t FindVisible(Matches matches) {
  const Runtime& runtime = Runtime::Get();
  for (int32_t id = 0; id < runtime.num_devices(); ++id) {
    if (matches(*runtime.FindDevice(id))) return id;
  }
  return -1;
}

// The id in this process of the device with that id in the machine. 107001: it is not visible.
aclError FindUserId(int32_t physical_id, std::string_view name, int32_t* user_id) {
  RETURN_IF_FAILED(RequireNotNull(user_id, "the result"));
  const int32_t id =
      FindVisible([&](const Device& device) { return device.physical_id() == physical_id; });
  // Devices that ASCEND_RT_VISIBLE_DEVICES hides are unknown to the process.
  if (id < 0) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, kBadArgument,
                Concat(name, " is ", physical_id, ", which no visible device has"));
  }
  *user_id = id;
  return ACL_SUCCESS;
}

// The id in the machine of a device of this process.
aclError FindPhysicalId(int32_t user_id, std::string_view result, int32_t* physical_id) {
  RETURN_IF_FAILED(RequireNotNull(physical_id, result));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(user_id, &device));
  *physical_id = device->physical_id();
  return ACL_SUCCESS;
}

// The machine's ids are the hardware's: checks that a visible device has `id`, and returns it.
aclError KeepId(int32_t id, std::string_view name, int32_t* result) {
  RETURN_IF_FAILED(RequireNotNull(result, "the result"));
  int32_t user_id = 0;
  RETURN_IF_FAILED(FindUserId(id, name, &user_id));
  *result = id;
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(uuid, "uuid"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  *uuid = {};
  // The same in every run on every machine: the name, then the device's number in the last byte.
  std::memcpy(uuid->bytes, "opserve-host", 12);
  uuid->bytes[15] = static_cast<char>(device->physical_id());
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(pciBusId, "pciBusId"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  const std::string text = PciBusId(*device);
  // Room for the text and its zero.
  if (len <= static_cast<int32_t>(text.size())) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("len is ", len, ", must be at least ", text.size() + 1));
  }
  std::memcpy(pciBusId, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(pciBusId, "pciBusId"));
  RETURN_IF_FAILED(RequireNotNull(deviceId, "deviceId"));
  const int32_t id =
      FindVisible([&](const Device& device) { return PciBusId(device) == pciBusId; });
  if (id < 0) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, kBadArgument,
                Concat("pciBusId is \"", pciBusId, "\", which no visible device has"));
  }
  *deviceId = id;
  return ACL_SUCCESS;
}

aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t* const phyDevId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return FindPhysicalId(userDevId, "phyDevId", phyDevId);
}

aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t* const userDevid) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return FindUserId(phyDevId, "phyDevId", userDevid);
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return FindPhysicalId(userDevid, "logicDevId", logicDevId);
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return FindUserId(logicDevId, "logicDevId", userDevid);
}

aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t* const logicDevId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return KeepId(phyDevId, "phyDevId", logicDevId);
}

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return KeepId(logicDevId, "logicDevId", phyDevId);
}
