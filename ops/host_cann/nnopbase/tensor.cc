#include "ops/host_cann/nnopbase/tensor.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/host_cann/nnopbase/live_handles.h"
#include "ops/host_cann/nnopbase/status.h"

namespace opserve::host_cann {
namespace {

// Copies `count` numbers that must not be negative. `argument` is their name in messages.
aclnnStatus CopyDims(const char* function, const char* argument, const int64_t* values,
                     uint64_t count, Shape* dims) {
  // Before anything is copied: the count comes from the program.
  if (count > kMaxDescriptorRank) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument ", argument, ": ", count, " axes are more than ",
                             kMaxDescriptorRank));
  }
  if (values == nullptr && count > 0) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR,
                absl::StrCat(function, ": argument ", argument, " is null"));
  }
  // An empty range if the count is 0, whatever `values` is.
  dims->assign(values, values + count);
  for (uint64_t axis = 0; axis < count; ++axis) {
    if (values[axis] < 0) {
      return Fail(ACLNN_ERR_PARAM_INVALID,
                  absl::StrCat(function, ": argument ", argument, ": ", values[axis], " at axis ",
                               axis, " is negative"));
    }
  }
  return ACLNN_SUCCESS;
}

Shape ContiguousStrides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    // Of an empty tensor no element is addressed: any stride will do, if it only fits.
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

// Whether the last element of the view has an index of at most kMaxElements.
bool LastElementFits(const aclTensor& tensor) {
  // Bounded first, so that the sums below start from a number that cannot overflow at once.
  if (tensor.offset > kMaxElements) return false;
  int64_t last = tensor.offset;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    int64_t distance = 0;
    // No element, no address.
    if (tensor.shape[axis] == 0) return true;
    if (__builtin_mul_overflow(tensor.shape[axis] - 1, tensor.strides[axis], &distance) ||
        __builtin_add_overflow(last, distance, &last) || last > kMaxElements) {
      return false;
    }
  }
  // Each step is bounded, so all sums of later code fit too.
  return true;
}

aclnnStatus DescribeTensor(const char* function, const int64_t* view_dims, uint64_t view_dims_num,
                           aclDataType dtype, const int64_t* strides, int64_t offset,
                           aclFormat format, const int64_t* storage_dims, uint64_t storage_dims_num,
                           void* data, aclTensor* tensor) {
  aclnnStatus status = CopyDims(function, "viewDims", view_dims, view_dims_num, &tensor->shape);
  if (status != ACLNN_SUCCESS) return status;
  status =
      CopyDims(function, "storageDims", storage_dims, storage_dims_num, &tensor->storage_shape);
  if (status != ACLNN_SUCCESS) return status;
  // Contiguous strides must fit even if an axis is empty: count it as 1 here.
  Shape extents = tensor->shape;
  std::replace(extents.begin(), extents.end(), int64_t{0}, int64_t{1});
  if (NumElements(extents) < 0) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument viewDims: too many elements"));
  }
  // The storage's shape is kept for aclGetStorageShape only, and not compared with the view.
  if (NumElements(tensor->storage_shape) < 0) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument storageDims: too many elements"));
  }
  // By the vendor's implementation, null stands for contiguous strides.
  if (strides == nullptr) {
    tensor->strides = ContiguousStrides(tensor->shape);
  } else {
    status = CopyDims(function, "stride", strides, view_dims_num, &tensor->strides);
    if (status != ACLNN_SUCCESS) return status;
  }
  if (offset < 0) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": argument offset: ", offset, " is negative"));
  }
  tensor->offset = offset;
  if (!LastElementFits(*tensor)) {
    return Fail(ACLNN_ERR_PARAM_INVALID,
                absl::StrCat(function, ": offset and strides lead out of the address range"));
  }
  tensor->dtype = dtype;
  tensor->format = format;
  tensor->data = data;
  return ACLNN_SUCCESS;
}

}  // namespace

int64_t NumElements(absl::Span<const int64_t> shape) {
  // First: with an empty axis the others may be of any size.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count) || count > kMaxElements) return -1;
  }
  return count;
}

std::shared_ptr<const aclTensor> FindTensor(const aclTensor* handle) { return FindHandle(handle); }

}  // namespace opserve::host_cann

bool aclTensor::empty() const { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

int64_t aclTensor::extent() const {
  if (empty()) return 0;
  int64_t last = 0;
  // Cannot overflow: LastElementFits has bounded every partial sum.
  for (size_t axis = 0; axis < shape.size(); ++axis) last += (shape[axis] - 1) * strides[axis];
  return last + 1;
}

using opserve::host_cann::AddHandle;
using opserve::host_cann::DescribeTensor;
using opserve::host_cann::EnterCall;
using opserve::host_cann::Fail;
using opserve::host_cann::FindHandle;
using opserve::host_cann::RemoveHandle;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  if (EnterCall(__func__) != ACLNN_SUCCESS) return nullptr;
  auto tensor = std::make_unique<aclTensor>();
  if (DescribeTensor(__func__, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                     storageDimsNum, tensorData, tensor.get()) != ACLNN_SUCCESS) {
    return nullptr;
  }
  return AddHandle(std::move(tensor));
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr) {
  if (const aclnnStatus injected = EnterCall(__func__); injected != ACLNN_SUCCESS) return injected;
  if (tensor == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, "aclInitTensor: argument tensor is null");
  }
  const std::shared_ptr<aclTensor> live = FindHandle(tensor);
  if (live == nullptr) {
    return Fail(ACLNN_ERR_PARAM_INVALID, "aclInitTensor: argument tensor is not alive");
  }
  aclTensor described;
  // A null address keeps the old one, by the vendor's implementation.
  const aclnnStatus status = DescribeTensor(
      __func__, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
      storageDimsNum, tensorDataAddr == nullptr ? live->data : tensorDataAddr, &described);
  if (status != ACLNN_SUCCESS) return status;
  // Changed as a whole, after all checks: a refused call leaves the tensor as it was.
  *live = std::move(described);
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  if (const aclnnStatus injected = EnterCall(__func__); injected != ACLNN_SUCCESS) return injected;
  if (tensor == nullptr) return ACLNN_SUCCESS;
  if (RemoveHandle(tensor)) return ACLNN_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, "aclDestroyTensor: argument tensor is not alive");
}
