// Captures: the streams that are part of one, the calls that are refused meanwhile, and their end.
#include <thread>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

constexpr size_t kBytes = 64;

class CaptureTest : public RuntimeTest {
 protected:
  static void Begin(aclrtStream stream,
                    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(aclmdlRICaptureBegin(stream, mode), ACL_SUCCESS) << RecentMessage();
  }
  // Ends the capture with this code; the graph is destroyed.
  static void ExpectEnd(aclrtStream stream, aclError code) {
    aclmdlRI graph = &graph;
    EXPECT_EQ(aclmdlRICaptureEnd(stream, &graph), code) << RecentMessage();
    EXPECT_EQ(graph != nullptr, code == ACL_SUCCESS);
    if (graph != nullptr) {
      EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
    }
    EXPECT_EQ(opserveHostCount(OPSERVE_HOST_GRAPHS), 0);
    EXPECT_EQ(StatusOf(stream), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  }
  static aclmdlRICaptureStatus StatusOf(aclrtStream stream) {
    auto status = static_cast<aclmdlRICaptureStatus>(-1);
    EXPECT_EQ(aclmdlRICaptureGetInfo(stream, &status, nullptr), ACL_SUCCESS) << RecentMessage();
    return status;
  }
  static aclError SetThreadMode(aclmdlRICaptureMode mode) {
    return aclmdlRICaptureThreadExchangeMode(&mode);
  }
};

TEST_F(CaptureTest, InfoFollowsTheCapture) {
  const aclrtStream stream = NewStream();
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  aclmdlRI during = &during;
  ASSERT_EQ(aclmdlRICaptureGetInfo(stream, &status, &during), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  EXPECT_EQ(during, nullptr);
  Begin(stream);
  ASSERT_EQ(aclmdlRICaptureGetInfo(stream, &status, &during), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  aclmdlRI graph = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_SUCCESS);
  EXPECT_EQ(graph, during);
  EXPECT_EQ(StatusOf(stream), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_GRAPHS), 1);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclmdlRICaptureGetInfo(stream, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRICaptureGetInfo(nullptr, &status, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(CaptureTest, BeginAndEndRefuse) {
  const aclrtStream stream = NewStream();
  aclrtStream default_stream = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&default_stream), ACL_SUCCESS);
  const auto relaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(aclmdlRICaptureBegin(nullptr, relaxed), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlRICaptureBegin(default_stream, relaxed), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclmdlRICaptureBegin(stream, static_cast<aclmdlRICaptureMode>(3)),
            ACL_ERROR_RT_PARAM_INVALID);
  aclmdlRI graph = nullptr;
  EXPECT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_ERROR_RT_STREAM_NOT_CAPTURED);
  EXPECT_EQ(aclmdlRICaptureEnd(default_stream, &graph), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclmdlRICaptureEnd(nullptr, &graph), ACL_ERROR_INVALID_PARAM);
  Begin(stream);
  EXPECT_EQ(aclmdlRICaptureBegin(stream, relaxed), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclmdlRICaptureEnd(stream, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  ExpectEnd(stream, ACL_SUCCESS);
}

TEST_F(CaptureTest, ACapturedStreamIsNotWaitedForNorDestroyed) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  const aclrtEvent later = NewEvent();
  void* const memory = NewDeviceMemory(kBytes);
  char host[kBytes] = {};
  Begin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtStreamQuery(stream, &status), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_STREAM_CAPTURED);
  EXPECT_EQ(aclrtMemcpyAsync(memory, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_ERROR_RT_STREAM_CAPTURED);

  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(later, NewStream()), ACL_SUCCESS);
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  float ms = 0;
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_EVENT_CAPTURED);
  EXPECT_EQ(aclrtQueryEventStatus(event, &recorded), ACL_ERROR_RT_EVENT_CAPTURED);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event, later), ACL_ERROR_RT_EVENT_CAPTURED);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, later, event), ACL_ERROR_RT_EVENT_CAPTURED);
  ExpectEnd(stream, ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS) << "as never recorded";
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

// What a thread may do at once while a capture is under way: its own mode, that of the capture, and
// whether it began the capture.
TEST_F(CaptureTest, ModesForbidTheUseOfMemoryAtOnce) {
  constexpr auto kGlobal = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
  constexpr auto kThreadLocal = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
  constexpr auto kRelaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  const struct {
    aclmdlRICaptureMode capture;
    aclmdlRICaptureMode thread;
    bool may_own;
    bool may_other;
  } kCases[] = {
      {kGlobal, kGlobal, false, false},          {kGlobal, kThreadLocal, false, true},
      {kGlobal, kRelaxed, true, true},           {kThreadLocal, kGlobal, false, true},
      {kThreadLocal, kThreadLocal, false, true}, {kThreadLocal, kRelaxed, true, true},
      {kRelaxed, kGlobal, true, true},           {kRelaxed, kThreadLocal, true, true},
      {kRelaxed, kRelaxed, true, true},
  };
  const aclrtStream stream = NewStream();
  const aclrtStream free_stream = NewStream();
  void* const memory = NewDeviceMemory(kBytes);
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, kBytes), ACL_SUCCESS);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  for (const auto& c : kCases) {
    const auto expect = [&](bool may) {
      const std::string name = testing::PrintToString(c.capture) + " " +
                               testing::PrintToString(c.thread) + (may ? " may" : " may not");
      char host[kBytes] = {};
      const aclError at_once = may ? ACL_SUCCESS : ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT;
      const aclError queued = may ? ACL_SUCCESS : ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC;
      EXPECT_EQ(SetThreadMode(c.thread), ACL_SUCCESS);
      EXPECT_EQ(aclrtMemset(memory, kBytes, 1, kBytes), at_once) << name;
      // Page-locked memory is filled at once by this function, too.
      EXPECT_EQ(aclrtMemsetD32Async(pinned, kBytes, 1, 1, free_stream), at_once) << name;
      EXPECT_EQ(aclrtMemcpy(host, kBytes, memory, kBytes, ACL_MEMCPY_DEVICE_TO_HOST), at_once)
          << name;
      EXPECT_EQ(aclrtMemcpy2d(host, 8, memory, 8, 8, 8, ACL_MEMCPY_DEVICE_TO_HOST), at_once)
          << name;
      EXPECT_EQ(
          aclrtMemcpyAsync(host, kBytes, memory, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, free_stream),
          queued)
          << name;
      EXPECT_EQ(SetThreadMode(kGlobal), ACL_SUCCESS);
    };
    Begin(stream, c.capture);
    expect(c.may_own);
    std::thread([&] {
      ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
      expect(c.may_other);
    }).join();
    ExpectEnd(stream, ACL_SUCCESS);
    EXPECT_EQ(aclrtMemset(memory, kBytes, 1, kBytes), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

TEST_F(CaptureTest, TheThreadsModeIsExchanged) {
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  mode = static_cast<aclmdlRICaptureMode>(3);
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(&mode), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclmdlRICaptureThreadExchangeMode(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(CaptureTest, OnlyTheModeRelaxedLetsAnotherThreadEnd) {
  const aclrtStream stream = NewStream();
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  const struct {
    aclmdlRICaptureMode mode;
    aclError code;
  } kCases[] = {
      {ACL_MODEL_RI_CAPTURE_MODE_GLOBAL, ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD},
      {ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL, ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD},
      {ACL_MODEL_RI_CAPTURE_MODE_RELAXED, ACL_SUCCESS},
  };
  for (const auto& c : kCases) {
    Begin(stream, c.mode);
    std::thread([&] {
      ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
      ExpectEnd(stream, c.code);
    }).join();
  }
}

TEST_F(CaptureTest, AStreamJoinsByAnEventAndMustBeJoinedBack) {
  const aclrtStream origin = NewStream();
  const aclrtStream side = NewStream();
  const aclrtStream third = NewStream();
  const aclrtEvent forked = NewEvent();
  const aclrtEvent joined = NewEvent();
  const auto fork = [&](aclrtStream from, aclrtStream to) {
    ASSERT_EQ(aclrtRecordEvent(forked, from), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(to, forked), ACL_SUCCESS) << RecentMessage();
    EXPECT_EQ(StatusOf(to), ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  };
  const auto join = [&](aclrtStream from, aclrtStream to) {
    ASSERT_EQ(aclrtRecordEvent(joined, from), ACL_SUCCESS);
    ASSERT_EQ(aclrtStreamWaitEvent(to, joined), ACL_SUCCESS);
  };
  const auto work = [&](aclrtStream stream) { ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS); };
  const struct {
    const char* name;
    std::function<void()> record;
    aclError code;
  } kCases[] = {
      {"joined back", [&] { fork(origin, side), work(side), join(side, origin); }, ACL_SUCCESS},
      {"not joined back", [&] { fork(origin, side), work(side); }, ACL_ERROR_RT_STREAM_UNJOINED},
      {"a task after the join", [&] { fork(origin, side), join(side, origin), work(side); },
       ACL_ERROR_RT_STREAM_UNJOINED},
      {"through another stream",
       [&] { fork(origin, side), fork(side, third), join(third, side), join(side, origin); },
       ACL_SUCCESS},
      {"into another stream only",
       [&] { fork(origin, side), fork(origin, third), join(side, third); },
       ACL_ERROR_RT_STREAM_UNJOINED},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    Begin(origin);
    c.record();
    ExpectEnd(origin, c.code);
    for (const aclrtStream stream : {origin, side, third}) {
      EXPECT_EQ(StatusOf(stream), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    }
  }
}

TEST_F(CaptureTest, AJoinedStreamDoesNotEndTheCapture) {
  const aclrtStream origin = NewStream();
  const aclrtStream side = NewStream();
  const aclrtEvent event = NewEvent();
  Begin(origin);
  ASSERT_EQ(aclrtRecordEvent(event, origin), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(side, event), ACL_SUCCESS);
  aclmdlRI graph = nullptr;
  EXPECT_EQ(aclmdlRICaptureEnd(side, &graph), ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
  ASSERT_EQ(aclrtRecordEvent(event, side), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(origin, event), ACL_SUCCESS);
  ExpectEnd(origin, ACL_SUCCESS);
}

TEST_F(CaptureTest, EventsThatACaptureRefuses) {
  const aclrtStream stream = NewStream();
  const aclrtStream outside = NewStream();
  const aclrtEvent recorded = NewEvent();
  const aclrtEvent event = NewEvent();
  aclrtEvent plain = nullptr, flagged = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&plain), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateEventWithFlag(&flagged, ACL_EVENT_SYNC), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(recorded, outside), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(plain, outside), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(outside), ACL_SUCCESS);
  Begin(stream);
  EXPECT_EQ(aclrtRecordEvent(plain, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtRecordEvent(flagged, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtStreamWaitEvent(stream, plain), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtStreamWaitEvent(stream, flagged), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtResetEvent(plain, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtRecordEventWithFlag(event, stream, ACL_EVENT_RECORD_EXTERNAL),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtStreamWaitEvent(stream, recorded), ACL_ERROR_RT_CAPTURE_DEPENDENCY);
  EXPECT_EQ(aclrtStreamWaitEvent(stream, event), ACL_SUCCESS) << "never recorded";
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(nullptr, event), ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
  ExpectEnd(stream, ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(nullptr, event), ACL_SUCCESS) << "as never recorded";
}

TEST_F(CaptureTest, ARecordOutsideReplacesTheCapturedOne) {
  const aclrtStream stream = NewStream();
  const aclrtEvent event = NewEvent();
  Begin(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
  ExpectEnd(stream, ACL_SUCCESS);
}

TEST_F(CaptureTest, AWaitAcrossCapturesInvalidatesBoth) {
  const aclrtStream first = NewStream();
  const aclrtStream second = NewStream();
  const aclrtEvent event = NewEvent();
  Begin(first);
  Begin(second);
  ASSERT_EQ(aclrtRecordEvent(event, first), ACL_SUCCESS);
  EXPECT_EQ(aclrtStreamWaitEvent(second, event), ACL_ERROR_STREAM_CAPTURE_CONFLICT);
  for (const aclrtStream stream : {first, second}) {
    EXPECT_EQ(StatusOf(stream), ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(Launch(stream, [] {}), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CAPTURED);
    aclmdlRI graph = &graph;
    EXPECT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
  }
  EXPECT_EQ(aclrtStreamWaitEvent(NewStream(), event), ACL_SUCCESS);
}

TEST_F(CaptureTest, ThereIsALimitOfTasks) {
  constexpr int kMaxTasks = 65536;
  const aclrtStream stream = NewStream();
  void* const memory = NewDeviceMemory(kBytes);
  Begin(stream);
  int recorded = 0;
  aclError code = ACL_SUCCESS;
  while (recorded <= kMaxTasks) {
    code = aclrtMemsetAsync(memory, kBytes, 1, kBytes, stream);
    if (code != ACL_SUCCESS) break;
    ++recorded;
  }
  EXPECT_EQ(recorded, kMaxTasks);
  EXPECT_EQ(code, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
  EXPECT_NE(RecentMessage().find("65536"), std::string::npos);
  ExpectEnd(stream, ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, AbortsInvalidateAndResetsForgetCaptures) {
  const aclrtStream stream = NewStream();
  Begin(stream);
  ASSERT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  ExpectEnd(stream, ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
  Begin(stream);
  ASSERT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_GRAPHS), 0);
}

TEST_F(CaptureTest, AContextTakesItsCapturesAndGraphsAlong) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  Begin(stream);
  aclmdlRI graph = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_SUCCESS);
  Begin(stream);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_GRAPHS), 2);
  ASSERT_EQ(aclrtDestroyContext(context), ACL_SUCCESS);
  EXPECT_EQ(opserveHostCount(OPSERVE_HOST_GRAPHS), 0);
}

TEST_F(CaptureTest, CallbacksOfSubscribedThreadsAreNotCaptured) {
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream), ACL_SUCCESS);
  Begin(stream);
  const auto callback = [](void*) {};
  EXPECT_EQ(aclrtLaunchCallback(callback, nullptr, ACL_CALLBACK_NO_BLOCK, stream),
            ACL_ERROR_RT_STREAM_CAPTURED);
  ExpectEnd(stream, ACL_SUCCESS);
  ASSERT_EQ(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), stream), ACL_SUCCESS);
}

}  // namespace
}  // namespace opserve::host_cann
