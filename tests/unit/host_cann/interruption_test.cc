// Kernels that are not wanted any more: they end between two of their tasks.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/await.h"
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

// A kernel of more tasks than a test could wait for, and what has become of it.
class EndlessKernel {
 public:
  static constexpr int64_t kTasks = 1'000'000;

  void LaunchOn(aclrtStream stream) {
    KernelLaunch launch;
    launch.name = "aclnnTest";
    launch.run = [this](kernels::TaskRunner& cores) {
      cores.Run(kTasks, &EndlessKernel::RunTask, this);
      is_over_ = true;
    };
    ASSERT_EQ(LaunchKernel(stream, std::move(launch)), ACL_SUCCESS);
    EXPECT_TRUE(Await([this] { return tasks_ > 0; }));
  }

  bool is_over() const { return is_over_; }
  void AwaitEnd() const {
    EXPECT_TRUE(Await([this] { return is_over(); }));
  }
  bool was_cut_short() const { return is_over_ && tasks_ < kTasks; }

 private:
  static void RunTask(void* context, int64_t) {
    ++static_cast<EndlessKernel*>(context)->tasks_;
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }

  std::atomic<int64_t> tasks_ = 0;
  std::atomic<bool> is_over_ = false;
};

class InterruptionTest : public RuntimeTest {};

TEST_F(InterruptionTest, AbortedStreamEndsItsKernelAndRunsTheNext) {
  EndlessKernel kernel;
  const aclrtStream stream = NewStream();
  kernel.LaunchOn(stream);
  EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
  EXPECT_TRUE(kernel.was_cut_short());
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  bool ran = false;
  ASSERT_EQ(Launch(stream, [&] { ran = true; }), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(ran);
}

TEST_F(InterruptionTest, DeviceAbortEndsTheKernelsOfAllStreams) {
  EndlessKernel kernels[2];
  for (EndlessKernel& kernel : kernels) kernel.LaunchOn(NewStream());
  EXPECT_EQ(aclrtDeviceTaskAbort(0, 0), ACL_SUCCESS);
  for (const EndlessKernel& kernel : kernels) EXPECT_TRUE(kernel.was_cut_short());
}

TEST_F(InterruptionTest, StreamThatIsDestroyedByForceEndsItsKernel) {
  EndlessKernel kernel;
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  kernel.LaunchOn(stream);
  EXPECT_EQ(aclrtDestroyStreamForce(stream), ACL_SUCCESS);
  kernel.AwaitEnd();
  EXPECT_TRUE(kernel.was_cut_short());
}

TEST_F(InterruptionTest, ForcedResetEndsKernels) {
  EndlessKernel kernel;
  kernel.LaunchOn(nullptr);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_SUCCESS);
  EXPECT_TRUE(kernel.was_cut_short());
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST_F(InterruptionTest, LostDeviceEndsKernels) {
  EndlessKernel kernel;
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  kernel.LaunchOn(nullptr);
  ASSERT_EQ(opserveHostInjectFaults("device=1,lost"), ACL_SUCCESS);
  kernel.AwaitEnd();
  EXPECT_TRUE(kernel.was_cut_short());
  EXPECT_EQ(aclrtResetDeviceForce(1), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST_F(InterruptionTest, EndOfAclEndsKernels) {
  EndlessKernel kernel;
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  kernel.LaunchOn(NewStream());
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  kernel.AwaitEnd();
  EXPECT_TRUE(kernel.was_cut_short());
}

TEST_F(InterruptionTest, KernelsOfMuchWorkDoNotRunOnTheCallersThread) {
  for (const uint64_t work : {uint64_t{2}, uint64_t{1} << 40}) {
    std::atomic<std::thread::id> thread;
    KernelLaunch launch;
    launch.name = "aclnnTest";
    launch.work = work;
    launch.run = [&](kernels::TaskRunner&) { thread = std::this_thread::get_id(); };
    const aclrtStream stream = NewStream();
    ASSERT_EQ(LaunchKernel(stream, std::move(launch)), ACL_SUCCESS);
    // A wait with an end leaves the work to the stream's own thread.
    ASSERT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 60000), ACL_SUCCESS);
    EXPECT_EQ(thread == std::this_thread::get_id(), work == 2) << work;
  }
}

}  // namespace
}  // namespace opserve::host_cann
