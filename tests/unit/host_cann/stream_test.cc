// Streams: order, asynchrony, waiting, aborting, limits.
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "ops/host_cann/runtime/task.h"
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

using StreamTest = RuntimeTest;

aclrtStreamStatus StreamStatusOf(aclrtStream stream) {
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
  return status;
}

TEST_F(StreamTest, LaunchReturnsBeforeTheKernelRuns) {
  const aclrtStream stream = NewStream();
  EXPECT_EQ(StreamStatusOf(stream), ACL_STREAM_STATUS_COMPLETE);
  std::atomic<bool> ran = false;
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  gate.AwaitArrival();
  EXPECT_FALSE(ran);
  EXPECT_EQ(StreamStatusOf(stream), ACL_STREAM_STATUS_NOT_READY);

  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(ran);
  EXPECT_EQ(StreamStatusOf(stream), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(StreamTest, TasksRunInOrder) {
  const aclrtStream stream = NewStream();
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(Launch(stream, [&order, i] { order.push_back(i); }), ACL_SUCCESS);
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[i], i);
}

TEST_F(StreamTest, StreamsOverlap) {
  // The first stream's task ends only after the second stream's has run.
  const aclrtStream first = NewStream();
  const aclrtStream second = NewStream();
  Gate gate;
  gate.Close(first);
  ASSERT_EQ(Launch(second, [&] { gate.Open(); }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
}

TEST_F(StreamTest, StreamsProgressWithoutAnyoneWaiting) {
  Gate gate;
  const aclrtStream stream = NewStream();
  ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS);
  gate.Close(stream);
  gate.AwaitArrival();
}

TEST_F(StreamTest, NullIsTheDefaultStream) {
  Gate gate;
  gate.Close(nullptr);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), ACL_SUCCESS);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(StreamStatusOf(stream), ACL_STREAM_STATUS_NOT_READY);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(StreamTest, TimeoutLeavesTheTasksRunning) {
  const aclrtStream stream = NewStream();
  Gate gate;
  gate.Close(stream);
  bool ran = false;
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(RecentMessage().substr(0, 7), "EE1002:");
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(1), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 60000), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

// A thread that waits for so long may run short kernels itself.
TEST_F(StreamTest, ALongTimeoutHoldsForAShortKernelThatHangs) {
  constexpr int32_t kMilliseconds = 1100;
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnHung,hang,count=all"), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  const auto launch = [stream] {
    KernelLaunch hung;
    hung.name = "aclnnHung";
    hung.run = [](kernels::TaskRunner&) {};
    hung.work = 1;
    return LaunchKernel(stream, std::move(hung));
  };
  ASSERT_EQ(launch(), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, kMilliseconds),
            ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  ASSERT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);

  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(launch(), ACL_SUCCESS);
  aclmdlRI graph = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, kMilliseconds),
            ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  ASSERT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
}

// Many are run by the thread that waits, others by the stream's own: each once, in their order.
TEST_F(StreamTest, ShortKernelsRunInOrderForThreadsThatWaitWithATimeout) {
  const aclrtStream stream = NewStream();
  std::vector<int> order;
  for (int i = 0; i < 2000; ++i) {
    KernelLaunch launch;
    launch.name = "aclnnTest";
    launch.run = [&order, i](kernels::TaskRunner&) { order.push_back(i); };
    launch.work = kPromptElements + 1;
    ASSERT_EQ(LaunchKernel(stream, std::move(launch)), ACL_SUCCESS);
    if (i % 3 == 0) {
      ASSERT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 60000), ACL_SUCCESS);
    }
  }
  ASSERT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 60000), ACL_SUCCESS);
  ASSERT_EQ(order.size(), 2000u);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(order[i], i);
}

TEST_F(StreamTest, SynchronizeDeviceWaitsForAllStreamsOfTheContext) {
  std::atomic<int> ran = 0;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Launch(NewStream(), [&] { ++ran; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(ran, 4);
}

TEST_F(StreamTest, DestroyWaitsForTheTasks) {
  const aclrtStream stream = NewStream();
  bool ran = false;
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(ran);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(StreamTest, ForcedDestroyDropsTheTasks) {
  const aclrtStream stream = NewStream();
  Gate gate;
  gate.Close(stream);
  gate.AwaitArrival();
  auto ran = std::make_shared<std::atomic<bool>>(false);
  ASSERT_EQ(Launch(stream, [ran] { *ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
  EXPECT_EQ(ran.use_count(), 1);
  EXPECT_FALSE(*ran);
}

TEST_F(StreamTest, AbortStopsAHungKernelAndDropsTheRest) {
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnHung,hang"), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  std::atomic<bool> ran = false;
  ASSERT_EQ(Launch(
                stream, [] {}, "aclnnHung"),
            ACL_SUCCESS);
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);

  EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_FALSE(ran);
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(StreamTest, WaitersLearnOfAnAbort) {
  // The waiting thread executes the hung kernel itself, or waits for the stream's thread.
  for (const bool execute : {true, false}) {
    ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnHung,hang"), ACL_SUCCESS);
    const aclrtStream stream = NewStream();
    aclrtContext context = nullptr;
    ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
    Gate gate;
    if (!execute) {
      gate.Close(stream);
      gate.AwaitArrival();
    }
    ASSERT_EQ(Launch(
                  stream, [] {}, "aclnnHung"),
              ACL_SUCCESS);
    std::atomic<aclError> result = -1;
    std::thread waiter([&] {
      ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
      result = aclrtSynchronizeStream(stream);
    });
    gate.Open();
    // However far the waiter has come: if it begins after the abort, it finds an idle stream.
    EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
    waiter.join();
    EXPECT_TRUE(result == ACL_ERROR_RT_STREAM_ABORT || result == ACL_SUCCESS) << result;
    opserveHostClearFaults();
  }
}

TEST_F(StreamTest, LimitPerDevice) {
  uint32_t available = 0;
  ASSERT_EQ(aclrtGetStreamAvailableNum(&available), ACL_SUCCESS);
  EXPECT_EQ(available, 1983u);  // one is the default stream
  std::vector<aclrtStream> streams;
  for (uint32_t i = 0; i < available; ++i) streams.push_back(NewStream());
  aclrtStream one_more = nullptr;
  EXPECT_EQ(aclrtCreateStream(&one_more), ACL_ERROR_RT_NO_STREAM_RESOURCE);
  EXPECT_EQ(aclrtDestroyStream(streams.back()), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateStream(&one_more), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetStreamAvailableNum(&available), ACL_SUCCESS);
  EXPECT_EQ(available, 1983u);
}

TEST_F(StreamTest, QueueLimit) {
  const aclrtStream stream = NewStream();
  Gate gate;
  gate.Close(stream);
  gate.AwaitArrival();
  aclError code = ACL_SUCCESS;
  int queued = 0;

  while (queued <= 65536 && (code = Launch(stream, [] {})) == ACL_SUCCESS) ++queued;
  EXPECT_EQ(code, ACL_ERROR_RT_STREAM_TASK_FULL);
  EXPECT_EQ(queued, 65536);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(StreamTest, ConfigAndAttributesAreKept) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, 3, ACL_STREAM_FAST_LAUNCH), ACL_SUCCESS);
  uint32_t priority = 0, flags = 0;
  int32_t id = -1, other_id = -1;
  EXPECT_EQ(aclrtStreamGetPriority(stream, &priority), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetFlags(stream, &flags), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetId(stream, &id), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamGetId(NewStream(), &other_id), ACL_SUCCESS);
  EXPECT_EQ(priority, 3u);
  EXPECT_EQ(flags, ACL_STREAM_FAST_LAUNCH);
  EXPECT_NE(id, other_id);

  aclrtStreamAttrValue value = {};
  value.userCustomTag = 17;
  EXPECT_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value), ACL_SUCCESS);
  value = {};
  EXPECT_EQ(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value), ACL_SUCCESS);
  EXPECT_EQ(value.userCustomTag, 17u);
}

TEST_F(StreamTest, PrioritiesAreClampedAndUnknownFlagsIgnored) {
  const struct {
    uint32_t priority, flags, expected_priority, expected_flags;
  } kCases[] = {
      {7, 0, 7, 0},
      {8, ACL_STREAM_FAST_SYNC, 7, ACL_STREAM_FAST_SYNC},
      {UINT32_MAX, 0, 7, 0},
      {0, 0x80 | ACL_STREAM_FAST_LAUNCH, 0, ACL_STREAM_FAST_LAUNCH},
  };
  for (const auto& c : kCases) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, c.priority, c.flags), ACL_SUCCESS);
    uint32_t priority = 99, flags = 99;
    EXPECT_EQ(aclrtStreamGetPriority(stream, &priority), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamGetFlags(stream, &flags), ACL_SUCCESS);
    EXPECT_EQ(priority, c.expected_priority);
    EXPECT_EQ(flags, c.expected_flags);
  }
}

TEST_F(StreamTest, AConfigurationMakesStreams) {
  aclrtStreamConfigHandle* const config = aclrtCreateStreamConfigHandle();
  ASSERT_NE(config, nullptr);
  const uint32_t priority = 9, short_flag = ACL_STREAM_FAST_SYNC;
  const size_t flag = ACL_STREAM_FAST_LAUNCH;
  aclrtStream streams[2] = {};
  ASSERT_EQ(aclrtCreateStreamV2(&streams[0], config), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof(flag)), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &short_flag, 4), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, 4), ACL_SUCCESS);
  EXPECT_EQ(config->flag, ACL_STREAM_FAST_SYNC);
  ASSERT_EQ(aclrtCreateStreamV2(&streams[1], config), ACL_SUCCESS);
  for (const bool configured : {false, true}) {
    uint32_t value = 99;
    EXPECT_EQ(aclrtStreamGetPriority(streams[configured], &value), ACL_SUCCESS);
    EXPECT_EQ(value, configured ? 7u : 0u);
    EXPECT_EQ(aclrtStreamGetFlags(streams[configured], &value), ACL_SUCCESS);
    EXPECT_EQ(value, configured ? ACL_STREAM_FAST_SYNC : 0u);
  }

  const auto unknown = static_cast<aclrtStreamConfigAttr>(4);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, unknown, &flag, 8), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &flag, 8), 100000);
  EXPECT_EQ(aclrtSetStreamConfigOpt(nullptr, ACL_RT_STREAM_FLAG, &flag, 8), 100000);
  EXPECT_EQ(aclrtCreateStreamV2(&streams[0], nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyStreamConfigHandle(config), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStreamConfigHandle(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(StreamTest, OfSeveralFailuresTheLastCodeIsReported) {
  ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnFirst,code=507035;kernel=aclnnSecond,code=507034"),
            ACL_SUCCESS)
      << RecentMessage();
  const aclrtStream stream = NewStream();
  for (const char* name : {"aclnnFirst", "aclnnSecond", "aclnnFine"}) {
    ASSERT_EQ(Launch(
                  stream, [] {}, name),
              ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_TIMEOUT);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(StreamTest, ThreadsShareAStream) {
  const aclrtStream stream = NewStream();
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  int count = 0;  // only ever touched in stream order
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
      for (int k = 0; k < 200; ++k) {
        ASSERT_EQ(Launch(stream, [&] { ++count; }), ACL_SUCCESS);
        if (k % 10 == 0) {
          ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(count, 800);
}

}  // namespace
}  // namespace opserve::host_cann
