// Graphs: what a replay runs, where, on which memory; groups of tasks; charges for launches.
#include <atomic>
#include <cstring>
#include <vector>

#include "tests/await.h"
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

constexpr size_t kBytes = 64;

class GraphTest : public RuntimeTest {
 protected:
  static aclmdlRI Capture(aclrtStream stream, const std::function<void()>& record) {
    EXPECT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
    record();
    aclmdlRI graph = nullptr;
    EXPECT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_SUCCESS) << RecentMessage();
    return graph;
  }
  // Queues a kernel that adds `step` to the numbers at `memory`.
  static aclError LaunchAdd(aclrtStream stream, void* memory, int step) {
    KernelLaunch launch;
    launch.name = "aclnnTest";
    launch.ranges = {{memory, kBytes, "out"}};
    launch.run = [memory, step](kernels::TaskRunner&) {
      auto* const numbers = static_cast<int*>(memory);
      for (size_t i = 0; i < kBytes / sizeof(int); ++i) numbers[i] += step;
    };
    return LaunchKernel(stream, std::move(launch));
  }
  static std::vector<int> Read(const void* memory) {
    std::vector<int> numbers(kBytes / sizeof(int));
    EXPECT_EQ(aclrtMemcpy(numbers.data(), kBytes, memory, kBytes, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    return numbers;
  }
  static std::vector<int> All(int number) { return std::vector<int>(kBytes / sizeof(int), number); }
  static void* NewZeros() {
    void* const memory = NewDeviceMemory(kBytes);
    EXPECT_EQ(aclrtMemset(memory, kBytes, 0, kBytes), ACL_SUCCESS);
    return memory;
  }
};

TEST_F(GraphTest, NothingRunsBeforeAReplayAndAllOfItWithEach) {
  const aclrtStream stream = NewStream();
  const aclrtStream other = NewStream();
  void* const memory = NewZeros();
  const int64_t launches = opserveHostCount(OPSERVE_HOST_LAUNCHES);
  const aclmdlRI graph = Capture(stream, [&] {
    ASSERT_EQ(LaunchAdd(stream, memory, 1), ACL_SUCCESS);
    ASSERT_EQ(LaunchAdd(stream, memory, 2), ACL_SUCCESS);
  });
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(Read(memory), All(0));
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_LAUNCHES), launches);

  ASSERT_EQ(aclmdlRIExecute(graph, 60000), ACL_SUCCESS) << RecentMessage();
  EXPECT_EQ(Read(memory), All(3));
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, other), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, other), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
  EXPECT_EQ(Read(memory), All(9));
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_LAUNCHES), launches + 6);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
}

TEST_F(GraphTest, AReplayIsInItsStreamsOrder) {
  const aclrtStream stream = NewStream();
  void* const memory = NewZeros();
  const aclmdlRI graph =
      Capture(stream, [&] { ASSERT_EQ(LaunchAdd(stream, memory, 1), ACL_SUCCESS); });
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtMemsetAsync(memory, kBytes, 0, kBytes, stream), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, stream), ACL_SUCCESS);
  ASSERT_EQ(LaunchAdd(stream, memory, 10), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS) << "what is queued still runs";
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(Read(memory), All(11));
}

TEST_F(GraphTest, CopiesAndFillsAreCapturedWithTheirAddresses) {
  const aclrtStream stream = NewStream();
  void* const memory = NewZeros();
  void* const target = NewZeros();
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, kBytes), ACL_SUCCESS);
  int buffered[kBytes / sizeof(int)] = {5};
  const aclmdlRI graph = Capture(stream, [&] {
    ASSERT_EQ(aclrtMemsetAsync(memory, kBytes, 0, kBytes, stream), ACL_SUCCESS);
    ASSERT_EQ(LaunchAdd(stream, memory, 7), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpyAsync(target, kBytes, memory, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpyAsync(pinned, kBytes, target, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpyAsync(target, kBytes, buffered, sizeof(int),
                               ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream),
              ACL_SUCCESS);
  });
  buffered[0] = 6;
  ASSERT_EQ(aclmdlRIExecute(graph, -1), ACL_SUCCESS) << RecentMessage();
  EXPECT_EQ(static_cast<int*>(pinned)[0], 7);
  EXPECT_EQ(Read(target)[0], 5) << "the bytes of the capture";
  EXPECT_EQ(Read(target)[1], 7);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

TEST_F(GraphTest, JoinedStreamsKeepTheirOrder) {
  const aclrtStream stream = NewStream();
  const aclrtStream side = NewStream();
  const aclrtEvent forked = NewEvent();
  const aclrtEvent joined = NewEvent();
  std::vector<int> order;
  const aclmdlRI graph = Capture(stream, [&] {
    ASSERT_EQ(Launch(stream, [&] { order.push_back(1); }), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(forked, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(side, forked), ACL_SUCCESS);
    ASSERT_EQ(Launch(side, [&] { order.push_back(2); }), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(joined, side), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(stream, joined), ACL_SUCCESS);
    ASSERT_EQ(Launch(stream, [&] { order.push_back(3); }), ACL_SUCCESS);
  });
  EXPECT_TRUE(order.empty());
  ASSERT_EQ(aclmdlRIExecute(graph, -1), ACL_SUCCESS);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
}

// A replay with memory that is not what it was is an error, also where the bytes are the same.
TEST_F(GraphTest, MemoryMustBeWhatItWas) {
  const aclrtStream stream = NewStream();
  const struct {
    const char* name;
    std::function<void(void* memory)> record;
  } kCases[] = {
      {"kernel", [&](void* memory) { ASSERT_EQ(LaunchAdd(stream, memory, 1), ACL_SUCCESS); }},
      {"fill",
       [&](void* memory) {
         ASSERT_EQ(aclrtMemsetAsync(memory, kBytes, 1, kBytes, stream), ACL_SUCCESS);
       }},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    void* const before = NewZeros();
    void* memory = NewZeros();
    const aclmdlRI graph = Capture(stream, [&] {
      ASSERT_EQ(LaunchAdd(stream, before, 1), ACL_SUCCESS);
      c.record(memory);
    });
    ASSERT_EQ(aclmdlRIExecute(graph, -1), ACL_SUCCESS);
    ASSERT_EQ(aclrtFree(memory), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRIExecute(graph, -1), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    EXPECT_NE(RecentMessage().find("freed"), std::string::npos);
    // Some of it may be where the freed memory was.
    std::vector<void*> others;
    for (int i = 0; i < 16; ++i) others.push_back(NewZeros());
    ASSERT_EQ(aclmdlRIExecuteAsync(graph, stream), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    for (void* const other : others) EXPECT_EQ(Read(other), All(0));
    EXPECT_EQ(Read(before), All(1)) << "nothing of a graph runs on memory that has gone";
    EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
  }
}

// Registered memory is at the same address each time.
TEST_F(GraphTest, TheSameAddressIsOtherMemoryOnceItWasGone) {
  constexpr size_t kPage = 4096;
  const aclrtStream stream = NewStream();
  alignas(kPage) static int memory[kPage / sizeof(int)];
  memory[0] = 0;
  const auto map = [&] {
    void* address = nullptr;
    ASSERT_EQ(aclrtHostRegister(memory, kPage, ACL_HOST_REGISTER_MAPPED, &address), ACL_SUCCESS);
    ASSERT_EQ(address, memory);
  };
  const auto unmap = [&] { ASSERT_EQ(aclrtHostUnregister(memory), ACL_SUCCESS); };
  const auto capture = [&] {
    return Capture(stream, [&] { ASSERT_EQ(LaunchAdd(stream, memory, 1), ACL_SUCCESS); });
  };
  const aclmdlRI before = capture();
  map();
  const aclmdlRI live = capture();
  EXPECT_EQ(aclmdlRIExecute(before, -1), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION) << "not yet live";
  EXPECT_EQ(memory[0], 0);
  EXPECT_EQ(aclmdlRIExecute(live, -1), ACL_SUCCESS) << RecentMessage();
  EXPECT_EQ(memory[0], 1);
  unmap();
  map();
  EXPECT_EQ(aclmdlRIExecute(live, -1), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION) << "live again";
  EXPECT_EQ(memory[0], 1);
  unmap();
  EXPECT_EQ(aclmdlRIDestroy(before), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(live), ACL_SUCCESS);
}

TEST_F(GraphTest, AReplayEndsWithTheFirstTaskThatFails) {
  const aclrtStream stream = NewStream();
  std::vector<int> order;
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnSecond,code=507015"), ACL_SUCCESS);
  const aclmdlRI graph = Capture(stream, [&] {
    ASSERT_EQ(Launch(stream, [&] { order.push_back(1); }), ACL_SUCCESS);
    ASSERT_EQ(Launch(
                  stream, [&] { order.push_back(2); }, "aclnnSecond"),
              ACL_SUCCESS);
    ASSERT_EQ(Launch(stream, [&] { order.push_back(3); }), ACL_SUCCESS);
  });
  // The fault is for the first launch, which is that of a replay.
  EXPECT_EQ(aclmdlRIExecute(graph, -1), ACL_ERROR_RT_AICORE_EXCEPTION);
  EXPECT_EQ(order, (std::vector<int>{1}));
  EXPECT_EQ(aclmdlRIExecute(graph, -1), ACL_SUCCESS);
  EXPECT_EQ(order, (std::vector<int>{1, 1, 2, 3}));
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
}

TEST_F(GraphTest, AnAbortEndsAReplay) {
  const aclrtStream stream = NewStream();
  std::atomic<bool> has_begun = false;
  std::atomic<int> runs = 0;
  const aclmdlRI graph = Capture(stream, [&] {
    ASSERT_EQ(Launch(stream, [&] { has_begun = true; }), ACL_SUCCESS);
    ASSERT_EQ(Launch(
                  stream, [&] { ++runs; }, "aclnnHanging"),
              ACL_SUCCESS);
    ASSERT_EQ(Launch(stream, [&] { ++runs; }), ACL_SUCCESS);
  });
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnHanging,hang"), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, stream), ACL_SUCCESS);
  EXPECT_TRUE(Await([&] { return has_begun.load(); }));
  ASSERT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  EXPECT_EQ(runs, 0);
  opserveHostClearFaults();  // the abort may have come before the hanging kernel
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
}

TEST_F(GraphTest, ReplaysRefuse) {
  const aclrtStream stream = NewStream();
  const aclrtStream captured = NewStream();
  const aclmdlRI graph = Capture(stream, [&] { ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS); });
  ASSERT_EQ(aclmdlRICaptureBegin(captured, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
  aclmdlRI during = nullptr;
  ASSERT_EQ(aclmdlRICaptureGetInfo(captured, nullptr, &during), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecuteAsync(during, stream), ACL_ERROR_RT_MODEL_CAPTURED);
  EXPECT_EQ(aclmdlRIExecute(during, -1), ACL_ERROR_RT_MODEL_CAPTURED);
  EXPECT_EQ(aclmdlRIDestroy(during), ACL_ERROR_RT_MODEL_CAPTURED);
  EXPECT_EQ(aclmdlRIDebugPrint(during), ACL_ERROR_RT_MODEL_CAPTURED);
  EXPECT_EQ(aclmdlRIExecuteAsync(graph, captured), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclmdlRICaptureEnd(captured, &during), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(during), ACL_SUCCESS);

  EXPECT_EQ(aclmdlRIExecute(graph, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRIExecuteAsync(nullptr, stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIExecute(nullptr, -1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIDestroy(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRIDebugPrint(graph), ACL_SUCCESS);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecute(graph, -1), ACL_ERROR_RT_MODEL_CONTEXT);
  ASSERT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIExecute(graph, -1), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(GraphTest, AGroupsKernelsAreReplaced) {
  const aclrtStream stream = NewStream();
  const aclrtStream updating = NewStream();
  void* const first = NewZeros();
  void* const second = NewZeros();
  aclrtTaskGrp group = nullptr;
  const aclmdlRI graph = Capture(stream, [&] {
    ASSERT_EQ(LaunchAdd(stream, first, 1), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_SUCCESS);
    ASSERT_EQ(LaunchAdd(stream, first, 10), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), ACL_SUCCESS);
    ASSERT_EQ(LaunchAdd(stream, first, 100), ACL_SUCCESS);
  });
  ASSERT_EQ(aclmdlRIExecute(graph, -1), ACL_SUCCESS);
  EXPECT_EQ(Read(first), All(111));

  // The memory of the old kernel may go once it has been replaced.
  ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_SUCCESS) << RecentMessage();
  ASSERT_EQ(LaunchAdd(updating, second, 20), ACL_SUCCESS);
  EXPECT_EQ(Read(second), All(0));
  ASSERT_EQ(aclmdlRICaptureTaskUpdateEnd(updating), ACL_SUCCESS) << RecentMessage();
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, updating), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(updating), ACL_SUCCESS);
  EXPECT_EQ(Read(first), All(212));
  EXPECT_EQ(Read(second), All(20));
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(updating, group), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(GraphTest, GroupsRefuse) {
  const aclrtStream stream = NewStream();
  const aclrtStream other = NewStream();
  void* const memory = NewZeros();
  aclrtTaskGrp group = nullptr;
  EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  EXPECT_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
  ASSERT_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
  EXPECT_EQ(aclrtMemsetAsync(memory, kBytes, 0, kBytes, stream),
            ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
  aclmdlRI graph = nullptr;
  EXPECT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_ERROR_STREAM_TASK_GROUP_STATUS);

  graph = Capture(stream, [&] {
    ASSERT_EQ(aclmdlRICaptureTaskGrpBegin(stream), ACL_SUCCESS);
    ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), ACL_SUCCESS);
    EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(stream, group), ACL_ERROR_RT_STREAM_CAPTURED);
    EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(stream), ACL_ERROR_RT_STREAM_CAPTURED);
    EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(other, group), ACL_ERROR_RT_MODEL_CAPTURED);
  });
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(stream), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
  ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(stream, group), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateBegin(other, group), ACL_ERROR_STREAM_TASK_GROUP_STATUS);
  EXPECT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
            ACL_ERROR_STREAM_TASK_GROUP_STATUS);
  EXPECT_EQ(aclrtMemsetAsync(memory, kBytes, 0, kBytes, stream),
            ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(stream), ACL_ERROR_RT_INTERNAL_ERROR) << "too few";
  ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(other, group), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRICaptureTaskUpdateEnd(other), ACL_ERROR_RT_INVALID_HANDLE);
}

// What a launch costs on the host is charged per kernel that is queued or captured, and once for a
// replay, whatever the number of its kernels.
TEST_F(GraphTest, AReplayIsChargedAsOneLaunch) {
  constexpr int kNodes = 500;
  constexpr int64_t kLeastRatio = 10;
  const aclrtStream stream = NewStream();
  void* const memory = NewZeros();
  const auto charged = [] { return opserveHostCount(OPSERVE_HOST_CHARGED_LAUNCHES); };
  const auto launch_all = [&] {
    for (int i = 0; i < kNodes; ++i) ASSERT_EQ(LaunchAdd(stream, memory, 1), ACL_SUCCESS);
  };
  int64_t start = charged();
  launch_all();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  const int64_t launching = charged() - start;
  EXPECT_EQ(launching, kNodes);
  const aclmdlRI graph = Capture(stream, launch_all);
  start = charged();
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(charged() - start, 1);
  EXPECT_GE(launching, kLeastRatio * (charged() - start));
  EXPECT_EQ(Read(memory), All(2 * kNodes));
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
}

}  // namespace
}  // namespace opserve::host_cann
