#include "tests/unit/host_cann/support.h"

#include <cstdlib>

namespace opserve::host_cann {
namespace {

// The library reads its environment with the first call, which comes after static initialisation.
const bool kEnvironmentIsSet = [] {
  setenv("OPSERVE_HOST_DEVICES", "2", 1);
  setenv("OPSERVE_HOST_DEVICE_MEMORY", "64M", 1);
  setenv("OPSERVE_HOST_THREADS", "4", 1);
  setenv("OPSERVE_HOST_TIMEOUT_INTERVAL_US", "1000", 1);
  unsetenv("OPSERVE_HOST_FAULTS");
  unsetenv("OPSERVE_HOST_CHECKED");
  unsetenv("OPSERVE_HOST_LAUNCH_US");
  unsetenv("ASCEND_RT_VISIBLE_DEVICES");
  return true;
}();

}  // namespace

std::string RecentMessage() {
  const char* const message = aclGetRecentErrMsg();
  return message == nullptr ? "" : message;
}

void Gate::Hold(void* gate) {
  auto& self = *static_cast<Gate*>(gate);
  std::unique_lock lock(self.mutex_);
  self.arrived_ = true;
  self.changed_.notify_all();
  self.changed_.wait(lock, [&] { return self.open_; });
  self.passed_ = true;
  self.changed_.notify_all();
}

Gate::~Gate() {
  Open();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return passed_ || !closed_; });
}

void Gate::Close(aclrtStream stream) {
  ASSERT_EQ(aclrtLaunchHostFunc(stream, &Gate::Hold, this), ACL_SUCCESS) << RecentMessage();
  closed_ = true;
}

void Gate::AwaitArrival() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return arrived_; });
}

void Gate::Open() {
  std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

LiveCounts LiveCounts::Now() {
  LiveCounts counts;
  for (int i = 0; i < OPSERVE_HOST_NUM_COUNTERS; ++i) {
    if (i == OPSERVE_HOST_LAUNCHES || i == OPSERVE_HOST_CHARGED_LAUNCHES) continue;
    counts.values.push_back(opserveHostCount(static_cast<opserveHostCounter>(i)));
  }
  return counts;
}

std::ostream& operator<<(std::ostream& out, const LiveCounts& counts) {
  for (const int64_t value : counts.values) out << value << ' ';
  return out;
}

void RuntimeTest::SetUp() {
  ASSERT_TRUE(kEnvironmentIsSet);
  before_ = LiveCounts::Now();
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS) << RecentMessage();
}

void RuntimeTest::TearDown() {
  opserveHostClearFaults();
  for (int32_t device = 0; device < kNumDevices; ++device) {
    int32_t active = 0;
    ASSERT_EQ(aclrtGetPrimaryCtxState(device, nullptr, &active), ACL_SUCCESS);
    if (active != 0) {
      EXPECT_EQ(aclrtResetDeviceForce(device), ACL_SUCCESS) << RecentMessage();
    }
  }
  EXPECT_EQ(LiveCounts::Now(), before_);
  RecentMessage();
}

aclrtStream RuntimeTest::NewStream() {
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS) << RecentMessage();
  return stream;
}

aclrtEvent RuntimeTest::NewEvent(uint32_t flags) {
  aclrtEvent event = nullptr;
  EXPECT_EQ(aclrtCreateEventExWithFlag(&event, flags), ACL_SUCCESS) << RecentMessage();
  return event;
}

void* RuntimeTest::NewDeviceMemory(size_t bytes) {
  void* memory = nullptr;
  EXPECT_EQ(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS) << RecentMessage();
  return memory;
}

aclError RuntimeTest::Launch(aclrtStream stream, std::function<void()> run, const char* name) {
  KernelLaunch launch;
  launch.name = name;
  launch.run = [run = std::move(run)](kernels::TaskRunner&) { run(); };
  return LaunchKernel(stream, std::move(launch));
}

}  // namespace opserve::host_cann
