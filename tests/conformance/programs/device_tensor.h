// Tensors of floats, and an operator on them.
#ifndef OPSERVE_TESTS_CONFORMANCE_PROGRAMS_DEVICE_TENSOR_H_
#define OPSERVE_TESTS_CONFORMANCE_PROGRAMS_DEVICE_TENSOR_H_

#include "aclnnop/aclnn_add.h"
#include "program.h"

struct DeviceTensor {
  void* memory = nullptr;
  aclTensor* tensor = nullptr;
};

inline DeviceTensor MakeTensor(const std::vector<float>& elements) {
  DeviceTensor made;
  const size_t bytes = elements.size() * sizeof(float);
  CHECK_OK(aclrtMalloc(&made.memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtMemcpy(made.memory, bytes, elements.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  const int64_t extent = static_cast<int64_t>(elements.size());
  const int64_t stride = 1;
  made.tensor =
      aclCreateTensor(&extent, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &extent, 1, made.memory);
  CHECK_TRUE(made.tensor != nullptr);
  return made;
}

// Queues self + alpha * other -> out. Returns the workspace, which must live until it has run.
inline void* QueueAdd(const DeviceTensor& self, const DeviceTensor& other, const aclScalar* alpha,
                      const DeviceTensor& out, aclrtStream stream) {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  void* workspace = nullptr;
  CHECK_OK(
      aclnnAddGetWorkspaceSize(self.tensor, other.tensor, alpha, out.tensor, &bytes, &executor));
  if (bytes > 0) CHECK_OK(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclnnAdd(workspace, bytes, executor, stream));
  return workspace;
}

inline void Release(const DeviceTensor& tensor) {
  CHECK_OK(aclDestroyTensor(tensor.tensor));
  CHECK_OK(aclrtFree(tensor.memory));
}

inline std::vector<float> ReadTensor(const DeviceTensor& tensor, size_t count) {
  std::vector<float> elements(count);
  const size_t bytes = count * sizeof(float);
  CHECK_OK(aclrtMemcpy(elements.data(), bytes, tensor.memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  return elements;
}

#endif  // OPSERVE_TESTS_CONFORMANCE_PROGRAMS_DEVICE_TENSOR_H_
