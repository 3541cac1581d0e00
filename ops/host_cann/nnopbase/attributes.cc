// Scalars, arrays and lists.
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
  if (values == nullptr && size > 0) {
    Fail(ACLNN_ERR_PARAM_NULLPTR, absl::StrCat(function, ": argument value is null"));
    return nullptr;
  }
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
    if (FindHandle(element) == nullptr) {
      RemoveHandle(list);
      Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": an element is null or not alive"));
      return nullptr;
    }
  }
  return list;
}

template <typename T>
aclnnStatus Destroy(const char* function, const T* handle) {
  if (const aclnnStatus injected = EnterCall(function); injected != ACLNN_SUCCESS) return injected;
  if (handle == nullptr || RemoveHandle(handle)) return ACLNN_SUCCESS;
  return Fail(ACLNN_ERR_PARAM_INVALID, absl::StrCat(function, ": the handle is not alive"));
}

template <typename List>
aclnnStatus DestroyList(const char* function, const List* handle) {
  const std::shared_ptr<List> list = FindHandle(handle);
  const aclnnStatus status = Destroy(function, handle);
  if (status != ACLNN_SUCCESS || list == nullptr) return status;
  for (const auto* element : list->values) RemoveHandle(element);
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

}  // namespace
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
