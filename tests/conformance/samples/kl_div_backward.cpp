// Gradient of the KL divergence: mean, plain target.
#include "aclnnop/aclnn_kl_div_backward.h"

#include "sample.h"

int main() {
  const int32_t deviceId = 0;
  aclrtStream stream = nullptr;
  auto ret = Init(deviceId, &stream);
  CHECK_RET(ret == 0, return ret);

  aclTensor* gradOutput = nullptr;
  void* gradOutputAddr = nullptr;
  aclTensor* self = nullptr;
  void* selfAddr = nullptr;
  aclTensor* target = nullptr;
  void* targetAddr = nullptr;
  aclTensor* out = nullptr;
  void* outAddr = nullptr;

  ret = CreateAclTensor<float>({1, 2, 3, 4, 5, 6}, {2, 3}, &gradOutputAddr, ACL_FLOAT, &gradOutput);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({9, 8, 7, 6, 5, 4}, {2, 3}, &selfAddr, ACL_FLOAT, &self);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({0.5, 0.25, 1, 0, -2, 3}, {2, 3}, &targetAddr, ACL_FLOAT, &target);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({0, 0, 0, 0, 0, 0}, {2, 3}, &outAddr, ACL_FLOAT, &out);
  CHECK_RET(ret == 0, return ret);

  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  ret = aclnnKlDivBackwardGetWorkspaceSize(gradOutput, self, target, 1, false, out, &workspaceSize,
                                           &executor);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("stage one failed: %d %s\n", ret, aclGetRecentErrMsg());
            return ret);
  ret = RunOperator(aclnnKlDivBackward, workspaceSize, executor, stream);
  CHECK_RET(ret == 0, return ret);
  ret = PrintResult({2, 3}, outAddr);
  CHECK_RET(ret == 0, return ret);

  aclDestroyTensor(gradOutput);
  aclDestroyTensor(self);
  aclDestroyTensor(target);
  aclDestroyTensor(out);
  aclrtFree(gradOutputAddr);
  aclrtFree(selfAddr);
  aclrtFree(targetAddr);
  aclrtFree(outAddr);
  Finalize(deviceId, stream);
  return 0;
}
