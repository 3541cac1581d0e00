// Gradient of the mean absolute error: mean, one gradient for all.
#include "aclnnop/aclnn_l1_loss_backward.h"

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
  aclTensor* gradInput = nullptr;
  void* gradInputAddr = nullptr;

  ret = CreateAclTensor<float>({3}, {1}, &gradOutputAddr, ACL_FLOAT, &gradOutput);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({1, 2, 3, 4}, {2, 2}, &selfAddr, ACL_FLOAT, &self);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({2, 2, 1, -4}, {2, 2}, &targetAddr, ACL_FLOAT, &target);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({0, 0, 0, 0}, {2, 2}, &gradInputAddr, ACL_FLOAT, &gradInput);
  CHECK_RET(ret == 0, return ret);

  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  ret = aclnnL1LossBackwardGetWorkspaceSize(gradOutput, self, target, 1, gradInput, &workspaceSize,
                                            &executor);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("stage one failed: %d %s\n", ret, aclGetRecentErrMsg());
            return ret);
  ret = RunOperator(aclnnL1LossBackward, workspaceSize, executor, stream);
  CHECK_RET(ret == 0, return ret);
  ret = PrintResult({2, 2}, gradInputAddr);
  CHECK_RET(ret == 0, return ret);

  aclDestroyTensor(gradOutput);
  aclDestroyTensor(self);
  aclDestroyTensor(target);
  aclDestroyTensor(gradInput);
  aclrtFree(gradOutputAddr);
  aclrtFree(selfAddr);
  aclrtFree(targetAddr);
  aclrtFree(gradInputAddr);
  Finalize(deviceId, stream);
  return 0;
}
