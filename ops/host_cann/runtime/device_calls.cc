// Attributes and health of devices.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/core_numbers.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/state_callbacks.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// As on an Ascend910B3, whatever the host CANN stands in for.
constexpr int64_t kL2Bytes = int64_t{192} << 20;

struct Attribute {
  aclrtDevAttr attr;
  int64_t value;
};

// Values that are the same on all devices. The others are found in FindAttribute.
constexpr Attribute kAttributes[] = {
    {ACL_DEV_ATTR_AICPU_CORE_NUM, 6},
    {ACL_DEV_ATTR_AICORE_CORE_NUM, kCubeCores},
    {ACL_DEV_ATTR_CUBE_CORE_NUM, kCubeCores},
    {ACL_DEV_ATTR_VECTOR_CORE_NUM, kVectorCores},
    {ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE, 192 * 1024},
    {ACL_DEV_ATTR_L2_CACHE_SIZE, kL2Bytes},
    {ACL_DEV_ATTR_SMP_ID, 0},
    {ACL_DEV_ATTR_CUST_OP_PRIVILEGE, 1},
    {ACL_DEV_ATTR_MAINBOARD_ID, 0},
    // 0: PCIe. 3, below: a PCIe card.
    {ACL_DEV_ATTR_HD_CONNECT_TYPE, 0},
    {ACL_DEV_ATTR_DEVICE_FORM_FACTOR, 3},
    {ACL_DEV_ATTR_IS_VIRTUAL, 0},
};

aclError FindAttribute(Device& device, aclrtDevAttr attr, int64_t* value) {
  if (attr == ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE) {
    *value = static_cast<int64_t>(device.memory().limit());
    return ACL_SUCCESS;
  }
  if (attr == ACL_DEV_ATTR_PHY_CHIP_ID) {
    *value = device.physical_id();
    return ACL_SUCCESS;
  }
  if (attr == ACL_DEV_ATTR_NPU_ARCH) {
    *value = CurrentSoc().generation->npu_arch;
    return ACL_SUCCESS;
  }
  // An attribute that only other products have is refused like an unknown one: the documents name
  // no code for it.
  for (const Attribute& attribute : kAttributes) {
    if (attribute.attr != attr) continue;
    *value = attribute.value;
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat(CurrentSoc().name, " has no attribute ", static_cast<int>(attr)));
}

// Features of CANN with the newer chips. The documents name none for the others.
constexpr aclCannAttr kCannAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                           ACL_CANN_ATTR_JIT_COMPILE};

size_t NumCannAttributes() {
  return CurrentSoc().generation->computes_bf16 ? std::size(kCannAttributes) : 0;
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

const char* aclrtGetSocName() {
  if (EnterCall(__func__) != ACL_SUCCESS) return nullptr;
  return CurrentSoc().name;
}

aclError aclrtCheckArchCompatibility(const char* socVersion, int32_t* canCompatible) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(socVersion, "socVersion"));
  RETURN_IF_FAILED(RequireNotNull(canCompatible, "canCompatible"));
  Soc soc{};
  if (!FindSoc(socVersion, &soc)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("socVersion is \"", socVersion, "\", must be one of ", SocNames()));
  }
  // Kernels fit chips of one architecture; the names within it do not matter.
  *canCompatible = soc.generation->npu_arch == CurrentSoc().generation->npu_arch ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(count, "count"));
  const int num_devices = Runtime::Get().num_devices();
  if (num_devices == 0) {
    return Fail(ACL_ERROR_RT_NO_DEVICE, kBadArgument,
                "ASCEND_RT_VISIBLE_DEVICES makes no device visible: it must list ids in ascending "
                "order");
  }
  *count = static_cast<uint32_t>(num_devices);
  return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(runMode, "runMode"));
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  return FindAttribute(*device, attr, value);
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      *value = kCubeCores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      *value = kVectorCores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE:
      *value = kL2Bytes;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_UNDEFINED:
      break;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
              Concat("deviceInfo is ", static_cast<int>(deviceInfo), ", must be 0 to 2"));
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(cannAttrList, "cannAttrList"));
  RETURN_IF_FAILED(RequireNotNull(num, "num"));
  *cannAttrList = kCannAttributes;
  *num = NumCannAttributes();
  return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  if (cannAttr < ACL_CANN_ATTR_INF_NAN || cannAttr > ACL_CANN_ATTR_JIT_COMPILE) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                Concat("cannAttr is ", static_cast<int>(cannAttr), ", must be 0 to 2"));
  }
  const aclCannAttr* const end = kCannAttributes + NumCannAttributes();
  *value = std::find(kCannAttributes, end, cannAttr) != end ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                  int32_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  switch (devFeatureType) {
    case ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV:
    // Features of the vendor's hardware that have no counterpart here.
    case ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV:
      *value = 0;
      return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("devFeatureType is ", static_cast<int>(devFeatureType), ", must be 1 or 21"));
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(utilizationInfo, "utilizationInfo"));
  // 100000 by the vendor's document.
  if (utilizationInfo->utilizationExtend != nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                "utilizationInfo->utilizationExtend must be null");
  }
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  utilizationInfo->cubeUtilization = 0;
  // A kernel uses all cores that are free, so the device is busy or not. There are no separate cube
  // cores.
  utilizationInfo->vectorUtilization = device->running_kernels > 0 ? 100 : 0;
  utilizationInfo->aicpuUtilization = 0;
  // -1, as on all products: not measured.
  utilizationInfo->memoryUtilization = -1;
  return ACL_SUCCESS;
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(deviceStatus, "deviceStatus"));
  Device* device = nullptr;
  // For lost devices too: their state is the question.
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  *deviceStatus = device->lost_code() == ACL_SUCCESS ? ACL_RT_DEVICE_STATUS_NORMAL
                                                     : ACL_RT_DEVICE_STATUS_ABNORMAL;
  return ACL_SUCCESS;
}

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(errorInfo, "errorInfo"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  *errorInfo = {};
  // By the vendor's document A2 and A3 tell memory from other faults, and nothing finer.
  switch (device->last_fault()) {
    case ACL_SUCCESS:
      errorInfo->errorType = ACL_RT_NO_ERROR;
      break;
    case ACL_ERROR_RT_DEVICE_MEM_ERROR:
      errorInfo->errorType = ACL_RT_ERROR_MEMORY;
      // The only fault that aclrtRepairError may mend; a lost device needs a reset.
      errorInfo->tryRepair = 1;
      break;
    case ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR:
      errorInfo->errorType = ACL_RT_ERROR_MEMORY;
      break;
    default:
      errorInfo->errorType = ACL_RT_ERROR_OTHERS;
      break;
  }
  return ACL_SUCCESS;
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(errorInfo, "errorInfo"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  if (errorInfo->tryRepair != 1 || device->last_fault() != ACL_ERROR_RT_DEVICE_MEM_ERROR) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat("device ", device->id(), " has no fault that can be repaired"));
  }
  device->NoteFault(ACL_SUCCESS);
  return ACL_SUCCESS;
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  // 36 minutes, by the vendor's document.
  constexpr uint32_t kMaxTimeoutMs = 36 * 60 * 1000;
  if (timeout > kMaxTimeoutMs) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("timeout is ", timeout, ", must be at most ", kMaxTimeoutMs));
  }
  Device* device = nullptr;
  RETURN_IF_FAILED(FindHealthyDevice(deviceId, &device));
  // 0 means for ever here, -1 elsewhere.
  const Deadline deadline = DeadlineAfterMs(timeout == 0 ? -1 : static_cast<int32_t>(timeout));
  // Before anything is aborted: a callback that fails stops the abort.
  RETURN_IF_FAILED(ReportTaskAbort(deviceId, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout));
  if (!device->AbortTasks(deadline)) {
    return Fail(ACL_ERROR_RT_TASK_TIMEOUT, kInternal,
                Concat("device ", deviceId, " still runs a task ", timeout, " ms after the abort"));
  }
  return ReportTaskAbort(deviceId, ACL_RT_DEVICE_TASK_ABORT_POST, timeout);
}
