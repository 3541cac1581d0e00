#include "ops/host_cann/opapi/plan.h"

#include <algorithm>

namespace opserve::host_cann {
namespace {

constexpr int64_t kMean = 1;
constexpr int64_t kBatchMean = 3;

kernels::Dtype KernelDtype(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT16:
      return kernels::Dtype::kFloat16;
    case ACL_BF16:
      return kernels::Dtype::kBfloat16;
    case ACL_DOUBLE:
      return kernels::Dtype::kDouble;
    default:
      return kernels::Dtype::kFloat;
  }
}

}  // namespace

kernels::Layout MakeLayout(const aclTensor& tensor) {
  kernels::Layout layout;
  layout.dtype = KernelDtype(tensor.dtype);
  layout.rank = static_cast<int>(tensor.shape.size());
  std::copy(tensor.shape.begin(), tensor.shape.end(), layout.shape.begin());
  std::copy(tensor.strides.begin(), tensor.strides.end(), layout.strides.begin());
  return layout;
}

double ReductionDivisor(int64_t reduction, const Shape& shape) {
  int64_t divisor = 1;
  if (reduction == kMean) divisor = NumElements(shape);
  if (reduction == kBatchMean && !shape.empty()) divisor = shape.front();
  return static_cast<double>(std::max<int64_t>(divisor, 1));
}

}  // namespace opserve::host_cann
