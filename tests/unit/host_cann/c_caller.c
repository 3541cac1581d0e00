/* A C program on the ABI. Prints the code of aclInit, the number of devices and the message of the
 * first failure, which is how the tests look at a process with another environment. */
#include <stdio.h>

#include "acl/acl.h"
#include "ops/host_cann/opserve/host_cann.h"

static const char* Message(void) {
  const char* message = aclGetRecentErrMsg();
  return message == NULL ? "" : message;
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
  }
  /* Ends with work of the device left, and without aclFinalize. */
  return 0;
}
