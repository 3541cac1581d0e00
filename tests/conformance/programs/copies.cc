// Programs that copy: by description, in batches, with offsets, in rows, and with arithmetic.

#include <algorithm>
#include <cstring>

#include "program.h"

namespace {

// Page-locked memory, for copies in stream order.
uint32_t* AllocatePinned(size_t count) {
  void* memory = nullptr;
  CHECK_OK(aclrtMallocHost(&memory, count * sizeof(uint32_t)));
  return static_cast<uint32_t*>(memory);
}

// Between page-locked and ordinary memory, with an end by force.
void H2hMemoryCopy() {
  constexpr size_t kNumbers = 256, kBytes = kNumbers * sizeof(uint32_t);
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  const std::vector<uint32_t> numbers = Ascending(5, kNumbers);
  std::vector<uint32_t> result(kNumbers);
  uint32_t* const from = AllocatePinned(kNumbers);
  uint32_t* const to = AllocatePinned(kNumbers);
  CHECK_OK(aclrtMemcpy(from, kBytes, numbers.data(), kBytes, ACL_MEMCPY_HOST_TO_HOST));
  CHECK_OK(aclrtMemcpy(to, kBytes, from, kBytes, ACL_MEMCPY_HOST_TO_HOST));
  CHECK_OK(aclrtMemcpy(result.data(), kBytes, to, kBytes, ACL_MEMCPY_HOST_TO_HOST));
  CHECK_TRUE(result == numbers);
  CHECK_OK(aclrtDestroyStreamForce(stream));
  CHECK_OK(aclrtFreeHost(from));
  CHECK_OK(aclrtFreeHost(to));
  CHECK_OK(aclrtResetDeviceForce(0));
  CHECK_OK(aclFinalize());
}

// A copy that is described in device memory and queued by its description.
void MemcpyDescriptor() {
  constexpr size_t kNumbers = 1024, kBytes = kNumbers * sizeof(uint32_t);
  constexpr aclrtMemcpyKind kKind = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  const std::vector<uint32_t> numbers = Ascending(1, kNumbers);
  uint32_t* const from = Upload(numbers);
  uint32_t* const to = Upload(std::vector<uint32_t>(kNumbers));
  size_t description_bytes = 0;
  CHECK_OK(aclrtGetMemcpyDescSize(kKind, &description_bytes));
  CHECK_TRUE(description_bytes > 0);
  void* description = nullptr;
  CHECK_OK(aclrtMalloc(&description, description_bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtSetMemcpyDesc(description, kKind, from, to, kBytes, nullptr));
  CHECK_OK(aclrtMemcpyAsyncWithDesc(description, kKind, stream));
  CHECK_OK(aclrtSynchronizeStream(stream));
  CHECK_TRUE(Download(to, kNumbers) == numbers);
  for (void* memory : {description, static_cast<void*>(to), static_cast<void*>(from)}) {
    CHECK_OK(aclrtFree(memory));
  }
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

enum class BatchCall { kNow, kInOrder, kNowV2, kInOrderV2 };

void CopyBatch(BatchCall call, void** dsts, void** srcs, size_t* sizes, size_t num_copies,
               aclrtMemLocation dst, aclrtMemLocation src, aclrtStream stream) {
  aclrtMemcpyBatchAttr attributes = {dst, src, {}};
  size_t first = 0, failed = 0;
  switch (call) {
    case BatchCall::kNow:
      CHECK_OK(
          aclrtMemcpyBatch(dsts, sizes, srcs, sizes, num_copies, &attributes, &first, 1, &failed));
      CHECK_TRUE(failed == SIZE_MAX);
      break;
    case BatchCall::kInOrder:
      CHECK_OK(aclrtMemcpyBatchAsync(dsts, sizes, srcs, sizes, num_copies, &attributes, &first, 1,
                                     &failed, stream));
      CHECK_TRUE(failed == SIZE_MAX);
      break;
    case BatchCall::kNowV2:
      CHECK_OK(aclrtMemcpyBatchV2(dsts, sizes, srcs, sizes, num_copies, &attributes, &first, 1));
      break;
    case BatchCall::kInOrderV2:
      CHECK_OK(aclrtMemcpyBatchAsyncV2(dsts, sizes, srcs, sizes, num_copies, &attributes, &first, 1,
                                       stream));
      break;
  }
  CHECK_OK(aclrtSynchronizeStream(stream));
}

// Tensors of different sizes to the device and back in one call each, by each of the four calls.
void BatchTensorRoundTrip() {
  constexpr size_t kLengths[] = {4, 7, 11};
  constexpr size_t kTensors = 3;
  const aclrtMemLocation host = {0, ACL_MEM_LOCATION_TYPE_HOST};
  const aclrtMemLocation device = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  void *from[kTensors] = {}, *on_device[kTensors] = {}, *to[kTensors] = {};
  size_t sizes[kTensors] = {};
  for (size_t i = 0; i < kTensors; ++i) {
    sizes[i] = kLengths[i] * sizeof(uint32_t);
    from[i] = AllocatePinned(kLengths[i]);
    to[i] = AllocatePinned(kLengths[i]);
    CHECK_OK(aclrtMalloc(&on_device[i], sizes[i], ACL_MEM_MALLOC_HUGE_FIRST));
  }
  uint32_t first = 0;
  for (const BatchCall call :
       {BatchCall::kNow, BatchCall::kInOrder, BatchCall::kNowV2, BatchCall::kInOrderV2}) {
    for (size_t i = 0; i < kTensors; ++i) {
      const std::vector<uint32_t> numbers = Ascending(first += 100, kLengths[i]);
      std::memcpy(from[i], numbers.data(), sizes[i]);
      std::memset(to[i], 0, sizes[i]);
    }
    CopyBatch(call, on_device, from, sizes, kTensors, device, host, stream);
    CopyBatch(call, to, on_device, sizes, kTensors, host, device, stream);
    for (size_t i = 0; i < kTensors; ++i) CHECK_TRUE(std::memcmp(from[i], to[i], sizes[i]) == 0);
  }
  for (size_t i = 0; i < kTensors; ++i) {
    CHECK_OK(aclrtFreeHost(from[i]));
    CHECK_OK(aclrtFreeHost(to[i]));
    CHECK_OK(aclrtFree(on_device[i]));
  }
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// A part of one table into the middle of another one whose other words are marked. The addresses of
// both are in device memory.
void GuardedResultSlice() {
  constexpr size_t kWords = 16, kBytes = kWords * sizeof(uint32_t);
  constexpr size_t kFirstTo = 5, kFirstFrom = 3, kCopied = 6;
  constexpr uint32_t kGuard = 0xDEADBEEF;
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  uint32_t* const expected = AllocatePinned(kWords);
  CHECK_OK(aclrtMemsetD32(expected, kBytes, kGuard, kWords));
  const std::vector<uint32_t> numbers = Ascending(40, kWords);
  std::copy_n(numbers.begin() + kFirstFrom, kCopied, expected + kFirstTo);

  void* const from = Upload(numbers);
  void* const to = Upload(std::vector<uint32_t>(kWords));
  CHECK_OK(aclrtMemsetD32Async(to, kBytes, kGuard, kWords, stream));
  void *to_address = nullptr, *from_address = nullptr;
  CHECK_OK(aclrtMalloc(&to_address, sizeof(void*), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtMalloc(&from_address, sizeof(void*), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtMemcpy(to_address, sizeof(to), &to, sizeof(to), ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_OK(aclrtMemcpy(from_address, sizeof(from), &from, sizeof(from), ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK_OK(aclrtMemcpyAsyncWithOffset(
      static_cast<void**>(to_address), kBytes, kFirstTo * sizeof(uint32_t),
      static_cast<const void**>(from_address), kCopied * sizeof(uint32_t),
      kFirstFrom * sizeof(uint32_t), ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, stream));
  CHECK_OK(aclrtSynchronizeStream(stream));
  const std::vector<uint32_t> result = Download(to, kWords);
  CHECK_TRUE(std::equal(result.begin(), result.end(), expected));
  for (void* memory : {to_address, from_address, to, from}) CHECK_OK(aclrtFree(memory));
  CHECK_OK(aclrtFreeHost(expected));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// Adds numbers to themselves while they are copied.
void ReduceTask() {
  const std::vector<float> numbers = {1, 2, 3, 4};
  const size_t bytes = numbers.size() * sizeof(float);
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  void *from = nullptr, *sums = nullptr;
  for (void** memory : {&from, &sums}) {
    CHECK_OK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemcpy(*memory, bytes, numbers.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  CHECK_OK(aclrtReduceAsync(sums, from, bytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream,
                            nullptr));
  CHECK_OK(aclrtSynchronizeStream(stream));
  std::vector<float> result(numbers.size());
  CHECK_OK(aclrtMemcpy(result.data(), bytes, sums, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  for (size_t i = 0; i < numbers.size(); ++i) CHECK_TRUE(result[i] == 2 * numbers[i]);
  CHECK_OK(aclrtFree(sums));
  CHECK_OK(aclrtFree(from));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// An image to the device and back by rows, with rows of different lengths in memory: the bytes
// between the rows stay as they were.
void ImageStaging() {
  constexpr size_t kWidth = 512, kHeight = 512, kHostPitch = 544, kDevicePitch = 576;
  constexpr uint8_t kPadding = 0x5A;
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  int64_t memory_bytes = 0;
  CHECK_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &memory_bytes));
  CHECK_TRUE(memory_bytes > static_cast<int64_t>(kDevicePitch * kHeight));
  aclrtStream stream = nullptr;
  uint32_t flags = 0;
  CHECK_OK(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_SYNC));
  CHECK_OK(aclrtStreamGetFlags(stream, &flags));
  CHECK_TRUE(flags == ACL_STREAM_FAST_SYNC);
  void *from = nullptr, *to = nullptr, *device = nullptr;
  CHECK_OK(aclrtMallocHost(&from, kHostPitch * kHeight));
  CHECK_OK(aclrtMallocHost(&to, kHostPitch * kHeight));
  CHECK_OK(aclrtMalloc(&device, kDevicePitch * kHeight, ACL_MEM_MALLOC_HUGE_FIRST));
  for (size_t i = 0; i < kHostPitch * kHeight; ++i) {
    static_cast<uint8_t*>(from)[i] = static_cast<uint8_t>(i % 251);
  }
  std::memset(to, kPadding, kHostPitch * kHeight);
  CHECK_OK(aclrtMemcpy2dAsync(device, kDevicePitch, from, kHostPitch, kWidth, kHeight,
                              ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK_OK(aclrtMemcpy2dAsync(to, kHostPitch, device, kDevicePitch, kWidth, kHeight,
                              ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_OK(aclrtSynchronizeStream(stream));
  for (size_t i = 0; i < kHostPitch * kHeight; ++i) {
    const uint8_t expected = i % kHostPitch < kWidth ? static_cast<uint8_t*>(from)[i] : kPadding;
    CHECK_TRUE(static_cast<uint8_t*>(to)[i] == expected);
  }
  CHECK_OK(aclrtFree(device));
  CHECK_OK(aclrtFreeHost(to));
  CHECK_OK(aclrtFreeHost(from));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

}  // namespace

std::vector<Program> CopyPrograms() {
  return {{"h2h_memory_copy", H2hMemoryCopy},
          {"memcpy_descriptor", MemcpyDescriptor},
          {"batch_tensor_round_trip", BatchTensorRoundTrip},
          {"guarded_result_slice", GuardedResultSlice},
          {"reduce_task", ReduceTask},
          {"image_staging", ImageStaging}};
}
