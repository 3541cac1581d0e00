// The object of an aclTensor.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "aclnn/acl_meta.h"

namespace opserve::host_cann {

using Shape = absl::InlinedVector<int64_t, 8>;

// Descriptors have at most this many axes; operators set lower limits.
inline constexpr uint64_t kMaxDescriptorRank = 25;

// Limit on the elements of a tensor and on the distance of any two of them: byte counts then fit
// into int64_t for every dtype.
inline constexpr int64_t kMaxElements = INT64_MAX / 16;

// The product of `shape`, or -1 where it exceeds kMaxElements. An extent of 0 makes it 0.
__attribute__((visibility("default"))) int64_t NumElements(absl::Span<const int64_t> shape);

}  // namespace opserve::host_cann

// A view of device memory, as aclCreateTensor documents its arguments. Invariants: extents, strides
// and offset are not negative; the number of elements, and the index of the last one from `data`,
// are at most kMaxElements.
struct aclTensor {
  opserve::host_cann::Shape shape;
  opserve::host_cann::Shape strides;  // elements
  int64_t offset = 0;                 // elements
  opserve::host_cann::Shape storage_shape;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  void* data = nullptr;

  __attribute__((visibility("default"))) bool empty() const;
  // Elements from the view's first to past its last; 0 if it is empty.
  int64_t extent() const;
};

namespace opserve::host_cann {

// The tensor behind a handle, null if it is not alive. Holding the result keeps the tensor.
// Thread-safe.
__attribute__((visibility("default"))) std::shared_ptr<const aclTensor> FindTensor(
    const aclTensor* handle);

}  // namespace opserve::host_cann
