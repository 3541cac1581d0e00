// Programs about memory: data buffers that are used again, and configured allocations.

#include <cstring>

#include "program.h"

namespace {

// One data buffer for two allocations, one after the other.
void ReusableDataBuffer() {
  constexpr size_t kSizes[] = {37, 83};
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  void* memory[2] = {};
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(aclrtMallocAlign32(&memory[i], kSizes[i], ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_TRUE(reinterpret_cast<uintptr_t>(memory[i]) % 32 == 0);
  }
  aclDataBuffer* const buffer = aclCreateDataBuffer(memory[0], kSizes[0]);
  CHECK_TRUE(buffer != nullptr);
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(aclUpdateDataBuffer(buffer, memory[i], kSizes[i]));
    CHECK_TRUE(aclGetDataBufferAddr(buffer) == memory[i]);
    CHECK_TRUE(aclGetDataBufferSizeV2(buffer) == kSizes[i]);
    std::vector<uint8_t> bytes(kSizes[i], static_cast<uint8_t>(17 + i)), result(kSizes[i]);
    CHECK_OK(aclrtMemcpy(aclGetDataBufferAddr(buffer), kSizes[i], bytes.data(), kSizes[i],
                         ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK_OK(aclrtMemcpy(result.data(), kSizes[i], aclGetDataBufferAddr(buffer), kSizes[i],
                         ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_TRUE(result == bytes);
  }
  CHECK_OK(aclDestroyDataBuffer(buffer));
  for (void* each : memory) CHECK_OK(aclrtFree(each));  // the buffer did not own it
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// Memory of both sides that is accounted to a part of the program, and memory with a cache.
void ConfiguredAllocation() {
  constexpr size_t kBytes = 4096;
  constexpr uint16_t kModule = 33;
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtMallocAttribute attribute = {};
  attribute.attr = ACL_RT_MEM_ATTR_MODULE_ID;
  attribute.value.moduleId = kModule;
  aclrtMallocConfig config = {&attribute, 1};
  void *host = nullptr, *device = nullptr, *cached = nullptr;
  CHECK_OK(aclrtMallocHostWithCfg(&host, kBytes, &config));
  CHECK_OK(aclrtMallocWithCfg(&device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST, &config));
  CHECK_OK(aclrtMallocCached(&cached, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));

  void* addresses[] = {device, cached};
  uint32_t all_fit = 0;
  CHECK_OK(aclrtCheckMemType(addresses, 2, ACL_RT_MEM_TYPE_DEV, &all_fit, 0));
  CHECK_TRUE(all_fit == 1);
  aclrtPtrAttributes attributes = {};
  CHECK_OK(aclrtPointerGetAttributes(device, &attributes));
  CHECK_TRUE(attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE);
  CHECK_TRUE(attributes.location.id == 0);
  CHECK_OK(aclrtPointerGetAttributes(host, &attributes));
  CHECK_TRUE(attributes.location.type == ACL_MEM_LOCATION_TYPE_HOST);

  std::memset(host, 0x3C, kBytes);
  CHECK_OK(aclrtMemcpy(device, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_OK(aclrtMemcpy(cached, kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  CHECK_OK(aclrtMemFlush(cached, kBytes));
  CHECK_OK(aclrtMemInvalidate(cached, kBytes));
  std::memset(host, 0, kBytes);
  CHECK_OK(aclrtMemcpy(host, kBytes, cached, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  for (size_t i = 0; i < kBytes; ++i) CHECK_TRUE(static_cast<uint8_t*>(host)[i] == 0x3C);
  CHECK_OK(aclrtFreeHostWithDevSync(host));
  CHECK_OK(aclrtFreeWithDevSync(device));
  CHECK_OK(aclrtFreeWithDevSync(cached));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

}  // namespace

std::vector<Program> MemoryPrograms() {
  return {{"reusable_data_buffer", ReusableDataBuffer},
          {"configured_allocation", ConfiguredAllocation}};
}
