#include "server/run/window_transfer.h"

#include <sys/stat.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/lane_fixture.h"
#include "tests/unit/server/shared_files.h"

namespace opserve::server {
namespace {

constexpr uint64_t kBytes = 256;

// A way for the device to get at the bytes of a window.
struct Kind {
  const char* name;
  uint64_t offset;  // in the region: one of 32 bytes' alignment can be used in place
  bool may_shrink;
  bool is_copied;
};

constexpr Kind kKinds[] = {
    {"InPlace", 64, false, false},
    {"Copied", 68, false, true},
    {"InPlaceShrinkable", 64, true, false},
    {"CopiedShrinkable", 68, true, true},
};

class WindowTransferTest : public LaneFixture {
 protected:
  SharedWindow WindowOf(const Kind& kind, const FileDescriptor& file) {
    const SharedRegionSpec spec = {.size = kPageBytes};
    SharedWindow window;
    window.region = kind.may_shrink
                        ? *SharedRegion::MapShrinkable(file.get(), spec, retire_, NoCharge)
                        : *SharedRegion::Map(file.get(), spec, retire_, NoCharge);
    window.range.offset = kind.offset;
    window.range.size = kBytes;
    return window;
  }

  DeviceBuffer DeviceMemory() {
    return *device_->memory().Allocate({.bytes = kBytes, .stream = lane_->stream()});
  }

 private:
  static absl::StatusOr<std::shared_ptr<void>> NoCharge() { return nullptr; }

  const SharedRegion::Retire retire_ = [](int32_t /*device*/, auto registration) {
    registration.reset();
  };
};

TEST_F(WindowTransferTest, TheDeviceFindsTheBytesOfAnInput) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const FileDescriptor file = SealedFile(kPageBytes);
    const std::string contents(kBytes, 'i');
    ASSERT_EQ(pwrite(file.get(), contents.data(), kBytes, static_cast<off_t>(kind.offset)),
              static_cast<ssize_t>(kBytes));
    const SharedWindow window = WindowOf(kind, file);
    const LaneContext lane = context();
    const DeviceBuffer memory = DeviceMemory();
    WindowTransfer transfer(window, /*is_result=*/false, lane);

    ASSERT_TRUE(transfer.Prepare(absl::InfiniteFuture()).ok());
    EXPECT_EQ(transfer.is_copied(), kind.is_copied);
    EXPECT_EQ(*transfer.CopyToDevice(memory.data()), kind.is_copied ? kBytes : 0);
    ASSERT_TRUE(lane_->Synchronize(timeout_).ok());

    EXPECT_EQ(transfer.Address() == memory.data(), kind.is_copied);
    EXPECT_EQ(std::memcmp(transfer.Address(), contents.data(), kBytes), 0);
    EXPECT_EQ(*transfer.Finish(), 0u);
  }
}

TEST_F(WindowTransferTest, AResultGetsToItsWindow) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const FileDescriptor file = SealedFile(kPageBytes);
    const SharedWindow window = WindowOf(kind, file);
    const LaneContext lane = context();
    const DeviceBuffer memory = DeviceMemory();
    WindowTransfer transfer(window, /*is_result=*/true, lane);

    ASSERT_TRUE(transfer.Prepare(absl::InfiniteFuture()).ok());
    EXPECT_EQ(*transfer.CopyToDevice(memory.data()), 0u);
    // As a kernel's result, which the stream orders behind the pool's scrubbing of the block.
    ASSERT_TRUE(lane_->Synchronize(timeout_).ok());
    std::memset(transfer.Address(), 'r', kBytes);
    EXPECT_EQ(*transfer.Finish(), kind.is_copied ? kBytes : 0);

    std::string found(kBytes, ' ');
    ASSERT_EQ(pread(file.get(), found.data(), kBytes, static_cast<off_t>(kind.offset)),
              static_cast<ssize_t>(kBytes));
    EXPECT_EQ(found, std::string(kBytes, 'r'));
  }
}

// A thread that must not wait takes what was shown to the device before, and nothing else.
TEST_F(WindowTransferTest, WhatTheDeviceKnowsNeedsNoWaiting) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const FileDescriptor file = SealedFile(kPageBytes);
    const SharedWindow window = WindowOf(kind, file);
    const LaneContext lane = context();
    WindowTransfer first(window, /*is_result=*/false, lane);
    EXPECT_FALSE(first.TryPrepare());
    ASSERT_TRUE(first.Prepare(absl::InfiniteFuture()).ok());
    WindowTransfer second(window, /*is_result=*/false, lane);
    EXPECT_EQ(second.TryPrepare(), !kind.is_copied);
    if (!kind.is_copied) {
      EXPECT_EQ(second.Address(), first.Address());
    }
  }
  const FileDescriptor file = MemoryFile(kPageBytes, /*seals=*/0);
  const SharedWindow window = WindowOf(kKinds[2], file);
  const LaneContext lane = context();
  ASSERT_TRUE(WindowTransfer(window, false, lane).Prepare(absl::InfiniteFuture()).ok());
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  EXPECT_FALSE(WindowTransfer(window, false, lane).TryPrepare()) << "Prepare has the error";
}

// Its owner cuts the file off in the middle of a run: nothing ends but the run.
TEST_F(WindowTransferTest, AWindowThatIsCutOffInUseIsAnErrorOfItsRun) {
  for (const Kind& kind : kKinds) {
    if (!kind.may_shrink) continue;
    for (const bool is_result : {false, true}) {
      SCOPED_TRACE(absl::StrCat(kind.name, is_result ? " result" : " input"));
      const FileDescriptor file = MemoryFile(kPageBytes, /*seals=*/0);
      const SharedWindow window = WindowOf(kind, file);
      const LaneContext lane = context();
      const DeviceBuffer memory = DeviceMemory();
      WindowTransfer transfer(window, is_result, lane);
      ASSERT_TRUE(transfer.Prepare(absl::InfiniteFuture()).ok());

      ASSERT_EQ(ftruncate(file.get(), 0), 0);
      ASSERT_TRUE(transfer.CopyToDevice(memory.data()).ok());
      ASSERT_TRUE(lane_->Synchronize(timeout_).ok());
      // As a kernel does.
      if (is_result) {
        std::memset(transfer.Address(), 'r', kBytes);
      } else {
        EXPECT_EQ(std::string(static_cast<const char*>(transfer.Address()), kBytes),
                  std::string(kBytes, '\0'));
      }

      const absl::Status status = transfer.Finish().status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message(), "the shared memory has become smaller");
      struct stat info = {};
      ASSERT_EQ(fstat(file.get(), &info), 0);
      EXPECT_EQ(info.st_size, 0) << "it was made to grow";
    }
  }
}

// Where the driver, and not a processor, meets the missing bytes, its error is explained.
TEST_F(WindowTransferTest, ACopyThatFailsForMissingBytesSaysSo) {
  const Kind kind = {"", 68, /*may_shrink=*/true, /*is_copied=*/true};
  const FileDescriptor file = MemoryFile(kPageBytes, /*seals=*/0);
  const SharedWindow window = WindowOf(kind, file);
  const LaneContext lane = context();
  const DeviceBuffer memory = DeviceMemory();
  WindowTransfer transfer(window, /*is_result=*/false, lane);
  ASSERT_TRUE(transfer.Prepare(absl::InfiniteFuture()).ok());
  InjectFaults("call=aclrtMemcpyAsync,code=107002");
  EXPECT_EQ(transfer.CopyToDevice(memory.data()).status().code(), absl::StatusCode::kInternal);
  InjectFaults("call=aclrtMemcpyAsync,code=107002");
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  EXPECT_EQ(transfer.CopyToDevice(memory.data()).status().message(),
            "the shared memory has become smaller");
  ClearFaults();
}

}  // namespace
}  // namespace opserve::server
