// Programs about streams: events, notifies, words of memory, time limits and configurations.

#include <dlfcn.h>

#include <thread>

#include "program.h"

namespace {

constexpr size_t kNumbers = 1024;
constexpr size_t kBytes = kNumbers * sizeof(uint32_t);

// Limits of operators and of waits, and a copy on one stream after a copy on another one.
void BoundedCrossStreamExecution() {
  constexpr uint32_t kLimitSeconds = 1, kWaitSeconds = 60;
  constexpr int32_t kSyncLimitMs = 60000;
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  uint64_t interval_us = 0, limit_us = 0;
  CHECK_OK(aclrtGetOpTimeOutInterval(&interval_us));
  CHECK_TRUE(interval_us > 0);
  CHECK_OK(aclrtSetOpExecuteTimeOut(kLimitSeconds));
  uint32_t limit_ms = 0;
  CHECK_OK(aclrtGetOpExecuteTimeout(&limit_ms));
  CHECK_TRUE(limit_ms >= kLimitSeconds * 1000);
  CHECK_OK(aclrtSetOpExecuteTimeOutV2(interval_us + 1, &limit_us));
  CHECK_TRUE(limit_us == 2 * interval_us);
  CHECK_OK(aclrtSetOpWaitTimeout(kWaitSeconds));

  aclrtStream producer = nullptr, consumer = nullptr;
  aclrtEvent ready = nullptr;
  CHECK_OK(aclrtCreateStream(&producer));
  CHECK_OK(aclrtCreateStream(&consumer));
  CHECK_OK(aclrtCreateEventExWithFlag(&ready, ACL_EVENT_SYNC));
  void *device = nullptr, *from = nullptr, *to = nullptr;
  CHECK_OK(aclrtMalloc(&device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtMallocHost(&from, kBytes));
  CHECK_OK(aclrtMallocHost(&to, kBytes));
  for (uint32_t i = 0; i < kNumbers; ++i) static_cast<uint32_t*>(from)[i] = 3 * i;
  CHECK_OK(aclrtMemcpyAsync(device, kBytes, from, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, producer));
  CHECK_OK(aclrtRecordEvent(ready, producer));
  CHECK_OK(aclrtStreamWaitEvent(consumer, ready));
  CHECK_OK(aclrtMemcpyAsync(to, kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, consumer));
  CHECK_OK(aclrtSynchronizeDeviceWithTimeout(kSyncLimitMs));
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  CHECK_OK(aclrtQueryEventStatus(ready, &status));
  CHECK_TRUE(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
  for (uint32_t i = 0; i < kNumbers; ++i) CHECK_TRUE(static_cast<uint32_t*>(to)[i] == 3 * i);

  CHECK_OK(aclrtDestroyEvent(ready));
  CHECK_OK(aclrtDestroyStream(consumer));
  CHECK_OK(aclrtDestroyStream(producer));
  CHECK_OK(aclrtFreeHost(to));
  CHECK_OK(aclrtFreeHost(from));
  CHECK_OK(aclrtFree(device));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// Two threads with a stream each: one waits for a word of memory that the other one writes.
void MultistreamSyncMemory() {
  constexpr uint64_t kFlag = 1;
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  CHECK_OK(aclrtGetCurrentContext(&context));
  void* word = nullptr;
  CHECK_OK(aclrtMalloc(&word, sizeof(uint64_t), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtMemset(word, sizeof(uint64_t), 0, sizeof(uint64_t)));
  uint32_t* const data = Upload(std::vector<uint32_t>(kNumbers));
  std::vector<uint32_t> seen;
  std::thread reader([&] {
    CHECK_OK(aclrtSetCurrentContext(context));
    aclrtStream stream = nullptr;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtValueWait(word, kFlag, ACL_STREAM_WAIT_VALUE_EQ, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    seen = Download(data, kNumbers);
    CHECK_OK(aclrtDestroyStream(stream));
  });
  std::thread writer([&] {
    CHECK_OK(aclrtSetCurrentContext(context));
    aclrtStream stream = nullptr;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtMemsetAsync(data, kBytes, 7, kBytes, stream));
    CHECK_OK(aclrtValueWrite(word, kFlag, 0, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(aclrtDestroyStream(stream));
  });
  reader.join();
  writer.join();
  CHECK_TRUE(seen == std::vector<uint32_t>(kNumbers, 0x07070707));
  CHECK_OK(aclrtFree(data));
  CHECK_OK(aclrtFree(word));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// Loads the calls for configured streams by name, as plugins do that must run on older releases.
void StreamConfigQuery() {
  const auto create_handle = reinterpret_cast<decltype(&aclrtCreateStreamConfigHandle)>(
      dlsym(RTLD_DEFAULT, "aclrtCreateStreamConfigHandle"));
  const auto set_option = reinterpret_cast<decltype(&aclrtSetStreamConfigOpt)>(
      dlsym(RTLD_DEFAULT, "aclrtSetStreamConfigOpt"));
  const auto create_stream =
      reinterpret_cast<decltype(&aclrtCreateStreamV2)>(dlsym(RTLD_DEFAULT, "aclrtCreateStreamV2"));
  const auto destroy_handle = reinterpret_cast<decltype(&aclrtDestroyStreamConfigHandle)>(
      dlsym(RTLD_DEFAULT, "aclrtDestroyStreamConfigHandle"));
  CHECK_TRUE(create_handle != nullptr && set_option != nullptr);
  CHECK_TRUE(create_stream != nullptr && destroy_handle != nullptr);

  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStreamConfigHandle* const handle = create_handle();
  CHECK_TRUE(handle != nullptr);
  const uint32_t flag = ACL_STREAM_FAST_SYNC, priority = 1;
  CHECK_OK(set_option(handle, ACL_RT_STREAM_FLAG, &flag, sizeof(flag)));
  CHECK_OK(set_option(handle, ACL_RT_STREAM_PRIORITY, &priority, sizeof(priority)));
  aclrtStream stream = nullptr;
  CHECK_OK(create_stream(&stream, handle));
  int32_t id = -1;
  uint32_t flags = 0, stream_priority = 99;
  CHECK_OK(aclrtStreamGetId(stream, &id));
  CHECK_OK(aclrtStreamGetFlags(stream, &flags));
  CHECK_OK(aclrtStreamGetPriority(stream, &stream_priority));
  CHECK_TRUE(id >= 0 && flags == flag && stream_priority == priority);
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(destroy_handle(handle));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// Passes numbers along four streams by three notifies, three times with the same notifies.
void ReusableStreamHandoff() {
  constexpr size_t kHandoffs = 3, kRounds = 3;
  constexpr uint32_t kWaitSeconds = 60;
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream streams[kHandoffs + 1] = {};
  for (aclrtStream& stream : streams) CHECK_OK(aclrtCreateStream(&stream));
  aclrtNotify notifies[kHandoffs] = {};
  uint32_t ids[kHandoffs] = {};
  for (size_t i = 0; i < kHandoffs; ++i) {
    CHECK_OK(aclrtCreateNotify(&notifies[i], ACL_NOTIFY_DEFAULT));
    CHECK_OK(aclrtGetNotifyId(notifies[i], &ids[i]));
  }
  uint32_t* buffers[kHandoffs + 2] = {};
  for (uint32_t*& buffer : buffers) buffer = Upload(std::vector<uint32_t>(kNumbers));
  for (uint32_t round = 1; round <= kRounds; ++round) {
    const std::vector<uint32_t> numbers = Ascending(1000 * round, kNumbers);
    CHECK_OK(aclrtMemcpy(buffers[0], kBytes, numbers.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
    for (size_t i = kHandoffs + 1; i-- > 0;) {  // the last stream first: it must wait
      if (i > 0) CHECK_OK(aclrtWaitAndResetNotify(notifies[i - 1], streams[i], kWaitSeconds));
      CHECK_OK(aclrtMemcpyAsync(buffers[i + 1], kBytes, buffers[i], kBytes,
                                ACL_MEMCPY_DEVICE_TO_DEVICE, streams[i]));
      if (i < kHandoffs) CHECK_OK(aclrtRecordNotify(notifies[i], streams[i]));
    }
    CHECK_OK(aclrtSynchronizeStream(streams[kHandoffs]));
    CHECK_TRUE(Download(buffers[kHandoffs + 1], kNumbers) == numbers);
    CHECK_OK(aclrtNotifyBatchReset(notifies, kHandoffs));
    for (size_t i = 0; i < kHandoffs; ++i) {
      uint32_t id = 0;
      CHECK_OK(aclrtGetNotifyId(notifies[i], &id));
      CHECK_TRUE(id == ids[i]);
    }
  }
  for (uint32_t* buffer : buffers) CHECK_OK(aclrtFree(buffer));
  for (const aclrtNotify notify : notifies) CHECK_OK(aclrtDestroyNotify(notify));
  for (const aclrtStream stream : streams) CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

// A stream's allocator of the program's own.
struct Pool {
  int num_blocks = 0;
};

void* AllocateBlock(aclrtAllocator pool, size_t size) {
  void* memory = nullptr;
  CHECK_OK(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
  ++static_cast<Pool*>(pool)->num_blocks;
  return memory;
}

void* AllocateBlockAt(aclrtAllocator pool, size_t size, aclrtAllocatorAddr) {
  return AllocateBlock(pool, size);
}

void FreeBlock(aclrtAllocator pool, aclrtAllocatorBlock block) {
  CHECK_OK(aclrtFree(block));
  --static_cast<Pool*>(pool)->num_blocks;
}

void* AddressOf(aclrtAllocatorBlock block) { return block; }

// Gives a stream an allocator, finds it by the stream, uses it and takes it back.
void CustomAllocator() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  Pool pool;
  const aclrtAllocatorDesc description = aclrtAllocatorCreateDesc();
  CHECK_TRUE(description != nullptr);
  CHECK_OK(aclrtAllocatorSetObjToDesc(description, &pool));
  CHECK_OK(aclrtAllocatorSetAllocFuncToDesc(description, AllocateBlock));
  CHECK_OK(aclrtAllocatorSetFreeFuncToDesc(description, FreeBlock));
  CHECK_OK(aclrtAllocatorSetAllocAdviseFuncToDesc(description, AllocateBlockAt));
  CHECK_OK(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(description, AddressOf));
  CHECK_OK(aclrtAllocatorRegister(stream, description));

  aclrtAllocatorDesc found = nullptr;
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc free_block = nullptr;
  aclrtAllocatorAllocAdviseFunc allocate_at = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address_of = nullptr;
  CHECK_OK(aclrtAllocatorGetByStream(stream, &found, &object, &allocate, &free_block, &allocate_at,
                                     &address_of));
  CHECK_TRUE(object == &pool);
  void* const block = allocate(object, kBytes);
  void* const hinted = allocate_at(object, kBytes, address_of(block));
  CHECK_TRUE(pool.num_blocks == 2);
  CHECK_OK(aclrtMemsetAsync(address_of(block), kBytes, 1, kBytes, stream));
  CHECK_OK(aclrtMemcpyAsync(address_of(hinted), kBytes, address_of(block), kBytes,
                            ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  CHECK_OK(aclrtSynchronizeStream(stream));
  CHECK_TRUE(Download(address_of(hinted), 1)[0] == 0x01010101);
  free_block(object, hinted);
  free_block(object, block);
  CHECK_TRUE(pool.num_blocks == 0);
  CHECK_OK(aclrtAllocatorUnregister(stream));
  CHECK_OK(aclrtAllocatorDestroyDesc(description));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

}  // namespace

std::vector<Program> StreamPrograms() {
  return {{"bounded_cross_stream_execution", BoundedCrossStreamExecution},
          {"multistream_sync_memory", MultistreamSyncMemory},
          {"stream_config_query", StreamConfigQuery},
          {"reusable_stream_handoff", ReusableStreamHandoff},
          {"custom_allocator", CustomAllocator}};
}
