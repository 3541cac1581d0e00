// Device memory, page-locked memory, registration.
#include <sys/mman.h>

#include <cstring>
#include <thread>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

class MemoryTest : public RuntimeTest {
 protected:
  static size_t FreeBytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
    EXPECT_EQ(total, kDeviceBytes);
    return free;
  }
};

TEST_F(MemoryTest, AllocationsAreAlignedAndCharged) {
  const struct {
    size_t bytes;
    aclrtMemMallocPolicy policy;
  } kCases[] = {{1, ACL_MEM_MALLOC_HUGE_FIRST},
                {32, ACL_MEM_MALLOC_NORMAL_ONLY},
                {33, ACL_MEM_MALLOC_HUGE_ONLY},
                {1 << 20, ACL_MEM_MALLOC_HUGE_FIRST},
                {(5 << 20) + 1, ACL_MEM_MALLOC_HUGE_FIRST_P2P},
                {64, static_cast<aclrtMemMallocPolicy>(9)}};  // unknown: as the system likes
  for (const auto& c : kCases) {
    const size_t before = FreeBytes();
    const size_t rounded = (c.bytes + 31) / 32 * 32;
    void* memory = nullptr;
    ASSERT_EQ(aclrtMalloc(&memory, c.bytes, c.policy), ACL_SUCCESS);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_EQ(before - FreeBytes(), rounded + 32);
    std::memset(memory, 1, c.bytes);
    ASSERT_EQ(aclrtFree(memory), ACL_SUCCESS);
    ASSERT_EQ(aclrtMallocAlign32(&memory, c.bytes, c.policy), ACL_SUCCESS);
    EXPECT_EQ(before - FreeBytes(), rounded);
    ASSERT_EQ(aclrtFree(memory), ACL_SUCCESS);
    EXPECT_EQ(FreeBytes(), before);
  }
}

TEST_F(MemoryTest, ConfiguredAndCachedMemory) {
  aclrtMallocAttribute attributes[2] = {};
  attributes[0].attr = ACL_RT_MEM_ATTR_MODULE_ID;
  attributes[0].value.moduleId = 33;
  attributes[1].attr = ACL_RT_MEM_ATTR_VA_FLAG;
  attributes[1].value.vaFlag = 1;
  aclrtMallocConfig config = {attributes, 2};
  void* host = nullptr;
  void* cached = nullptr;
  ASSERT_EQ(aclrtMallocHostWithCfg(&host, 64, &config), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocHostWithCfg(&host, 64, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtMallocCached(&cached, 64, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemFlush(cached, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemInvalidate(cached, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemFlush(cached, 65), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemInvalidate(cached, 0), ACL_ERROR_INVALID_PARAM);
  attributes[1].attr = ACL_RT_MEM_ATTR_DEVICE_ID;
  void* none = nullptr;
  EXPECT_EQ(aclrtMallocHostWithCfg(&none, 64, &config), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(aclrtFree(cached), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
}

TEST_F(MemoryTest, KindsOfMemoryAreTold) {
  char* const device = static_cast<char*>(NewDeviceMemory(64));
  void* host = nullptr;
  ASSERT_EQ(aclrtMallocHost(&host, 64), ACL_SUCCESS);
  void* addresses[] = {device, device + 63, host};
  const struct {
    uint32_t size, kinds, reserve;
    aclError expected;
    uint32_t result;
  } kCases[] = {{2, ACL_RT_MEM_TYPE_DEV, 0, ACL_SUCCESS, 1},
                {3, ACL_RT_MEM_TYPE_DEV, 0, ACL_SUCCESS, 0},
                {2, ACL_RT_MEM_TYPE_DVPP, 0, ACL_SUCCESS, 0},
                {2, ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_RSVD, 0, ACL_SUCCESS, 1},
                {0, ACL_RT_MEM_TYPE_DEV, 0, ACL_ERROR_RT_PARAM_INVALID, 7},
                {2, 1, 0, ACL_ERROR_RT_PARAM_INVALID, 7},
                {2, ACL_RT_MEM_TYPE_DEV, 1, ACL_ERROR_RT_PARAM_INVALID, 7}};
  for (const auto& c : kCases) {
    uint32_t result = 7;
    EXPECT_EQ(aclrtCheckMemType(addresses, c.size, c.kinds, &result, c.reserve), c.expected);
    EXPECT_EQ(result, c.result);
  }
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
}

TEST_F(MemoryTest, CapacityIsALimit) {
  void* most = nullptr;
  void* more = nullptr;
  ASSERT_EQ(aclrtMalloc(&most, kDeviceBytes - 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(FreeBytes(), 32u);
  for (const size_t bytes : {size_t{1}, kDeviceBytes, SIZE_MAX, SIZE_MAX - 31}) {
    EXPECT_EQ(aclrtMalloc(&more, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION)
        << bytes;
  }
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(aclrtMallocAlign32(&more, 32, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(FreeBytes(), 0u);
  EXPECT_EQ(aclrtFree(more), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(most), ACL_SUCCESS);
  EXPECT_EQ(FreeBytes(), kDeviceBytes);
}

TEST_F(MemoryTest, DevicesHaveTheirOwnCapacity) {
  void* const memory = NewDeviceMemory(1000);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(FreeBytes(), kDeviceBytes);
  EXPECT_EQ(opserveHostDeviceCount(0, OPSERVE_HOST_ALLOCATIONS), 1);
  EXPECT_EQ(opserveHostDeviceCount(1, OPSERVE_HOST_ALLOCATIONS), 0);
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
}

TEST_F(MemoryTest, DoubleFreeIsRefused) {
  void* const memory = NewDeviceMemory(1 << 21);
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(memory), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(MemoryTest, ConfigNamesTheDevice) {
  aclrtMallocAttribute attributes[2] = {};
  attributes[0].attr = ACL_RT_MEM_ATTR_MODULE_ID;
  attributes[1].attr = ACL_RT_MEM_ATTR_DEVICE_ID;
  attributes[1].value.deviceId = 1;
  aclrtMallocConfig config = {attributes, 2};
  void* memory = nullptr;
  ASSERT_EQ(aclrtMallocWithCfg(&memory, 10, ACL_MEM_MALLOC_HUGE_FIRST, &config), ACL_SUCCESS);
  aclrtPtrAttributes found = {};
  EXPECT_EQ(aclrtPointerGetAttributes(memory, &found), ACL_SUCCESS);
  EXPECT_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(found.location.id, 1u);
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
  attributes[1].value.deviceId = 2;
  EXPECT_EQ(aclrtMallocWithCfg(&memory, 10, ACL_MEM_MALLOC_HUGE_FIRST, &config), 107001);
  attributes[1].attr = ACL_RT_MEM_ATTR_VA_FLAG;
  EXPECT_EQ(aclrtMallocWithCfg(&memory, 10, ACL_MEM_MALLOC_HUGE_FIRST, &config), 207000);
}

TEST_F(MemoryTest, InfoAndUsage) {
  size_t free = 1, total = 1;
  EXPECT_EQ(aclrtGetMemInfo(ACL_DDR_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(free + total, 0u);
  EXPECT_EQ(aclrtGetMemInfo(ACL_MEM_P2P_HUGE, &free, &total), ACL_SUCCESS);
  EXPECT_EQ(total, kDeviceBytes);
  void* const memory = NewDeviceMemory(64);
  aclrtMemUsageInfo usage = {};
  size_t entries = 0;
  EXPECT_EQ(aclrtGetMemUsageInfo(0, &usage, 1, &entries), ACL_SUCCESS);
  EXPECT_EQ(entries, 1u);
  EXPECT_EQ(usage.curMemSize, 96u);
  EXPECT_GE(usage.memPeakSize, usage.curMemSize);
  EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
}

TEST_F(MemoryTest, FreeWithDeviceSync) {
  const aclrtStream stream = NewStream();
  void* const memory = NewDeviceMemory(64);
  bool ran = false;
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeWithDevSync(memory), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(MemoryTest, PageLockedMemory) {
  void* memory = nullptr;
  ASSERT_EQ(aclrtMallocHost(&memory, 100), ACL_SUCCESS);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_PINNED_BYTES), 100);
  aclrtPtrAttributes found = {};
  EXPECT_EQ(aclrtPointerGetAttributes(memory, &found), ACL_SUCCESS);
  EXPECT_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  char local = 0;
  EXPECT_EQ(aclrtPointerGetAttributes(&local, &found), ACL_SUCCESS);
  EXPECT_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_EQ(aclrtFree(memory), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFreeHost(memory), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(memory), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(MemoryTest, PageLockedMemoryOutlivesAReset) {
  void* memory = nullptr;
  ASSERT_EQ(aclrtMallocHost(&memory, 100), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  std::memset(memory, 1, 100);
  EXPECT_EQ(aclrtFreeHost(memory), ACL_SUCCESS);
}

class RegistrationTest : public MemoryTest {
 protected:
  static constexpr size_t kPage = 4096;
  void SetUp() override {
    MemoryTest::SetUp();
    memory_ = static_cast<char*>(
        mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override {
    MemoryTest::TearDown();
    munmap(memory_, 4 * kPage);
  }
  // The code of a kernel that works on the memory.
  aclError UseInKernel(void* address, size_t bytes) {
    KernelLaunch launch;
    launch.name = "aclnnTest";
    launch.ranges = {{address, bytes, "self"}};
    launch.run = [&](kernels::TaskRunner&) { std::memset(address, 1, bytes); };
    EXPECT_EQ(LaunchKernel(nullptr, std::move(launch)), ACL_SUCCESS);
    return aclrtSynchronizeStream(nullptr);
  }
  char* memory_ = nullptr;
};

TEST_F(RegistrationTest, MakesHostMemoryUsableByKernels) {
  EXPECT_EQ(UseInKernel(memory_, 8), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  void* device = nullptr;
  ASSERT_EQ(aclrtHostRegister(memory_, kPage, ACL_HOST_REGISTER_MAPPED, &device), ACL_SUCCESS);
  EXPECT_EQ(UseInKernel(device, kPage), ACL_SUCCESS);
  EXPECT_EQ(UseInKernel(device, kPage + 1), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  void* inside = nullptr;
  EXPECT_EQ(aclrtHostGetDevicePointer(memory_ + 100, &inside, 0), ACL_SUCCESS);
  EXPECT_EQ(UseInKernel(inside, 100), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostGetDevicePointer(memory_, &inside, 1), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtHostUnregister(memory_ + kPage), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(aclrtHostUnregister(memory_), ACL_SUCCESS);
  EXPECT_EQ(UseInKernel(memory_, 8), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(aclrtHostUnregister(memory_), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(RegistrationTest, OverlapsAreRefusedPerDevice) {
  constexpr uint32_t kFlags = ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED;
  ASSERT_EQ(aclrtHostRegisterV2(memory_ + kPage, 2 * kPage, kFlags), ACL_SUCCESS);
  for (const size_t start : {size_t{0}, kPage, 2 * kPage}) {
    EXPECT_EQ(aclrtHostRegisterV2(memory_ + start, 2 * kPage, kFlags),
              ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  }
  EXPECT_EQ(aclrtHostRegisterV2(memory_, kPage, kFlags), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostRegisterV2(memory_ + 3 * kPage, kPage, kFlags), ACL_SUCCESS);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_REGISTERED_REGIONS), 3);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtHostRegisterV2(memory_, 4 * kPage, kFlags), ACL_SUCCESS);
}

TEST_F(RegistrationTest, FlagsSayWhatForMemoryIs) {
  ASSERT_EQ(aclrtHostRegisterV2(memory_, kPage, ACL_HOST_REG_PINNED), ACL_SUCCESS);
  void* device = nullptr;
  EXPECT_EQ(aclrtHostGetDevicePointer(memory_, &device, 0), 507911);
  EXPECT_EQ(UseInKernel(memory_, 8), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  aclrtPtrAttributes found = {};
  EXPECT_EQ(aclrtPointerGetAttributes(memory_, &found), ACL_SUCCESS);
  EXPECT_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_HOST);
}

TEST_F(RegistrationTest, RegisteredPageLockedMemoryCannotBeFreed) {
  void* memory = nullptr;
  ASSERT_EQ(aclrtMallocHost(&memory, kPage), ACL_SUCCESS);
  ASSERT_EQ(aclrtHostRegisterV2(memory, kPage, ACL_HOST_REG_MAPPED), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(memory), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtHostUnregister(memory), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(memory), ACL_SUCCESS);
}

TEST_F(MemoryTest, ThreadsAllocateAndFree) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      for (size_t bytes = 1; bytes < 400; ++bytes) {
        void* const memory = NewDeviceMemory(bytes);
        ASSERT_EQ(aclrtMemset(memory, bytes, 1, bytes), ACL_SUCCESS) << RecentMessage();
        ASSERT_EQ(aclrtFree(memory), ACL_SUCCESS);
      }
      ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FreeBytes(), kDeviceBytes);
}

TEST_F(MemoryTest, MemoryMayBeFreedWhileItIsFilled) {
  constexpr size_t kWords = kDeviceBytes / 2 / sizeof(uint32_t);
  constexpr size_t kBytes = kWords * sizeof(uint32_t);
  for (int i = 0; i < 20; ++i) {
    void* const memory = NewDeviceMemory(kBytes);
    std::thread other([memory] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      EXPECT_EQ(aclrtFree(memory), ACL_SUCCESS);
      ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
    // An error if it comes after the other thread.
    if (i % 2 == 0) {
      aclrtMemset(memory, kBytes, 1, kBytes);
    } else {
      aclrtMemsetD32(memory, kBytes, 1, kWords);
    }
    other.join();
  }
  EXPECT_EQ(FreeBytes(), kDeviceBytes);
}

}  // namespace
}  // namespace opserve::host_cann
