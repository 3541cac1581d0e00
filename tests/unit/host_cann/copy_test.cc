// Copies and fills: directions, asynchrony, checks.
#include <atomic>
#include <cstring>
#include <numeric>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

class CopyTest : public RuntimeTest {
 protected:
  static constexpr size_t kBytes = 4096;

  void SetUp() override {
    RuntimeTest::SetUp();
    std::iota(source_.begin(), source_.end(), '\0');
    device_ = static_cast<char*>(NewDeviceMemory(kBytes));
    ASSERT_EQ(aclrtMallocHost(&pinned_, kBytes), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtFreeHost(pinned_), ACL_SUCCESS);
    RuntimeTest::TearDown();
  }
  void FillDevice() {
    ASSERT_EQ(aclrtMemcpy(device_, kBytes, source_.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
  }

  std::vector<char> source_ = std::vector<char>(kBytes);
  std::vector<char> result_ = std::vector<char>(kBytes);
  char* device_ = nullptr;
  void* pinned_ = nullptr;
};

TEST_F(CopyTest, ThereAndBack) {
  for (const bool inferred : {false, true}) {
    FillDevice();
    char* const other = static_cast<char*>(NewDeviceMemory(kBytes));
    std::fill(result_.begin(), result_.end(), 0);
    const auto kind = [&](aclrtMemcpyKind named) { return inferred ? ACL_MEMCPY_DEFAULT : named; };
    ASSERT_EQ(aclrtMemcpy(other, kBytes, device_, kBytes, kind(ACL_MEMCPY_DEVICE_TO_DEVICE)),
              ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpy(result_.data(), kBytes, other, kBytes, kind(ACL_MEMCPY_DEVICE_TO_HOST)),
              ACL_SUCCESS);
    EXPECT_EQ(result_, source_);
    ASSERT_EQ(aclrtMemcpy(pinned_, kBytes, source_.data(), kBytes, kind(ACL_MEMCPY_HOST_TO_HOST)),
              ACL_SUCCESS);
    EXPECT_EQ(std::memcmp(pinned_, source_.data(), kBytes), 0);
  }
}

struct CopyCase {
  const char* name;
  bool dst_is_device;
  size_t dst_offset;
  size_t dest_max;
  size_t count;
  int kind;
  aclError expected;
  aclError expected_async;
};

TEST_F(CopyTest, BadCopiesChangeNothing) {
  const CopyCase kCases[] = {
      {"nothing", true, 0, 0, 0, 1, 0, 0},
      {"room", true, 0, 8, 9, 1, 107000, 107000},
      {"beyond the block", true, kBytes - 8, 64, 9, 1, 107000, 107000},
      {"outside the block", true, kBytes + 64, 64, 8, 1, 107000, 107000},
      {"host as device", false, 0, 64, 8, 1, 107000, 107000},
      {"device as host", true, 0, 64, 8, 0, 107000, 207000},
      {"nothing of no kind", true, 0, 0, 0, 9, 0, 0},
      {"source as device", true, 0, 64, 8, 3, 107000, 107000},
      {"kind -1", true, 0, 64, 8, -1, 100000, 100000},
      {"kind 6", true, 0, 64, 8, 6, 100000, 100000},
      {"kind 7", true, 0, 64, 8, 7, 100000, 100000},
      {"kind 8", true, 0, 64, 8, 8, 100000, 100000},
      {"host to host", false, 0, 64, 8, 0, 0, 207000},
      {"inferred host to host", false, 0, 64, 8, 4, 0, 207000},
  };
  for (const CopyCase& c : kCases) {
    ASSERT_EQ(aclrtMemset(device_, kBytes, 0, kBytes), ACL_SUCCESS);
    void* const dst = (c.dst_is_device ? device_ : result_.data()) + c.dst_offset;
    const auto kind = static_cast<aclrtMemcpyKind>(c.kind);
    EXPECT_EQ(aclrtMemcpy(dst, c.dest_max, source_.data(), c.count, kind), c.expected) << c.name;
    EXPECT_EQ(aclrtMemcpyAsync(dst, c.dest_max, source_.data(), c.count, kind, nullptr),
              c.expected_async)
        << c.name;
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS) << c.name;
    if (!c.dst_is_device) continue;
    ASSERT_EQ(aclrtMemcpy(result_.data(), kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    EXPECT_EQ(result_, std::vector<char>(kBytes)) << c.name;
  }
}

TEST_F(CopyTest, NothingIsCopiedBeforeAnyOtherCheck) {
  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);  // no context, and the addresses are null
  EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, ACL_MEMCPY_HOST_TO_HOST, nullptr),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(nullptr, 0, 0, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(nullptr, 0, 0, 0, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
}

TEST_F(CopyTest, WordsFillDeviceAndPageLockedMemory) {
  constexpr uint32_t kWord = 0xDEADBEEF;
  constexpr size_t kWords = kBytes / sizeof(uint32_t);
  for (const bool async : {false, true}) {
    for (void* const memory : {static_cast<void*>(device_), pinned_}) {
      for (const uint32_t word : {kWord, 0x07070707u}) {
        ASSERT_EQ(aclrtMemset(memory, kBytes, 0, kBytes), ACL_SUCCESS);
        ASSERT_EQ(async ? aclrtMemsetD32Async(memory, kBytes, word, kWords - 1, nullptr)
                        : aclrtMemsetD32(memory, kBytes, word, kWords - 1),
                  ACL_SUCCESS)
            << RecentMessage();
        ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
        std::vector<uint32_t> words(kWords);
        ASSERT_EQ(aclrtMemcpy(words.data(), kBytes, memory, kBytes, ACL_MEMCPY_DEFAULT), 0);
        std::vector<uint32_t> expected(kWords, word);
        expected.back() = 0;
        EXPECT_EQ(words, expected);
      }
    }
    const auto fill = [&](void* memory, size_t bytes, size_t words) {
      return async ? aclrtMemsetD32Async(memory, bytes, 1, words, nullptr)
                   : aclrtMemsetD32(memory, bytes, 1, words);
    };
    EXPECT_EQ(fill(nullptr, kBytes, 1), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(fill(device_, kBytes, 0), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(fill(device_, 15, 4), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(fill(device_, SIZE_MAX, SIZE_MAX / 4), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(fill(source_.data(), kBytes, 1), ACL_ERROR_RT_PARAM_INVALID) << "pageable";
  }
}

TEST_F(CopyTest, CopiesToItselfSucceed) {
  for (const aclrtMemcpyKind kind : {ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_HOST_TO_DEVICE}) {
    EXPECT_EQ(aclrtMemcpy(device_, kBytes, device_, kBytes, kind), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemcpyAsync(device_, kBytes, device_, kBytes, kind, nullptr), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtMemcpy(result_.data(), kBytes, result_.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE),
            ACL_SUCCESS);
}

// The runtime knows device and page-locked memory: there the addresses count, not the kind.
TEST_F(CopyTest, AKindThatDoesNotFitKnownAddressesIsCorrected) {
  char* const other = static_cast<char*>(NewDeviceMemory(kBytes));
  const struct {
    const char* name;
    void* dst;
    void* src;
    aclrtMemcpyKind kind;
  } kCases[] = {
      {"page-locked to device as device to host", device_, pinned_, ACL_MEMCPY_DEVICE_TO_HOST},
      {"page-locked to device as device to device", device_, pinned_, ACL_MEMCPY_DEVICE_TO_DEVICE},
      {"device to page-locked as host to device", pinned_, device_, ACL_MEMCPY_HOST_TO_DEVICE},
      {"device to device as host to device", other, device_, ACL_MEMCPY_HOST_TO_DEVICE},
      {"device to device as device to host", other, device_, ACL_MEMCPY_DEVICE_TO_HOST},
  };
  for (const auto& c : kCases) {
    for (const bool async : {false, true}) {
      SCOPED_TRACE(c.name);
      std::memcpy(pinned_, source_.data(), kBytes);
      FillDevice();
      ASSERT_EQ(aclrtMemset(c.dst, kBytes, 0, kBytes), ACL_SUCCESS);
      ASSERT_EQ(async ? aclrtMemcpyAsync(c.dst, kBytes, c.src, kBytes, c.kind, nullptr)
                      : aclrtMemcpy(c.dst, kBytes, c.src, kBytes, c.kind),
                ACL_SUCCESS)
          << RecentMessage();
      ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
      ASSERT_EQ(aclrtMemcpy(result_.data(), kBytes, c.dst, kBytes, ACL_MEMCPY_DEFAULT), 0);
      EXPECT_EQ(result_, source_);
    }
  }
}

TEST_F(CopyTest, PageableCopiesAfterAFailedTaskReturnItsErrorAndCopyNothing) {
  const aclrtStream stream = NewStream();
  for (const bool to_device : {false, true}) {
    ASSERT_EQ(opserveHostInjectFaults("kernel=aclnnBad,code=507035"), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemset(device_, kBytes, 0, kBytes), ACL_SUCCESS);
    std::fill(result_.begin(), result_.end(), '\x7f');
    ASSERT_EQ(Launch(
                  stream, [] {}, "aclnnBad"),
              ACL_SUCCESS);
    EXPECT_EQ(to_device ? aclrtMemcpyAsync(device_, kBytes, source_.data(), kBytes,
                                           ACL_MEMCPY_HOST_TO_DEVICE, stream)
                        : aclrtMemcpyAsync(result_.data(), kBytes, device_, kBytes,
                                           ACL_MEMCPY_DEVICE_TO_HOST, stream),
              ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << "reported twice";
    if (to_device) {
      ASSERT_EQ(aclrtMemcpy(result_.data(), kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST),
                ACL_SUCCESS);
    }
    EXPECT_EQ(result_, std::vector<char>(kBytes, to_device ? '\0' : '\x7f'));
  }
}

TEST_F(CopyTest, AsynchronousWithPageLockedMemory) {
  const aclrtStream stream = NewStream();
  std::memcpy(pinned_, source_.data(), kBytes);
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtMemcpyAsync(device_, kBytes, pinned_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_SUCCESS);
  // The stream has not read the memory yet: a change is seen.
  static_cast<char*>(pinned_)[5] = 99;
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy(result_.data(), kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_SUCCESS);
  EXPECT_EQ(result_[5], 99);
}

TEST_F(CopyTest, PageableMemoryIsDoneWithWhenTheCallReturns) {
  const aclrtStream stream = NewStream();
  // In stream order: the copy comes after the memset, and reads the bytes at the call.
  ASSERT_EQ(aclrtMemsetAsync(device_, kBytes, 0, kBytes, stream), ACL_SUCCESS);
  ASSERT_EQ(
      aclrtMemcpyAsync(device_, kBytes, source_.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream),
      ACL_SUCCESS);
  const std::vector<char> sent = source_;
  std::fill(source_.begin(), source_.end(), 0);
  ASSERT_EQ(
      aclrtMemcpyAsync(result_.data(), kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream),
      ACL_SUCCESS);
  EXPECT_EQ(result_, sent);
}

// The deprecated call waits and returns as aclrtMemcpyAsync does.
TEST_F(CopyTest, CopiesWithConditionWaitForPageableMemoryOnly) {
  const aclrtStream stream = NewStream();
  std::memcpy(pinned_, source_.data(), kBytes);
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtMemcpyAsyncWithCondition(device_, kBytes, pinned_, kBytes,
                                          ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_SUCCESS);
  static_cast<char*>(pinned_)[5] = 99;  // before the stream reads it
  gate.Open();
  ASSERT_EQ(aclrtMemcpyAsyncWithCondition(result_.data(), kBytes, device_, kBytes,
                                          ACL_MEMCPY_DEVICE_TO_HOST, stream),
            ACL_SUCCESS);
  std::vector<char> expected = source_;
  expected[5] = 99;
  EXPECT_EQ(result_, expected) << "without a synchronise";

  EXPECT_EQ(aclrtMemcpyAsyncWithCondition(result_.data(), kBytes, source_.data(), kBytes,
                                          ACL_MEMCPY_HOST_TO_HOST, stream),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclrtMemcpyAsyncWithCondition(device_, kBytes - 1, pinned_, kBytes,
                                          ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(CopyTest, BufferedCopyTakesTheBytesAtOnce) {
  const aclrtStream stream = NewStream();
  const std::vector<char> sent = source_;
  Gate gate;
  gate.Close(stream);
  ASSERT_EQ(aclrtMemcpyAsync(device_, kBytes, source_.data(), kBytes,
                             ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream),
            ACL_SUCCESS);
  std::fill(source_.begin(), source_.end(), 0);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy(result_.data(), kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_SUCCESS);
  EXPECT_EQ(result_, sent);
}

TEST_F(CopyTest, MemoryFreedBeforeItsTurnIsAnError) {
  for (const bool free_host : {false, true}) {
    const aclrtStream stream = NewStream();
    void* const memory = NewDeviceMemory(kBytes);
    void* host = nullptr;
    ASSERT_EQ(aclrtMallocHost(&host, kBytes), ACL_SUCCESS);
    Gate gate;
    gate.Close(stream);
    for (const bool to_device : {false, true}) {
      ASSERT_EQ(aclrtMemcpyAsync(to_device ? memory : host, kBytes, to_device ? host : memory,
                                 kBytes, ACL_MEMCPY_DEFAULT, stream),
                ACL_SUCCESS);
    }
    ASSERT_EQ(free_host ? aclrtFreeHost(host) : aclrtFree(memory), ACL_SUCCESS);
    gate.Open();
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_SYS_DMA);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    ASSERT_EQ(free_host ? aclrtFree(memory) : aclrtFreeHost(host), ACL_SUCCESS);
  }
}

TEST_F(CopyTest, OtherDevicesMemoryIsRefused) {
  ASSERT_EQ(aclrtSetDevice(1), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(device_, kBytes, source_.data(), 8, ACL_MEMCPY_HOST_TO_DEVICE), 107000);
  EXPECT_NE(RecentMessage().find("device 0"), std::string::npos);
}

TEST_F(CopyTest, Rows) {
  FillDevice();
  constexpr size_t kWidth = 3, kHeight = 4, kDevicePitch = 16, kHostPitch = 5;
  const aclrtStream stream = NewStream();
  for (const bool async : {false, true}) {
    std::fill(result_.begin(), result_.end(), '\x7f');
    const aclrtMemcpyKind kind = ACL_MEMCPY_DEVICE_TO_HOST;
    ASSERT_EQ(async ? aclrtMemcpy2dAsync(result_.data(), kHostPitch, device_, kDevicePitch, kWidth,
                                         kHeight, kind, stream)
                    : aclrtMemcpy2d(result_.data(), kHostPitch, device_, kDevicePitch, kWidth,
                                    kHeight, kind),
              ACL_SUCCESS);
    for (size_t row = 0; row < kHeight; ++row) {
      for (size_t i = 0; i < kHostPitch; ++i) {
        const char expected = i < kWidth ? source_[row * kDevicePitch + i] : '\x7f';
        EXPECT_EQ(result_[row * kHostPitch + i], expected) << row << ' ' << i;
      }
    }
  }
  const struct {
    size_t dpitch, spitch, width, height;
    int kind;
    aclError expected;
  } kBad[] = {{2, 16, 3, 4, 2, 107000},   {5, 2, 3, 4, 2, 107000},
              {5, 16, 3, 257, 2, 107000}, {5, 16, 3, SIZE_MAX / 2, 2, 107000},
              {5, 16, 3, 4, 3, 100000},   {5, 16, 3, 4, 0, 100000}};
  for (const auto& bad : kBad) {
    EXPECT_EQ(aclrtMemcpy2d(result_.data(), bad.dpitch, device_, bad.spitch, bad.width, bad.height,
                            static_cast<aclrtMemcpyKind>(bad.kind)),
              bad.expected);
  }
  EXPECT_EQ(
      aclrtMemcpy2dAsync(device_ + 64, 16, device_, 16, 3, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
      ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
}

TEST_F(CopyTest, Fills) {
  ASSERT_EQ(aclrtMemset(pinned_, kBytes, 3, kBytes), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemset(device_, kBytes, 0x1FF, kBytes), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemsetAsync(device_ + 1, 8, 2, 7, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtMemcpy(result_.data(), kBytes, device_, 10, ACL_MEMCPY_DEVICE_TO_HOST), 0);
  EXPECT_EQ(std::vector<char>(result_.begin(), result_.begin() + 10),
            (std::vector<char>{-1, 2, 2, 2, 2, 2, 2, 2, -1, -1}));
  EXPECT_EQ(static_cast<char*>(pinned_)[kBytes - 1], 3);
}

TEST_F(CopyTest, SlowCopies) {
  ASSERT_EQ(opserveHostInjectFaults("copies,rate=1K"), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  ASSERT_EQ(aclrtMemcpyAsync(device_, kBytes, pinned_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(aclrtStreamAbort(stream), ACL_SUCCESS);
}

}  // namespace
}  // namespace opserve::host_cann
