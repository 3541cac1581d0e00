// Writes where they must not be, and buffers that come back where they must not.
#include <cstring>
#include <string>
#include <vector>

#include "server/device/memory/memory_guard.h"
#include "tests/unit/server/memory_pool_fixture.h"

namespace opserve::server {
namespace {

constexpr size_t kBytes = 1000;

class MemoryGuardTest : public MemoryPoolFixture {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    MemoryPoolFixture::SetUp();
    CreatePool({.guard = true});
  }

  // As a kernel would, on the stream.
  void Write(const DeviceBuffer& buffer, ptrdiff_t offset, aclrtStream stream) {
    char* const to = static_cast<char*>(buffer.data()) + offset;
    ASSERT_EQ(TestAcl().aclrtMemsetAsync(to, 1, 1, 1, stream), 0);
  }

  std::vector<unsigned char> Read(const DeviceBuffer& buffer) {
    std::vector<unsigned char> bytes(buffer.size());
    EXPECT_EQ(TestAcl().aclrtMemcpy(bytes.data(), bytes.size(), buffer.data(), bytes.size(),
                                    ACL_MEMCPY_DEVICE_TO_HOST),
              0);
    return bytes;
  }
};

TEST_F(MemoryGuardTest, AWriteBesideABufferAbortsWhenItComesBack) {
  struct Case {
    ptrdiff_t offset;
    const char* text;
  };
  for (const Case& c : {Case{-1, "before device memory has changed at byte -1 "},
                        Case{-512, "before device memory has changed at byte -512 "},
                        Case{kBytes, "behind device memory has changed at byte 1000 "},
                        Case{kBytes + 512, "behind device memory has changed at byte 1512 "}}) {
    for (const bool has_stream : {true, false}) {
      DeviceBuffer buffer = Lend(kBytes, has_stream ? stream(0) : nullptr, /*tenant=*/7);
      const auto damage = [&] {
        Write(buffer, c.offset, stream(0));
        ASSERT_EQ(TestAcl().aclrtSynchronizeStream(stream(0)), 0);
        buffer = DeviceBuffer();
      };
      EXPECT_DEATH(damage(), std::string(c.text) + "of a buffer of 1000 bytes of tenant 7");
    }
  }
}

TEST_F(MemoryGuardTest, AWriteToMemoryThatWasGivenBackAbortsBeforeItIsLentAgain) {
  DeviceBuffer buffer = Lend(kBytes, stream(0));
  DeviceBuffer other = Lend(kBytes, stream(0));
  char* const data = static_cast<char*>(buffer.data());
  buffer = DeviceBuffer();
  const auto damage = [&] {
    ASSERT_EQ(TestAcl().aclrtMemsetAsync(data, 1, 1, 1, stream(1)), 0);
    ASSERT_EQ(TestAcl().aclrtSynchronizeStream(stream(1)), 0);
    Lend(kBytes, stream(0));
  };
  EXPECT_DEATH(damage(), "memory that was given back has changed at byte 0 ");
}

TEST_F(MemoryGuardTest, ABufferThatComesBackTwiceAborts) {
  DeviceBuffer buffer = Lend(kBytes, stream(0));
  // Another one of the same block, as only a fault in the daemon would make it.
  alignas(DeviceBuffer) char copy[sizeof(DeviceBuffer)];
  std::memcpy(copy, static_cast<const void*>(&buffer), sizeof(copy));
  buffer = DeviceBuffer();
  EXPECT_DEATH(reinterpret_cast<DeviceBuffer*>(copy)->~DeviceBuffer(), "given back twice");
}

TEST_F(MemoryGuardTest, ABufferOfAnotherPoolAborts) {
  const DeviceBuffer buffer = Lend(kBytes, stream(0));
  DeviceMemoryPool other(TestAcl(), {.guard = true});
  EXPECT_DEATH(other.LeaveStream(buffer), "to another pool than its own");
}

TEST_F(MemoryGuardTest, FreshMemoryHasThePatternAndBytesMayBeWrittenToTheLast) {
  // A scrub would overwrite the pattern, on the stream.
  CreatePool({.scrub = DeviceMemoryPool::Scrub::kNever, .guard = true});
  for (int round = 0; round < 2; ++round) {
    const DeviceBuffer buffer = Lend(kBytes, stream(0));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBlockAlignment, 0u);
    EXPECT_EQ(Read(buffer), std::vector<unsigned char>(kBytes, 0xdb));
    Write(buffer, 0, stream(0));
    Write(buffer, kBytes - 1, stream(0));
  }
}

TEST_F(MemoryGuardTest, RightUseIsLeftAlone) {
  CreatePool({.region_bytes = 64 * kKiB, .guard = true});
  std::vector<DeviceBuffer> held(16);
  for (int i = 0; i < 2000; ++i) {
    DeviceBuffer& buffer = held[static_cast<size_t>(i * 7 % 16)];
    const size_t bytes = 1 + static_cast<size_t>(i * 733 % 5000);
    const auto tenant = static_cast<uint32_t>(i % 3);
    buffer = Lend(bytes, i % 5 == 0 ? nullptr : stream(i % kStreams), tenant);
    ASSERT_EQ(TestAcl().aclrtMemsetAsync(buffer.data(), bytes, 1, bytes, stream(i % kStreams)), 0);
    if (i % 5 == 0) {
      ASSERT_EQ(TestAcl().aclrtSynchronizeStream(stream(i % kStreams)), 0);
    }
    if (i % 11 == 0) pool().StreamIsIdle(stream(i % kStreams));
    if (i % 13 == 0) pool().StreamWasAborted(stream(i % kStreams));
    if (i % 97 == 0) pool().Trim();
  }
}

}  // namespace
}  // namespace opserve::server
