// Programs about the process: errors, versions, and the runtime's beginning and end.

#include <cstring>
#include <string>

#include "program.h"

namespace {

// A failed call leaves its code and its message; reading them clears them.
void ErrorHandling() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  CHECK_TRUE(aclrtGetRunMode(nullptr) != ACL_SUCCESS);
  const aclError code = aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
  CHECK_TRUE(code != ACL_SUCCESS);
  CHECK_CODE(aclrtGetLastError(ACL_RT_THREAD_LEVEL), code);
  CHECK_OK(aclrtGetLastError(ACL_RT_THREAD_LEVEL));
  CHECK_OK(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
  const char* const message = aclGetRecentErrMsg();
  CHECK_TRUE(message != nullptr && *message != '\0');
  CHECK_TRUE(aclGetRecentErrMsg() == nullptr);
  aclrtErrorInfo details;
  CHECK_OK(aclrtGetErrorVerbose(0, &details));
  CHECK_TRUE(details.errorType == ACL_RT_NO_ERROR);
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// Versions, sizes of types and half-precision numbers, which need no device.
void SystemInfo() {
  CHECK_OK(aclInit(nullptr));
  char package[] = "runtime";
  char text[ACL_PKG_VERSION_MAX_SIZE] = {};
  int32_t number = 0;
  CHECK_OK(aclsysGetVersionStr(package, text));
  CHECK_OK(aclsysGetVersionNum(package, &number));
  CHECK_TRUE(text[0] != '\0' && number > 0);
  int32_t major = -1, minor = -1, patch = -1;
  CHECK_OK(aclrtGetVersion(&major, &minor, &patch));
  CHECK_TRUE(major > 0 && minor >= 0 && patch >= 0);
  const aclFloat16 half = aclFloatToFloat16(1.625f);
  CHECK_TRUE(aclFloat16ToFloat(half) == 1.625f);
  CHECK_TRUE(aclDataTypeSize(ACL_FLOAT16) == sizeof(aclFloat16));
  CHECK_TRUE(aclDataTypeSize(ACL_FLOAT) == sizeof(float));
  CHECK_OK(aclFinalize());
}

// What the chip and the installation can do, before work is given to them.
void RuntimeCompatibility() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  const aclCannAttr* attributes = nullptr;
  size_t num_attributes = 0;
  CHECK_OK(aclGetCannAttributeList(&attributes, &num_attributes));
  for (size_t i = 0; i < num_attributes; ++i) {
    int32_t value = -1;
    CHECK_OK(aclGetCannAttribute(attributes[i], &value));
    CHECK_TRUE(value == 0 || value == 1);
  }
  const char* const soc = aclrtGetSocName();
  CHECK_TRUE(soc != nullptr);
  int32_t compatible = -1;
  CHECK_OK(aclrtCheckArchCompatibility(soc, &compatible));
  CHECK_TRUE(compatible == 1);
  for (const aclrtDevFeatureType feature :
       {ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV}) {
    int32_t capability = -1;
    CHECK_OK(aclrtGetDeviceCapability(0, feature, &capability));
    CHECK_TRUE(capability == 0 || capability == 1);
  }
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

struct Plugin {
  int begun = 0;
  int ended = 0;
};

aclError Begin(const char*, size_t, void* plugin) {
  ++static_cast<Plugin*>(plugin)->begun;
  return ACL_SUCCESS;
}

aclError End(void* plugin) {
  ++static_cast<Plugin*>(plugin)->ended;
  return ACL_SUCCESS;
}

// Two users of the runtime in one process: the first begins it, the last ends it. Callbacks that
// were taken back are not called.
void ReferenceCountedLifecycle() {
  Plugin kept, removed;
  CHECK_OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, Begin, &kept));
  CHECK_OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, End, &kept));
  CHECK_OK(aclInitCallbackRegister(ACL_REG_TYPE_ACL_MODEL, Begin, &removed));
  CHECK_OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_ACL_MODEL, End, &removed));
  CHECK_OK(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, Begin));
  CHECK_OK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, End));

  CHECK_OK(aclInit(nullptr));
  CHECK_CODE(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  uint64_t references = 0;
  CHECK_OK(aclFinalizeReference(&references));
  CHECK_TRUE(references == 1 && kept.ended == 0);
  CHECK_OK(aclFinalizeReference(&references));
  CHECK_TRUE(references == 0);
  CHECK_TRUE(kept.begun == 1 && kept.ended == 1);
  CHECK_TRUE(removed.begun == 0 && removed.ended == 0);
  CHECK_OK(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, Begin));
  CHECK_OK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, End));
}

}  // namespace

std::vector<Program> ProcessPrograms() {
  return {{"error_handling", ErrorHandling},
          {"system_info", SystemInfo},
          {"runtime_compatibility", RuntimeCompatibility},
          {"reference_counted_lifecycle", ReferenceCountedLifecycle}};
}
