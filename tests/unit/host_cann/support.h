// What the tests of the host CANN's runtime share.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/opserve/host_cann.h"
#include "ops/host_cann/runtime/launch.h"

namespace opserve::host_cann {

// The environment that support.cc sets before the first call.
inline constexpr uint64_t kDeviceBytes = 64 << 20;
inline constexpr int kNumDevices = 2;
inline constexpr uint64_t kTimeoutIntervalUs = 1000;

// aclGetRecentErrMsg, never null.
std::string RecentMessage();

// Holds a stream: it stops at the gate until Open. When destroyed it opens and lets the stream
// pass; a closed gate must not be dropped with the stream's tasks before the stream has arrived.
class Gate {
 public:
  ~Gate();

  // Queues the gate on a stream.
  void Close(aclrtStream stream);
  // Waits until the stream has arrived.
  void AwaitArrival();
  void Open();

 private:
  static void Hold(void* gate);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  bool arrived_ = false;
  bool passed_ = false;
  bool open_ = false;
};

// Counts that must be the same after a test as before it.
struct LiveCounts {
  static LiveCounts Now();
  bool operator==(const LiveCounts&) const = default;

  std::vector<int64_t> values;
};
std::ostream& operator<<(std::ostream& out, const LiveCounts& counts);

// Binds the test's thread to device 0, and checks at the end that nothing was left behind. A test
// may reset the device itself.
class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  static aclrtStream NewStream();
  static aclrtEvent NewEvent(uint32_t flags = ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
  static void* NewDeviceMemory(size_t bytes);

  // Queues a kernel without memory that runs `run`.
  static aclError Launch(aclrtStream stream, std::function<void()> run,
                         const char* name = "aclnnTest");

 private:
  LiveCounts before_;
};

}  // namespace opserve::host_cann
