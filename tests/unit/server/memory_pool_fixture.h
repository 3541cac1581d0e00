// A device memory pool on device 0 of the host CANN, streams for it, and a replaceable aclrtMalloc.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/memory/memory_pool.h"
#include "tests/await.h"
#include "tests/bytes.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {

inline constexpr size_t kKiB = size_t{1} << 10;

// While it lives, `function` is called instead of aclrtMalloc, from any thread.
class ReplacedMalloc {
 public:
  using Function = std::function<aclError(void** data, size_t bytes)>;

  explicit ReplacedMalloc(Function function) : function_(std::move(function)) {
    real_ = std::exchange(Pointer(), [](void** data, size_t bytes, aclrtMemMallocPolicy) {
      return current_->function_(data, bytes);
    });
    current_ = this;
  }
  ~ReplacedMalloc() { Pointer() = real_; }
  ReplacedMalloc(const ReplacedMalloc&) = delete;
  ReplacedMalloc& operator=(const ReplacedMalloc&) = delete;

  static aclError Real(void** data, size_t bytes) {
    return current_->real_(data, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  }

 private:
  static decltype(&::aclrtMalloc)& Pointer() { return MutableTestAcl().aclrtMalloc; }

  inline static ReplacedMalloc* current_ = nullptr;
  Function function_;
  decltype(&::aclrtMalloc) real_ = nullptr;
};

// Calls of ACL functions so far, of all that the daemon can make.
inline uint64_t NumAclCalls() {
  const auto calls =
      reinterpret_cast<decltype(&opserveHostCalls)>(dlsym(RTLD_DEFAULT, "opserveHostCalls"));
  uint64_t sum = 0;
#define OPSERVE_ACL_CORE(function) sum += calls(#function);
#define OPSERVE_ACL_OPTIONAL OPSERVE_ACL_CORE
#include "server/device/acl/acl_functions.inc"
#undef OPSERVE_ACL_OPTIONAL
#undef OPSERVE_ACL_CORE
  return sum;
}

// What the pools under test have taken from device 0.
inline uint64_t BytesTakenFromDevice() {
  return reinterpret_cast<decltype(&opserveHostDeviceCount)>(
      dlsym(RTLD_DEFAULT, "opserveHostDeviceCount"))(0, OPSERVE_HOST_ALLOCATED_BYTES);
}

class MemoryPoolFixture : public ::testing::Test {
 protected:
  using Pool = DeviceMemoryPool;
  using BlockState = Pool::Snapshot::BlockState;
  static constexpr int kStreams = 8;

  void SetUp() override {
    BindThisThread();
    for (aclrtStream& stream : streams_) ASSERT_EQ(TestAcl().aclrtCreateStream(&stream), 0);
  }
  void TearDown() override {
    ClearFaults();
    pool_.reset();
    for (aclrtStream stream : streams_) EXPECT_EQ(TestAcl().aclrtDestroyStream(stream), 0);
    EXPECT_EQ(BytesTakenFromDevice(), 0u);
  }

  static void BindThisThread() { ASSERT_EQ(TestAcl().aclrtSetDevice(0), 0); }

  Pool& CreatePool(Pool::Options options) {
    pool_ = std::make_unique<Pool>(TestAcl(), options);
    return *pool_;
  }
  Pool& pool() { return *pool_; }
  aclrtStream stream(int i) const { return streams_[i]; }

  // Lends, or ends the test.
  DeviceBuffer Lend(size_t bytes, aclrtStream stream, uint32_t tenant = 1,
                    Pool::Outcome* outcome = nullptr) {
    auto buffer = pool_->Allocate({.bytes = bytes, .stream = stream, .tenant = tenant}, outcome);
    if (!buffer.ok()) ADD_FAILURE() << bytes << " bytes: " << buffer.status();
    return *std::move(buffer);
  }
  Pool::Outcome OutcomeOf(size_t bytes, aclrtStream stream, uint32_t tenant = 1) {
    Pool::Outcome outcome = Pool::kOutcomes;
    Lend(bytes, stream, tenant, &outcome);
    return outcome;
  }
  absl::Status StatusOf(const Pool::Allocation& allocation) {
    return pool_->Allocate(allocation).status();
  }

  uint64_t NumBlocks(BlockState state) const {
    uint64_t count = 0;
    for (const auto& region : pool_->snapshot().regions) {
      for (const auto& block : region.blocks) count += block.state == state;
    }
    return count;
  }

  // Waits until so many allocations wait.
  void AwaitWaiting(uint64_t count) {
    EXPECT_TRUE(Await([&] { return pool_->statistics().waiting == count; }));
  }

 private:
  aclrtStream streams_[kStreams] = {};
  std::unique_ptr<Pool> pool_;
};

}  // namespace opserve::server
