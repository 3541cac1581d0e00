// Callbacks on subscribed threads, and host functions.
#include <pthread.h>

#include <atomic>
#include <thread>

#include "tests/await.h"
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

uint64_t ThisThread() { return static_cast<uint64_t>(pthread_self()); }

void Increment(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

class CallbackTest : public RuntimeTest {
 protected:
  // Subscribes this test's thread.
  aclrtStream NewSubscribedStream() {
    const aclrtStream stream = NewStream();
    EXPECT_EQ(aclrtSubscribeReport(ThisThread(), stream), ACL_SUCCESS) << RecentMessage();
    return stream;
  }
  std::atomic<int> calls_ = 0;
};

TEST_F(CallbackTest, RunsOnTheSubscribedThreadOnly) {
  const aclrtStream stream = NewSubscribedStream();
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_NO_BLOCK, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_REPORT_TIMEOUT);
  std::thread([] { EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_THREAD_SUBSCRIBE); }).join();
}

TEST_F(CallbackTest, BlockHoldsLaterTasks) {
  const aclrtStream stream = NewSubscribedStream();
  std::atomic<bool> ran = false;
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  ASSERT_EQ(Launch(stream, [&] { ran = calls_ == 1; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_FALSE(ran);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(CallbackTest, OneThreadServesManyStreamsInTheirOrder) {
  std::vector<int> order;
  struct Step {
    std::vector<int>* order;
    int number;
  };
  const auto append = [](void* data) {
    const auto& step = *static_cast<Step*>(data);
    step.order->push_back(step.number);
  };
  const aclrtStream first = NewSubscribedStream();
  const aclrtStream second = NewSubscribedStream();
  Step steps[] = {{&order, 0}, {&order, 1}, {&order, 2}};
  ASSERT_EQ(aclrtLaunchCallback(append, &steps[0], ACL_CALLBACK_NO_BLOCK, first), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(append, &steps[1], ACL_CALLBACK_NO_BLOCK, second), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(append, &steps[2], ACL_CALLBACK_NO_BLOCK, second), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(second), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(CallbackTest, SubscriptionRules) {
  const aclrtStream stream = NewSubscribedStream();
  EXPECT_EQ(aclrtSubscribeReport(ThisThread(), stream), ACL_ERROR_RT_STREAM_SUBSCRIBE);
  EXPECT_EQ(aclrtLaunchHostFunc(stream, Increment, &calls_), ACL_ERROR_RT_STREAM_SUBSCRIBE);
  EXPECT_EQ(aclrtUnSubscribeReport(ThisThread() + 1, stream), ACL_ERROR_RT_THREAD_SUBSCRIBE);

  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSubscribeReport(ThisThread(), nullptr), ACL_ERROR_RT_PARAM_INVALID);

  ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(ThisThread(), stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  EXPECT_EQ(aclrtLaunchHostFunc(stream, Increment, &calls_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(calls_, 1);
}

TEST_F(CallbackTest, UnsubscribingReleasesABlockedStream) {
  const aclrtStream other = NewSubscribedStream();  // the thread stays subscribed
  const aclrtStream stream = NewSubscribedStream();
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtUnSubscribeReport(ThisThread(), stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_REPORT_TIMEOUT);
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(aclrtUnSubscribeReport(ThisThread(), other), ACL_SUCCESS);
}

TEST_F(CallbackTest, UnsubscribingDropsCallbacksThatAreDueTogetherWithOneThatRuns) {
  const aclrtStream first = NewSubscribedStream();
  aclrtStream second = NewSubscribedStream();
  const auto unsubscribe = [](void* stream) {
    EXPECT_EQ(aclrtUnSubscribeReport(ThisThread(), *static_cast<aclrtStream*>(stream)),
              ACL_SUCCESS);
  };
  ASSERT_EQ(aclrtLaunchCallback(unsubscribe, &second, ACL_CALLBACK_NO_BLOCK, first), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_NO_BLOCK, second), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(second), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_NO_BLOCK, first), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(first), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(calls_, 1) << "of the first stream only";
}

TEST_F(CallbackTest, AWaitingThreadLearnsThatItsStreamIsGone) {
  const aclrtStream stream = NewStream();
  std::atomic<uint64_t> id = 0;
  std::atomic<aclError> result = ACL_SUCCESS;
  std::thread thread([&] {
    id = ThisThread();
    EXPECT_TRUE(Await([&] {
      result = aclrtProcessReport(60000);
      // Before it was subscribed it finds out at once and asks again.
      if (result == ACL_ERROR_RT_THREAD_SUBSCRIBE && calls_ == 0) result = ACL_SUCCESS;
      return result != ACL_SUCCESS && result != ACL_ERROR_RT_REPORT_TIMEOUT;
    }));
  });
  EXPECT_TRUE(Await([&] { return id != 0; }));
  ASSERT_EQ(aclrtSubscribeReport(id, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
  thread.join();
  EXPECT_EQ(result, ACL_ERROR_RT_THREAD_SUBSCRIBE);
  EXPECT_EQ(calls_, 1);
}

TEST_F(CallbackTest, ComesAfterAFailedTaskToo) {
  const aclrtStream stream = NewSubscribedStream();
  const aclrtEvent event = NewEvent();
  ASSERT_EQ(opserveHostInjectFaults("kernel=*,code=507035"), ACL_SUCCESS);
  ASSERT_EQ(Launch(stream, [] {}), ACL_SUCCESS);
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_NO_BLOCK, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  EXPECT_EQ(aclrtQueryEventStatus(event, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

TEST_F(CallbackTest, HostFunctionsBlockTheStream) {
  const aclrtStream stream = NewStream();
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtLaunchHostFunc(stream, Increment, &calls_), ACL_SUCCESS);
  gate.AwaitArrival();
  EXPECT_EQ(calls_, 0);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_EQ(calls_, 1);
}

TEST_F(CallbackTest, AbortEndsABlockingCallback) {
  const aclrtStream stream = NewSubscribedStream();
  ASSERT_EQ(aclrtLaunchCallback(Increment, &calls_, ACL_CALLBACK_BLOCK, stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  aclrtProcessReport(1);  // whether it finds the dropped callback or not
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace opserve::host_cann
