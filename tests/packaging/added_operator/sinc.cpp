// Calls the added operator as a program written for CANN does.
#include "aclnnop/aclnn_sinc.h"

#include "sample.h"

int main() {
  aclrtStream stream = nullptr;
  CHECK_RET(Init(0, &stream) == 0, return 1);
  aclTensor* self = nullptr;
  aclTensor* out = nullptr;
  void* selfAddr = nullptr;
  void* outAddr = nullptr;
  CHECK_RET(CreateAclTensor<float>({0, 0.5, 1.5}, {3}, &selfAddr, ACL_FLOAT, &self) == 0, return 1);
  CHECK_RET(CreateAclTensor<float>({7, 7, 7}, {3}, &outAddr, ACL_FLOAT, &out) == 0, return 1);
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_RET(aclnnSincGetWorkspaceSize(self, out, &workspaceSize, &executor) == ACL_SUCCESS,
            LOG_PRINT("stage one failed: %s\n", aclGetRecentErrMsg());
            return 1);
  CHECK_RET(RunOperator(aclnnSinc, workspaceSize, executor, stream) == 0, return 1);
  CHECK_RET(PrintResult({3}, outAddr) == 0, return 1);
  aclDestroyTensor(self);
  aclDestroyTensor(out);
  aclrtFree(selfAddr);
  aclrtFree(outAddr);
  Finalize(0, stream);
  return 0;
}
