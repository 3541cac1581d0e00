// Reading tensors, and their addresses.
#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/host_cann/nnopbase/live_handles.h"
#include "ops/host_cann/nnopbase/status.h"
#include "ops/host_cann/nnopbase/tensor.h"

namespace opserve::host_cann {
namespace {

// The tensor behind `handle`; null with `*status` set if the call cannot go on.
std::shared_ptr<aclTensor> Enter(const char* function, const aclTensor* handle, bool results_given,
                                 aclnnStatus* status) {
  *status = EnterCall(function);
  if (*status != ACLNN_SUCCESS) return nullptr;
  if (handle == nullptr || !results_given) {
    *status = Fail(ACLNN_ERR_PARAM_NULLPTR, absl::StrCat(function, ": an argument is null"));
    return nullptr;
  }
  std::shared_ptr<aclTensor> tensor = FindHandle(handle);
  if (tensor == nullptr) {
    *status = Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": the tensor is not alive"));
  }
  return tensor;
}

aclnnStatus CopyOut(const char* function, const aclTensor* handle, Shape aclTensor::*member,
                    int64_t** values, uint64_t* count) {
  aclnnStatus status;
  const auto tensor = Enter(function, handle, values != nullptr && count != nullptr, &status);
  if (tensor == nullptr) return status;
  const Shape& dims = (*tensor).*member;
  // The caller frees it with delete[], by the vendor's document. An empty shape gives an array of
  // no elements, not null.
  *values = new int64_t[dims.size()];
  std::copy(dims.begin(), dims.end(), *values);
  *count = dims.size();
  return ACLNN_SUCCESS;
}

template <typename Value>
aclnnStatus CopyOut(const char* function, const aclTensor* handle, Value aclTensor::*member,
                    Value* value) {
  aclnnStatus status;
  const auto tensor = Enter(function, handle, value != nullptr, &status);
  if (tensor == nullptr) return status;
  *value = (*tensor).*member;
  return ACLNN_SUCCESS;
}

}  // namespace
}  // namespace opserve::host_cann

using opserve::host_cann::CopyOut;
using opserve::host_cann::Enter;

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return CopyOut(__func__, tensor, &aclTensor::shape, viewDims, viewDimsNum);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
  return CopyOut(__func__, tensor, &aclTensor::storage_shape, storageDims, storageDimsNum);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
  return CopyOut(__func__, tensor, &aclTensor::strides, stridesValue, stridesNum);
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return CopyOut(__func__, tensor, &aclTensor::offset, offset);
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return CopyOut(__func__, tensor, &aclTensor::format, format);
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return CopyOut(__func__, tensor, &aclTensor::dtype, dataType);
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return CopyOut(__func__, tensor, &aclTensor::data, addr);
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  aclnnStatus status;
  const auto live = Enter(__func__, tensor, /*results_given=*/true, &status);
  if (live == nullptr) return status;
  // Executors that were planned with the tensor keep their copy of the address.
  live->data = addr;
  return ACLNN_SUCCESS;
}
