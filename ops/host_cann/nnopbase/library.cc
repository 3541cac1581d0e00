// Starting and ending the use of the operator libraries, and the tensor dump.
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/host_cann/nnopbase/status.h"
#include "ops/host_cann/nnopbase/tensor.h"

using opserve::host_cann::EnterCall;
using opserve::host_cann::Fail;

aclnnStatus aclnnInit(const char* configPath) {
  if (const aclnnStatus injected = EnterCall(__func__); injected != ACLNN_SUCCESS) return injected;
  // A configuration has nothing to say to the host CANN, but a wrong path is the caller's mistake.
  if (configPath != nullptr && !std::ifstream(configPath)) {
    return Fail(ACLNN_ERR_PARAM_INVALID, "aclnnInit: argument configPath: the file cannot be read");
  }
  return ACLNN_SUCCESS;
}

// Nothing is held: descriptors and executors end with their own calls.
aclnnStatus aclnnFinalize() { return EnterCall(__func__); }

aclnnStatus aclDumpOpTensors(const char* opType, const char* opName, aclTensor** tensors,
                             size_t inputNum, size_t outputNum, aclrtStream) {
  if (const aclnnStatus injected = EnterCall(__func__); injected != ACLNN_SUCCESS) return injected;
  if (opType == nullptr || opName == nullptr || tensors == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, "aclDumpOpTensors: an argument is null");
  }
  // Built whole, so that nothing is printed if a tensor is missing. Contents stay on the device and
  // are left out.
  std::string dump;
  for (size_t i = 0; i < inputNum + outputNum; ++i) {
    const std::shared_ptr<const aclTensor> tensor = opserve::host_cann::FindTensor(tensors[i]);
    if (tensor == nullptr) {
      return Fail(ACLNN_ERR_PARAM_INVALID, "aclDumpOpTensors: a tensor is null or not alive");
    }
    absl::StrAppend(&dump, opType, " ", opName, i < inputNum ? " input " : " output ",
                    i < inputNum ? i : i - inputNum, ": dtype ", tensor->dtype, ", format ",
                    tensor->format, ", shape [", absl::StrJoin(tensor->shape, ","), "], strides [",
                    absl::StrJoin(tensor->strides, ","), "]\n");
  }
  std::fputs(dump.c_str(), stdout);
  return ACLNN_SUCCESS;
}
