/* A program that knows the ABI only as C does: it links with every function, and runs one call of
 * an operator through prototypes of its own, because the headers of aclnn are C++. */
#include <stdio.h>

#include "acl/acl.h"

typedef void (*Function)(void);
extern Function const kAclFunctions[]; /* generated, as is the next; a null pointer ends them */
extern Function const kAclnnFunctions[];

extern void* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                             const int64_t* stride, int64_t offset, aclFormat format,
                             const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData);
extern int32_t aclDestroyTensor(const void* tensor);
extern int32_t aclnnL1LossBackwardGetWorkspaceSize(const void* gradOutput, const void* self,
                                                   const void* target, int64_t reduction,
                                                   void* gradInput, uint64_t* workspaceSize,
                                                   void** executor);
extern int32_t aclnnL1LossBackward(void* workspace, uint64_t workspaceSize, void* executor,
                                   aclrtStream stream);

enum { kElements = 3, kTensors = 4 };

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) {                                             \
      const char* why = aclGetRecentErrMsg();                       \
      fprintf(stderr, "%s: %s\n", #condition, why == 0 ? "" : why); \
      return 1;                                                     \
    }                                                               \
  } while (0)

static int Count(Function const* functions) {
  int count = 0;
  while (functions[count] != 0) ++count;
  return count;
}

int main(void) {
  /* The gradient 5 where self is above the target, -5 below, 0 where they are equal. */
  const float inputs[kTensors][kElements] = {{5, 5, 5}, {1, 2, 3}, {2, 2, 2}, {9, 9, 9}};
  const float expected[kElements] = {-5, 0, 5};
  const int64_t shape[1] = {kElements};
  const int64_t strides[1] = {1};
  void *memory[kTensors], *tensors[kTensors], *workspace = 0, *executor = 0;
  uint64_t workspace_bytes = 0;
  aclrtStream stream = 0;
  float result[kElements];

  printf("acl=%d aclnn=%d\n", Count(kAclFunctions), Count(kAclnnFunctions));
  CHECK(aclInit(0) == ACL_SUCCESS);
  CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
  CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
  for (int i = 0; i < kTensors; ++i) {
    CHECK(aclrtMalloc(&memory[i], sizeof(inputs[i]), ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
    CHECK(aclrtMemcpy(memory[i], sizeof(inputs[i]), inputs[i], sizeof(inputs[i]),
                      ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
    tensors[i] =
        aclCreateTensor(shape, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 1, memory[i]);
    CHECK(tensors[i] != 0);
  }
  CHECK(aclnnL1LossBackwardGetWorkspaceSize(tensors[0], tensors[1], tensors[2], 0, tensors[3],
                                            &workspace_bytes, &executor) == 0);
  if (workspace_bytes > 0) {
    CHECK(aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  }
  CHECK(aclnnL1LossBackward(workspace, workspace_bytes, executor, stream) == 0);
  CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
  CHECK(aclrtMemcpy(result, sizeof(result), memory[3], sizeof(result), ACL_MEMCPY_DEVICE_TO_HOST) ==
        ACL_SUCCESS);
  for (int i = 0; i < kElements; ++i) CHECK(result[i] == expected[i]);

  for (int i = 0; i < kTensors; ++i) {
    CHECK(aclDestroyTensor(tensors[i]) == 0);
    CHECK(aclrtFree(memory[i]) == ACL_SUCCESS);
  }
  if (workspace != 0) CHECK(aclrtFree(workspace) == ACL_SUCCESS);
  CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
  CHECK(aclrtResetDevice(0) == ACL_SUCCESS);
  CHECK(aclFinalize() == ACL_SUCCESS);
  return 0;
}
