// Bad arguments: the code of each call, and that it changed nothing.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using BadCallsTest = RuntimeTest;

struct BadCall {
  const char* name;
  aclError expected;
  std::function<aclError()> call;
};

void ExpectRefused(const std::vector<BadCall>& calls) {
  for (const BadCall& bad : calls) {
    RecentMessage();
    const LiveCounts before = LiveCounts::Now();
    EXPECT_EQ(bad.call(), bad.expected) << bad.name;
    EXPECT_NE(RecentMessage(), "") << bad.name;
    EXPECT_EQ(LiveCounts::Now(), before) << bad.name;
  }
}

// A handle that never was one.
void* const kForeign = reinterpret_cast<void*>(0x12345);

TEST_F(BadCallsTest, Devices) {
  uint32_t flags = 7;
  int64_t value = 0;
  aclrtDeviceStatus status;
  char text[8];
  aclrtUtilizationInfo with_extension = {};
  with_extension.utilizationExtend = static_cast<aclrtUtilizationExtendInfo*>(kForeign);
  ExpectRefused({
      {"set -1", 107001, [] { return aclrtSetDevice(-1); }},
      {"set 2", 107001, [] { return aclrtSetDevice(kNumDevices); }},
      {"reset 2", 107001, [] { return aclrtResetDevice(kNumDevices); }},
      {"reset unused", 507007, [] { return aclrtResetDevice(1); }},
      {"get null", 100000, [] { return aclrtGetDevice(nullptr); }},
      {"count null", 100000, [] { return aclrtGetDeviceCount(nullptr); }},
      {"run mode null", 100000, [] { return aclrtGetRunMode(nullptr); }},
      {"sync 0", 107000, [] { return aclrtSynchronizeDeviceWithTimeout(0); }},
      {"sync -2", 107000, [] { return aclrtSynchronizeDeviceWithTimeout(-2); }},
      {"info device", 107001, [&] { return aclrtGetDeviceInfo(9, ACL_DEV_ATTR_NPU_ARCH, &value); }},
      {"info attribute", 107000,
       [&] { return aclrtGetDeviceInfo(0, ACL_DEV_ATTR_WARP_SIZE, &value); }},
      {"capability", 100000,
       [&] { return aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &value); }},
      {"status device", 107001, [&] { return aclrtQueryDeviceStatus(-1, &status); }},
      {"utilization", 100000, [&] { return aclrtGetDeviceUtilizationRate(0, &with_extension); }},
      {"bus id length", 107000, [&] { return aclrtDeviceGetPCIBusId(0, text, sizeof(text)); }},
      {"primary null", 100000, [&] { return aclrtGetPrimaryCtxState(0, &flags, nullptr); }},
      {"abort timeout", 107000, [] { return aclrtDeviceTaskAbort(0, 2160001); }},
  });
  EXPECT_EQ(flags, 7u);
}

TEST_F(BadCallsTest, Contexts) {
  int64_t value = 0;
  ExpectRefused({
      {"create null", 100000, [] { return aclrtCreateContext(nullptr, 0); }},
      {"set null", 100000, [] { return aclrtSetCurrentContext(nullptr); }},
      {"set foreign", 107000, [] { return aclrtSetCurrentContext(kForeign); }},
      {"destroy foreign", 107000, [] { return aclrtDestroyContext(kForeign); }},
      {"destroy null", 100000, [] { return aclrtDestroyContext(nullptr); }},
      {"destroy default", 107002,
       [] {
         aclrtContext context = nullptr;
         aclrtGetCurrentContext(&context);
         return aclrtDestroyContext(context);
       }},
      {"option unset", 107021,
       [&] { return aclrtCtxGetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, &value); }},
      {"option unknown", 100000,
       [] { return aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(4), 0); }},
      {"option of the process", 100000,
       [] { return aclrtCtxSetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, 0); }},
      {"option value", 107000, [] { return aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 4); }},
  });
}

TEST_F(BadCallsTest, Streams) {
  aclrtStreamStatus status;
  aclrtStreamAttrValue cached = {}, unknown = {};
  cached.cacheOpInfoSwitch = 1;
  unknown.overflowSwitch = 2;
  ExpectRefused({
      {"create null", 100000, [] { return aclrtCreateStream(nullptr); }},
      {"destroy null", 100000, [] { return aclrtDestroyStream(nullptr); }},
      {"destroy foreign", 107017, [] { return aclrtDestroyStream(kForeign); }},
      {"destroy default", 107000,
       [] {
         aclrtStream default_stream = nullptr;
         aclrtCtxGetCurrentDefaultStream(&default_stream);
         return aclrtDestroyStream(default_stream);
       }},
      {"sync foreign", 107017, [] { return aclrtSynchronizeStream(kForeign); }},
      {"sync 0", 107000, [] { return aclrtSynchronizeStreamWithTimeout(nullptr, 0); }},
      {"query null", 100000, [] { return aclrtStreamQuery(nullptr, nullptr); }},
      {"query foreign", 107017, [&] { return aclrtStreamQuery(kForeign, &status); }},
      {"abort foreign", 107017, [] { return aclrtStreamAbort(kForeign); }},
      {"failure mode", 107000, [] { return aclrtSetStreamFailureMode(nullptr, 2); }},
      {"op info cache", 207000,
       [&] { return aclrtSetStreamAttribute(nullptr, ACL_STREAM_ATTR_CACHE_OP_INFO, &cached); }},
      {"overflow check", 107000,
       [&] {
         return aclrtSetStreamAttribute(nullptr, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &unknown);
       }},
      {"host function null", 107000, [] { return aclrtLaunchHostFunc(nullptr, nullptr, nullptr); }},
  });
}

TEST_F(BadCallsTest, EventsAndCallbacks) {
  aclrtEvent event = nullptr;
  aclrtEventRecordedStatus status;
  float ms = 0;
  const auto callback = [](void*) {};
  ExpectRefused({
      {"create null", 100000, [] { return aclrtCreateEvent(nullptr); }},
      {"no flags", 107000, [&] { return aclrtCreateEventWithFlag(&event, 0); }},
      {"unknown flag", 107000, [&] { return aclrtCreateEventExWithFlag(&event, 0x4); }},
      {"ipc", 207000, [&] { return aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC); }},
      {"destroy foreign", 107017, [] { return aclrtDestroyEvent(kForeign); }},
      {"record null", 100000, [] { return aclrtRecordEvent(nullptr, nullptr); }},
      {"record foreign", 107017, [] { return aclrtRecordEvent(kForeign, nullptr); }},
      {"query foreign", 107017, [&] { return aclrtQueryEventStatus(kForeign, &status); }},
      {"sync foreign", 107017, [] { return aclrtSynchronizeEvent(kForeign); }},
      {"wait foreign", 107017, [] { return aclrtStreamWaitEvent(nullptr, kForeign); }},
      {"elapsed foreign", 107017, [&] { return aclrtEventElapsedTime(&ms, kForeign, kForeign); }},
      {"launch unsubscribed", 107015,
       [&] { return aclrtLaunchCallback(callback, nullptr, ACL_CALLBACK_BLOCK, nullptr); }},
      {"launch null", 107000,
       [] { return aclrtLaunchCallback(nullptr, nullptr, ACL_CALLBACK_BLOCK, nullptr); }},
      {"process unsubscribed", 107012, [] { return aclrtProcessReport(1); }},
      {"process 0", 100000, [] { return aclrtProcessReport(0); }},
      {"unsubscribe", 107015, [] { return aclrtUnSubscribeReport(1, nullptr); }},
      {"exception null", 107000, [] { return aclrtExceptionInfoCallbackRegister(nullptr); }},
  });
}

TEST_F(BadCallsTest, Memory) {
  void* memory = nullptr;
  size_t free = 0, total = 0;
  char host[64] = {};
  void* const device = NewDeviceMemory(64);
  ExpectRefused({
      {"malloc null", 100000, [] { return aclrtMalloc(nullptr, 1, ACL_MEM_MALLOC_HUGE_FIRST); }},
      {"malloc 0", 100000, [&] { return aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST); }},
      {"malloc host 0", 100000, [&] { return aclrtMallocHost(&memory, 0); }},
      {"free null", 100000, [] { return aclrtFree(nullptr); }},
      {"free foreign", 107000, [&] { return aclrtFree(host); }},
      {"free inside", 107000, [&] { return aclrtFree(static_cast<char*>(device) + 32); }},
      {"free host foreign", 107000, [&] { return aclrtFreeHost(host); }},
      {"free host of device", 107000, [&] { return aclrtFreeHost(device); }},
      {"info attribute", 107000,
       [&] { return aclrtGetMemInfo(static_cast<aclrtMemAttr>(18), &free, &total); }},
      {"memset too long", 107000, [&] { return aclrtMemset(device, 64, 0, 65); }},
      {"memset host", 107000, [&] { return aclrtMemset(host, 64, 0, 64); }},
      {"memset beyond", 107000, [&] { return aclrtMemsetAsync(device, 128, 0, 65, nullptr); }},
      {"register unaligned", 107000, [&] { return aclrtHostRegisterV2(host + 1, 8, 2); }},
      {"register flag", 207000, [&] { return aclrtHostRegisterV2(host, 8, 0x40); }},
      {"unregister", 507911, [&] { return aclrtHostUnregister(host); }},
      {"device pointer", 507911, [&] { return aclrtHostGetDevicePointer(host, &memory, 0); }},
  });
  EXPECT_EQ(memory, nullptr);
}

TEST_F(BadCallsTest, WithoutContext) {
  const aclError reset = aclrtResetDevice(0);
  ASSERT_EQ(reset, ACL_SUCCESS);
  void* memory = nullptr;
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  aclrtContext context = nullptr;
  int32_t id = -1;
  size_t free = 0, total = 0;
  char host[8] = {};
  ExpectRefused({
      {"device", 107002, [&] { return aclrtGetDevice(&id); }},
      {"context", 107002, [&] { return aclrtGetCurrentContext(&context); }},
      {"stream", 107002, [&] { return aclrtCreateStream(&stream); }},
      {"event", 107002, [&] { return aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC); }},
      {"malloc", 107002, [&] { return aclrtMalloc(&memory, 1, ACL_MEM_MALLOC_NORMAL_ONLY); }},
      {"malloc host", 107002, [&] { return aclrtMallocHost(&memory, 1); }},
      {"memory info", 107002, [&] { return aclrtGetMemInfo(ACL_HBM_MEM, &free, &total); }},
      {"copy", 107002, [&] { return aclrtMemcpy(host, 8, host, 8, ACL_MEMCPY_HOST_TO_HOST); }},
      {"sync stream", 107002, [] { return aclrtSynchronizeStream(nullptr); }},
      {"sync device", 107002, [] { return aclrtSynchronizeDevice(); }},
      {"kernel", 107002, [] { return LaunchKernel(nullptr, {}); }},
  });
  EXPECT_FALSE(HasCurrentContext());
}

}  // namespace
}  // namespace opserve::host_cann
