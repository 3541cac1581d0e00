#include "server/execution/window_transfer.h"

#include <cstring>
#include <string>

#include "tests/unit/server/lane_fixture.h"
#include "tests/unit/server/shared_files.h"

namespace opserve::server {
namespace {

constexpr uint64_t kBytes = 256;

// A way for the device to get at the bytes of a window.
struct Kind {
  const char* name;
  uint64_t offset;  // in the region: one of 32 bytes' alignment can be used in place
  bool is_mapped;
  bool is_copied;
};

constexpr Kind kKinds[] = {
    {"InPlace", 64, true, false},
    {"Mapped", 68, true, true},
    {"Staged", 64, false, true},
};

class WindowTransferTest : public LaneFixture {
 protected:
  SharedWindow WindowOf(const Kind& kind, const FileDescriptor& file) {
    const SharedRegionSpec spec = {.size = kPageBytes};
    SharedWindow window;
    window.region = kind.is_mapped ? *SharedRegion::Map(file.get(), spec, retire_, NoCharge)
                                   : SharedRegion::Open(dup(file.get()), spec, nullptr);
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

}  // namespace
}  // namespace opserve::server
