/* A C program on the ABI. Prints the code of aclInit, the number of devices, the message of the
 * first failure and what the product is like, which is how the tests look at a process with another
 * environment. */
#include <stdio.h>

#include "acl/acl.h"
#include "ops/host_cann/opserve/host_cann.h"

static const char* Message(void) {
  const char* message = aclGetRecentErrMsg();
  return message == NULL ? "" : message;
}

/* Calls that older products refuse. Device 0 is set; there is a device 1. */
static void PrintNewerCalls(void* memory) {
  uint64_t word = 1;
  void* dst = memory;
  void* src = &word;
  size_t size = sizeof(word), first = 0, failed = 0;
  aclrtMemcpyBatchAttr attr = {
      {0, ACL_MEM_LOCATION_TYPE_DEVICE}, {0, ACL_MEM_LOCATION_TYPE_HOST}, {0}};
  aclrtEvent event = NULL;
  aclrtStream stream = NULL;
  aclmdlRI graph = NULL;
  printf("value=%d", aclrtValueWrite(memory, 1, 0, NULL));
  aclrtSynchronizeStream(NULL); /* the batch writes the same word, in no stream's order */
  printf(" batch=%d", aclrtMemcpyBatch(&dst, &size, &src, &size, 1, &attr, &first, 1, &failed));
  aclrtSetDevice(1);
  aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
  aclrtRecordEvent(event, NULL);
  aclrtSetDevice(0);
  printf(" other device's event=%d\n", aclrtStreamWaitEvent(NULL, event));
  aclrtMemset(memory, 64, 0, 64);
  printf("words=%d", aclrtMemsetD32(memory, 64, 0, 1));
  printf(" offset=%d", aclrtMemcpyAsyncWithOffset((void**)memory, 0, 0, (const void**)memory, 0, 0,
                                                  ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, NULL));
  printf(" description=%d", aclrtGetMemcpyDescSize(ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, &size));
  aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
  printf(" flag=%d", aclrtRecordEventWithFlag(event, NULL, ACL_EVENT_RECORD_DEFAULT));
  aclrtCreateStream(&stream);
  printf(" capture=%d\nreduced:", aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  aclmdlRICaptureEnd(stream, &graph);
  for (int type = 0; type <= 41; ++type) {
    if (aclrtReduceAsync(memory, memory, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, (aclDataType)type,
                         NULL, NULL) == ACL_SUCCESS) {
      printf(" %d", type);
    }
  }
  printf("\n");
}

/* What differs between products. Device 0 is set. */
static void PrintProduct(void) {
  int64_t arch = 0;
  uint32_t streams = 0, events = 0, first_limit_ms = 0;
  uint64_t interval_us = 0, largest_us = 0, rounded_us = 0;
  void* memory = NULL;
  printf("soc=%s\n", aclrtGetSocName());
  aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, &arch);
  aclrtGetStreamAvailableNum(&streams);
  aclrtGetEventAvailNum(&events);
  printf("arch=%d streams=%u events=%u\n", (int)arch, streams, events);
  aclrtGetOpTimeOutInterval(&interval_us);
  aclrtGetOpExecuteTimeout(&first_limit_ms);
  aclrtSetOpExecuteTimeOutV2(0, &largest_us);
  aclrtSetOpExecuteTimeOutV2(interval_us + 1, &rounded_us);
  printf("limit=%ums largest=%.0fs", first_limit_ms, (double)largest_us / 1e6);
  printf(" two intervals=%d\n", rounded_us == 2 * interval_us);
  printf("null stream=%d", aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE));
  aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  printf(" rows=%d\n", aclrtMemcpy2dAsync(memory, 8, (char*)memory + 32, 8, 4, 2,
                                          ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
  PrintNewerCalls(memory);
}

int main(void) {
  uint32_t num_devices = 0;
  size_t free_bytes = 0, total_bytes = 0;
  const aclError init = aclInit(NULL);
  printf("init=%d\n", init);
  if (init != ACL_SUCCESS) printf("message=%s\n", Message());
  const aclError count = aclrtGetDeviceCount(&num_devices);
  printf("count=%d devices=%u\n", count, num_devices);
  if (init == ACL_SUCCESS && count != ACL_SUCCESS) printf("message=%s\n", Message());
  const aclError set = aclrtSetDevice(0);
  printf("set=%d\n", set);
  if (set == ACL_SUCCESS) {
    int32_t physical = -1;
    void* memory = NULL;
    aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total_bytes);
    aclrtGetPhyDevIdByUserDevId(0, &physical);
    printf("total=%zu physical=%d\n", total_bytes, physical);
    printf("malloc=%d\n", aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    PrintProduct();
  }
  ACL_APP_LOG(ACL_INFO, "devices: %u", num_devices);
  ACL_APP_LOG(ACL_ERROR, "%s", "an error");
  /* Ends with work of the device left, and without aclFinalize. */
  return 0;
}
