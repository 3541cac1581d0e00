// An operator library of one file: out = self + weight * other.
//
// An operator is two functions. Stage one gets the arguments in the order of the pack's text
// (weighted_sum.textproto), checks them, and gives an executor with the size of its workspace;
// stage two queues the work on a stream. A library for NPUs makes its executor with the toolkit's
// opdev/op_executor.h and kernels of its own; this one takes that of an operator that CANN has, so
// it runs on NPUs and on the host CANN alike.
#include <aclnnop/aclnn_add.h>

extern "C" {

ACL_FUNC_VISIBILITY aclnnStatus aclnnWeightedSumGetWorkspaceSize(const aclTensor* self,
                                                                 const aclTensor* other,
                                                                 double weight, aclTensor* out,
                                                                 uint64_t* workspaceSize,
                                                                 aclOpExecutor** executor) {
  aclScalar* alpha = aclCreateScalar(&weight, ACL_DOUBLE);
  const aclnnStatus status =
      aclnnAddGetWorkspaceSize(self, other, alpha, out, workspaceSize, executor);
  aclDestroyScalar(alpha);  // stage one has read it
  return status;
}

ACL_FUNC_VISIBILITY aclnnStatus aclnnWeightedSum(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream) {
  return aclnnAdd(workspace, workspaceSize, executor, stream);
}

}  // extern "C"
