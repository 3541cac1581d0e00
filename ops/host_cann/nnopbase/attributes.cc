#include "ops/host_cann/nnopbase/attributes.h"

#include <Eigen/Core>
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/host_cann/nnopbase/live_handles.h"
#include "ops/host_cann/nnopbase/status.h"
#include "ops/host_cann/nnopbase/tensor.h"

struct aclScalar {
  // Bytes and type as given; the value is read by the type in ReadScalar.
  unsigned char bytes[16] = {};  // the widest element, COMPLEX128
  aclDataType dtype = ACL_DT_UNDEFINED;
};
struct aclIntArray {
  std::vector<int64_t> values;
};
struct aclFloatArray {
  std::vector<float> values;
};
struct aclBoolArray {
  std::vector<bool> values;
};
// Handles, not objects: an element that is destroyed first is found dead, not followed.
struct aclTensorList {
  std::vector<const aclTensor*> values;
};
struct aclScalarList {
  std::vector<const aclScalar*> values;
};

namespace opserve::host_cann {
namespace {

// Arrays hold attributes such as axes and sizes, never data.
constexpr uint64_t kMaxArraySize = 1 << 20;

template <typename Array, typename Value>
Array* CreateArray(const char* function, const Value* values, uint64_t size) {
  if (EnterCall(function) != ACLNN_SUCCESS) return nullptr;
  // Null with size 0 is an empty array.
  if (values == nullptr && size > 0) {
    Fail(ACLNN_ERR_PARAM_NULLPTR, absl::StrCat(function, ": argument value is null"));
    return nullptr;
  }
  // Checked before memory is taken: sizes come from programs.
  if (size > kMaxArraySize) {
    Fail(ACLNN_ERR_PARAM_INVALID,
         absl::StrCat(function, ": argument size: ", size, " is more than ", kMaxArraySize));
    return nullptr;
  }
  auto array = std::make_unique<Array>();
  array->values.assign(values, values + size);
  return AddHandle(std::move(array));
}

template <typename List, typename Element>
List* CreateList(const char* function, const Element* const* values, uint64_t size) {
  List* list = CreateArray<List>(function, values, size);
  if (list == nullptr) return nullptr;
  const std::shared_ptr<const List> created = FindHandle(list);
  for (const Element* element : created->values) {
    // Null elements are allowed here: stage one refuses them with a code of its own where the
    // operator needs the tensor.
    if (element == nullptr || FindHandle(element) != nullptr) continue;
    // The list alone goes; its elements stay the caller's, as the creation has failed.
    RemoveHandle(list);
    Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": an element is not alive"));
    return nullptr;
  }
  return list;
}

template <typename T>
aclnnStatus Destroy(const char* function, const T* handle) {
  if (const aclnnStatus injected = EnterCall(function); injected != ACLNN_SUCCESS) return injected;
  // Null is no error, by the vendor's document.
  if (handle == nullptr || RemoveHandle(handle)) return ACLNN_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": the handle is not alive"));
}

template <typename List>
aclnnStatus DestroyList(const char* function, const List* handle) {
  // Held before the handle goes, to find the elements afterwards.
  const std::shared_ptr<List> list = FindHandle(handle);
  const aclnnStatus status = Destroy(function, handle);
  if (status != ACLNN_SUCCESS || list == nullptr) return status;
  // A list owns its elements, by the vendor's document. Elements that the caller has destroyed
  // already are skipped.
  for (const auto* element : list->values) {
    if (element != nullptr) RemoveHandle(element);
  }
  return ACLNN_SUCCESS;
}

template <typename Array>
aclnnStatus GetSize(const char* function, const Array* handle, uint64_t* size) {
  if (const aclnnStatus injected = EnterCall(function); injected != ACLNN_SUCCESS) return injected;
  if (handle == nullptr || size == nullptr) {
    return Fail(ACLNN_ERR_PARAM_NULLPTR, absl::StrCat(function, ": an argument is null"));
  }
  const std::shared_ptr<Array> array = FindHandle(handle);
  if (array == nullptr) {
    return Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": the handle is not alive"));
  }
  *size = array->values.size();
  return ACLNN_SUCCESS;
}

// The value of a scalar's bytes. By memcpy: they have no alignment.
template <typename T>
T Load(const aclScalar& scalar) {
  T value;
  std::memcpy(&value, scalar.bytes, sizeof(value));
  return value;
}

template <typename List>
bool HasNull(const List* handle) {
  const std::shared_ptr<List> list = FindHandle(handle);
  return list != nullptr &&
         std::find(list->values.begin(), list->values.end(), nullptr) != list->values.end();
}

// False: the handle is not alive.
template <typename Array, typename T>
bool ReadArray(const Array* handle, std::vector<T>* values) {
  const std::shared_ptr<Array> array = FindHandle(handle);
  if (array == nullptr) return false;
  values->assign(array->values.begin(), array->values.end());
  return true;
}

}  // namespace

bool ReadScalar(const aclScalar* handle, catalog::Scalar* scalar) {
  const std::shared_ptr<aclScalar> live = FindHandle(handle);
  if (live == nullptr) return false;
  scalar->dtype = live->dtype;
  switch (live->dtype) {
    case ACL_FLOAT:
      scalar->value = double{Load<float>(*live)};
      return true;
    case ACL_FLOAT16:
      scalar->value = double{static_cast<float>(Load<Eigen::half>(*live))};
      return true;
    case ACL_BF16:
      scalar->value = double{static_cast<float>(Load<Eigen::bfloat16>(*live))};
      return true;
    case ACL_DOUBLE:
      scalar->value = Load<double>(*live);
      return true;
    case ACL_INT8:
      scalar->value = int64_t{Load<int8_t>(*live)};
      return true;
    case ACL_UINT8:
      scalar->value = int64_t{Load<uint8_t>(*live)};
      return true;
    case ACL_INT16:
      scalar->value = int64_t{Load<int16_t>(*live)};
      return true;
    case ACL_INT32:
      scalar->value = int64_t{Load<int32_t>(*live)};
      return true;
    case ACL_INT64:
      scalar->value = Load<int64_t>(*live);
      return true;
    case ACL_BOOL:
      // Any bit pattern but 0 is true; reading such a byte as bool would be undefined.
      scalar->value = int64_t{Load<uint8_t>(*live) != 0};
      return true;
    // Types that no operator takes as a number. The handle is alive, the scalar of no use.
    default:
      return false;
  }
}

bool ReadIntArray(const aclIntArray* handle, std::vector<int64_t>* values) {
  return ReadArray(handle, values);
}

bool ReadBoolArray(const aclBoolArray* handle, std::vector<bool>* values) {
  return ReadArray(handle, values);
}

bool ReadFloatArray(const aclFloatArray* handle, std::vector<double>* values) {
  return ReadArray(handle, values);
}

bool ReadScalarList(const aclScalarList* handle, std::vector<double>* values) {
  const std::shared_ptr<aclScalarList> list = FindHandle(handle);
  if (list == nullptr) return false;
  for (const aclScalar* element : list->values) {
    catalog::Scalar scalar;
    if (!ReadScalar(element, &scalar)) return false;
    values->push_back(scalar.AsDouble());
  }
  return true;
}

bool ReadTensorList(const aclTensorList* handle, TensorGroup* tensors) {
  const std::shared_ptr<aclTensorList> list = FindHandle(handle);
  if (list == nullptr) return false;
  for (const aclTensor* element : list->values) {
    tensors->push_back(FindTensor(element));
    if (tensors->back() == nullptr) return false;
  }
  return true;
}

std::shared_ptr<aclTensor> FindListTensor(const aclTensorList* handle, size_t index) {
  const std::shared_ptr<aclTensorList> list = FindHandle(handle);
  if (list == nullptr || index >= list->values.size()) return nullptr;
  return FindHandle(list->values[index]);
}

bool HasNullElement(const aclTensorList* handle) { return HasNull(handle); }
bool HasNullElement(const aclScalarList* handle) { return HasNull(handle); }

}  // namespace opserve::host_cann

using opserve::host_cann::AddHandle;
using opserve::host_cann::CreateArray;
using opserve::host_cann::CreateList;
using opserve::host_cann::Destroy;
using opserve::host_cann::DestroyList;
using opserve::host_cann::EnterCall;
using opserve::host_cann::Fail;
using opserve::host_cann::GetSize;

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  if (EnterCall(__func__) != ACLNN_SUCCESS) return nullptr;
  if (value == nullptr) {
    Fail(ACLNN_ERR_PARAM_NULLPTR, "aclCreateScalar: argument value is null");
    return nullptr;
  }
  auto scalar = std::make_unique<aclScalar>();
  // At most 16 bytes for any type, the size of `bytes`. A type without size copies nothing.
  std::memcpy(scalar->bytes, value, aclDataTypeSize(dataType));
  scalar->dtype = dataType;
  return AddHandle(std::move(scalar));
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return CreateArray<aclIntArray>(__func__, value, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return CreateArray<aclFloatArray>(__func__, value, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return CreateArray<aclBoolArray>(__func__, value, size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return CreateList<aclTensorList>(__func__, value, size);
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return CreateList<aclScalarList>(__func__, value, size);
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) { return Destroy(__func__, scalar); }

aclnnStatus aclDestroyIntArray(const aclIntArray* array) { return Destroy(__func__, array); }

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) { return Destroy(__func__, array); }

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) { return Destroy(__func__, array); }

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return DestroyList(__func__, array);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return DestroyList(__func__, array);
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return GetSize(__func__, array, size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return GetSize(__func__, array, size);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return GetSize(__func__, array, size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return GetSize(__func__, tensorList, size);
}

aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return GetSize(__func__, scalarList, size);
}
