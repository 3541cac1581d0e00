// Programs that run an operator, or copy without one.

#include "device_tensor.h"
#include "program.h"

namespace {

// Sums of two tensors, and everything is given back in order.
void HelloCann() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  const DeviceTensor self = MakeTensor({0, 1, 2, 3, 4, 5, 6, 7});
  const DeviceTensor other = MakeTensor({1, 1, 1, 2, 2, 2, 3, 3});
  const DeviceTensor out = MakeTensor(std::vector<float>(8));
  float factor = 1.0f;
  aclScalar* const alpha = aclCreateScalar(&factor, ACL_FLOAT);
  void* const workspace = QueueAdd(self, other, alpha, out, stream);
  CHECK_OK(aclrtSynchronizeStream(stream));
  const std::vector<float> expected = {1, 2, 3, 5, 6, 7, 9, 10};
  CHECK_TRUE(ReadTensor(out, expected.size()) == expected);
  CHECK_OK(aclDestroyScalar(alpha));
  for (const DeviceTensor& tensor : {self, other, out}) Release(tensor);
  if (workspace != nullptr) CHECK_OK(aclrtFree(workspace));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// The same through a data buffer, in a context of the program's own, with a reset by force.
void DeviceNormal() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  int32_t device = -1;
  uint32_t num_devices = 0;
  CHECK_OK(aclrtGetDevice(&device));
  CHECK_OK(aclrtGetDeviceCount(&num_devices));
  CHECK_TRUE(device == 0 && num_devices > 0);
  aclrtRunMode mode = ACL_DEVICE;
  CHECK_OK(aclrtGetRunMode(&mode));
  CHECK_TRUE(mode == ACL_HOST);
  aclrtContext context = nullptr;
  CHECK_OK(aclrtCreateContext(&context, 0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  const DeviceTensor self = MakeTensor({1, 2});
  const DeviceTensor other = MakeTensor({10, 20});
  const DeviceTensor out = MakeTensor({0, 0});
  aclDataBuffer* const buffer = aclCreateDataBuffer(out.memory, 2 * sizeof(float));
  CHECK_TRUE(aclGetDataBufferAddr(buffer) == out.memory);
  CHECK_TRUE(aclGetDataBufferSizeV2(buffer) == 2 * sizeof(float));
  float factor = 2.0f;
  aclScalar* const alpha = aclCreateScalar(&factor, ACL_FLOAT);
  void* const workspace = QueueAdd(self, other, alpha, out, stream);
  CHECK_OK(aclrtSynchronizeStream(stream));
  float sums[2] = {};
  CHECK_OK(aclrtMemcpy(sums, sizeof(sums), aclGetDataBufferAddr(buffer), sizeof(sums),
                       ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_TRUE(sums[0] == 21 && sums[1] == 42);
  CHECK_OK(aclDestroyDataBuffer(buffer));
  CHECK_OK(aclDestroyScalar(alpha));
  for (const DeviceTensor& tensor : {self, other, out}) Release(tensor);
  if (workspace != nullptr) CHECK_OK(aclrtFree(workspace));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtDestroyContext(context));
  CHECK_OK(aclrtResetDeviceForce(0));
  CHECK_OK(aclFinalize());
}

}  // namespace

std::vector<Program> OperatorPrograms() {
  return {{"hello_cann", HelloCann}, {"device_normal", DeviceNormal}};
}
