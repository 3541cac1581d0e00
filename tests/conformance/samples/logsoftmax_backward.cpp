// Gradient of the logarithm of softmax over the last axis.
#include "aclnnop/aclnn_logsoftmax_backward.h"

#include "sample.h"

int main() {
  const int32_t deviceId = 0;
  aclrtStream stream = nullptr;
  auto ret = Init(deviceId, &stream);
  CHECK_RET(ret == 0, return ret);

  aclTensor* gradOutput = nullptr;
  void* gradOutputAddr = nullptr;
  aclTensor* output = nullptr;
  void* outputAddr = nullptr;
  aclTensor* out = nullptr;
  void* outAddr = nullptr;

  ret = CreateAclTensor<float>({1, 2, 3, 4, 5, 6}, {2, 3}, &gradOutputAddr, ACL_FLOAT, &gradOutput);
  CHECK_RET(ret == 0, return ret);
  ret =
      CreateAclTensor<float>({-0.5, -1, -2, 0, 0.25, -3}, {2, 3}, &outputAddr, ACL_FLOAT, &output);
  CHECK_RET(ret == 0, return ret);
  ret = CreateAclTensor<float>({0, 0, 0, 0, 0, 0}, {2, 3}, &outAddr, ACL_FLOAT, &out);
  CHECK_RET(ret == 0, return ret);

  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  ret = aclnnLogSoftmaxBackwardGetWorkspaceSize(gradOutput, output, -1, out, &workspaceSize,
                                                &executor);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("stage one failed: %d %s\n", ret, aclGetRecentErrMsg());
            return ret);
  ret = RunOperator(aclnnLogSoftmaxBackward, workspaceSize, executor, stream);
  CHECK_RET(ret == 0, return ret);
  ret = PrintResult({2, 3}, outAddr);
  CHECK_RET(ret == 0, return ret);

  aclDestroyTensor(gradOutput);
  aclDestroyTensor(output);
  aclDestroyTensor(out);
  aclrtFree(gradOutputAddr);
  aclrtFree(outputAddr);
  aclrtFree(outAddr);
  Finalize(deviceId, stream);
  return 0;
}
