// Adds two tensors on device 0 by the two stages of aclnnAdd, and prints the sums.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

namespace {

void Check(int status, const char* call) {
  if (status == ACL_SUCCESS) return;
  std::fprintf(stderr, "%s: %d: %s\n", call, status, aclGetRecentErrMsg());
  std::exit(1);
}

#define CHECKED(call) Check(call, #call)

struct DeviceTensor {
  void* memory = nullptr;
  aclTensor* tensor = nullptr;
};

DeviceTensor MakeTensor(const std::vector<float>& elements) {
  DeviceTensor made;
  const size_t bytes = elements.size() * sizeof(float);
  CHECKED(aclrtMalloc(&made.memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECKED(aclrtMemcpy(made.memory, bytes, elements.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  const int64_t extent = static_cast<int64_t>(elements.size());
  const int64_t stride = 1;
  made.tensor =
      aclCreateTensor(&extent, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &extent, 1, made.memory);
  return made;
}

}  // namespace

int main() {
  CHECKED(aclInit(nullptr));
  CHECKED(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECKED(aclrtCreateStream(&stream));

  std::vector<float> sums(4);
  DeviceTensor self = MakeTensor({1, 2, 3, 4});
  DeviceTensor other = MakeTensor({0.25f, 0.25f, 0.25f, 0.25f});
  DeviceTensor out = MakeTensor(sums);
  const float factor = 2;
  aclScalar* alpha = aclCreateScalar(const_cast<float*>(&factor), ACL_FLOAT);

  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  CHECKED(aclnnAddGetWorkspaceSize(self.tensor, other.tensor, alpha, out.tensor, &workspace_bytes,
                                   &executor));
  void* workspace = nullptr;
  if (workspace_bytes > 0) {
    CHECKED(aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECKED(aclnnAdd(workspace, workspace_bytes, executor, stream));
  CHECKED(aclrtSynchronizeStream(stream));
  const size_t bytes = sums.size() * sizeof(float);
  CHECKED(aclrtMemcpy(sums.data(), bytes, out.memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  std::printf("%g %g %g %g\n", sums[0], sums[1], sums[2], sums[3]);

  aclDestroyScalar(alpha);
  for (const DeviceTensor& tensor : {self, other, out}) {
    aclDestroyTensor(tensor.tensor);
    CHECKED(aclrtFree(tensor.memory));
  }
  if (workspace != nullptr) CHECKED(aclrtFree(workspace));
  CHECKED(aclrtDestroyStream(stream));
  CHECKED(aclrtResetDevice(0));
  CHECKED(aclFinalize());
}
