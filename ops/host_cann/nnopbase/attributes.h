// Reads the values of scalars, arrays and lists, for stage one. Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "aclnn/acl_meta.h"
#include "ops/catalog/value.h"
#include "ops/host_cann/nnopbase/tensor.h"

namespace opserve::host_cann {

// The tensors of a parameter: one, or those of a list, or none. Holding them keeps them.
using TensorGroup = absl::InlinedVector<std::shared_ptr<const aclTensor>, 1>;

// Each appends to its result, which is empty, and is false if the handle, or one in its list, is
// not alive or null, or a scalar is of a dtype that no operator takes.
__attribute__((visibility("default"))) bool ReadScalar(const aclScalar* handle,
                                                       catalog::Scalar* scalar);
__attribute__((visibility("default"))) bool ReadIntArray(const aclIntArray* handle,
                                                         std::vector<int64_t>* values);
__attribute__((visibility("default"))) bool ReadBoolArray(const aclBoolArray* handle,
                                                          std::vector<bool>* values);
__attribute__((visibility("default"))) bool ReadFloatArray(const aclFloatArray* handle,
                                                           std::vector<double>* values);
__attribute__((visibility("default"))) bool ReadScalarList(const aclScalarList* handle,
                                                           std::vector<double>* values);
__attribute__((visibility("default"))) bool ReadTensorList(const aclTensorList* handle,
                                                           TensorGroup* tensors);

// The tensor at `index` of a list. Null: the list is not alive, or has no live tensor there.
std::shared_ptr<aclTensor> FindListTensor(const aclTensorList* handle, size_t index);

// Whether a live list has a null element.
__attribute__((visibility("default"))) bool HasNullElement(const aclTensorList* handle);
__attribute__((visibility("default"))) bool HasNullElement(const aclScalarList* handle);

}  // namespace opserve::host_cann
