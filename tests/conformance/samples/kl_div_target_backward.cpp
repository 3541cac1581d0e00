// Gradient of the KL divergence with respect to the target: sum, plain target.
#include "aclnnop/aclnn_kl_div_target_backward.h"

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
  aclTensor* gradTarget = nullptr;
  void* gradTargetAddr = nullptr;

  ret = CreateAclTensor<float>({1, 2, 3, 4}, {2, 2}, &gradOutputAddr, ACL_FLOAT, &gradOutput);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({0.5, -1, 2, 0}, {2, 2}, &selfAddr, ACL_FLOAT, &self);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({0.5, 0.25, 0, 2}, {2, 2}, &targetAddr, ACL_FLOAT, &target);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({0, 0, 0, 0}, {2, 2}, &gradTargetAddr, ACL_FLOAT, &gradTarget);
  CHECK_RET(ret == 0, return ret);

  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  ret = aclnnKlDivTargetBackwardGetWorkspaceSize(gradOutput, self, target, 2, false, gradTarget,
                                                 &workspaceSize, &executor);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("stage one failed: %d %s\n", ret, aclGetRecentErrMsg());
            return ret);
  ret = RunOperator(aclnnKlDivTargetBackward, workspaceSize, executor, stream);
  CHECK_RET(ret == 0, return ret);
  ret = PrintResult({2, 2}, gradTargetAddr);
  CHECK_RET(ret == 0, return ret);

  aclDestroyTensor(gradOutput);
  aclDestroyTensor(self);
  aclDestroyTensor(target);
  aclDestroyTensor(gradTarget);
  aclrtFree(gradOutputAddr);
  aclrtFree(selfAddr);
  aclrtFree(targetAddr);
  aclrtFree(gradTargetAddr);
  Finalize(deviceId, stream);
  return 0;
}
