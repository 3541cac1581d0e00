// Copies whose addresses are in device memory.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

constexpr aclrtMemcpyKind kKind = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;

class IndirectCopyTest : public RuntimeTest {
 protected:
  static constexpr size_t kBytes = 64;

  void SetUp() override {
    RuntimeTest::SetUp();
    from_ = NewDeviceMemory(kBytes);
    to_ = NewDeviceMemory(kBytes);
    slots_ = static_cast<void**>(NewDeviceMemory(2 * sizeof(void*)));
    std::string text;
    for (size_t i = 0; i < kBytes; ++i) text += static_cast<char>('A' + i % 26);
    ASSERT_EQ(aclrtMemcpy(from_, kBytes, text.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE), 0);
    ASSERT_EQ(aclrtMemset(to_, kBytes, '.', kBytes), ACL_SUCCESS);
  }
  // Puts the addresses of the copy into device memory.
  void StoreAddresses(void* dst, void* src) {
    void* const addresses[] = {dst, src};
    ASSERT_EQ(aclrtMemcpy(slots_, sizeof(addresses), addresses, sizeof(addresses),
                          ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
  }
  aclError CopyWithOffset(size_t room, size_t to, size_t count, size_t from,
                          aclrtMemcpyKind kind = kKind) {
    return aclrtMemcpyAsyncWithOffset(slots_, room, to, const_cast<const void**>(slots_ + 1), count,
                                      from, kind, nullptr);
  }
  std::string Result() {
    std::string text(kBytes, '?');
    EXPECT_EQ(aclrtMemcpy(text.data(), kBytes, to_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    return text;
  }

  void* from_ = nullptr;
  void* to_ = nullptr;
  void** slots_ = nullptr;
};

TEST_F(IndirectCopyTest, OffsetsAreAddedToTheStoredAddresses) {
  StoreAddresses(to_, from_);
  ASSERT_EQ(CopyWithOffset(kBytes, 3, 5, 2), ACL_SUCCESS) << RecentMessage();
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(Result(), "...CDEFG" + std::string(kBytes - 8, '.'));
}

TEST_F(IndirectCopyTest, AddressesAreReadWhenTheCopyRuns) {
  Gate gate;
  gate.Close(nullptr);
  ASSERT_EQ(aclrtMemset(slots_, 16, 0, 16), ACL_SUCCESS);
  ASSERT_EQ(CopyWithOffset(kBytes, 0, 4, 0), ACL_SUCCESS);
  StoreAddresses(to_, from_);
  gate.Open();
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(Result().substr(0, 5), "ABCD.");
}

TEST_F(IndirectCopyTest, AddressesThatAreNoMemoryFailTheTask) {
  StoreAddresses(to_, nullptr);
  ASSERT_EQ(CopyWithOffset(kBytes, 0, 4, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_SYS_DMA);
  StoreAddresses(to_, from_);
  ASSERT_EQ(CopyWithOffset(2 * kBytes, 1, kBytes, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_SYS_DMA) << "beyond the block";
  EXPECT_EQ(Result(), std::string(kBytes, '.'));
}

TEST_F(IndirectCopyTest, BadCopiesWithOffsets) {
  StoreAddresses(to_, from_);
  EXPECT_EQ(CopyWithOffset(3, 0, 4, 0), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(CopyWithOffset(4, 0, 4, 0, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
  const void* host = from_;
  EXPECT_EQ(aclrtMemcpyAsyncWithOffset(nullptr, 4, 0, &host, 4, 0, kKind, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpyAsyncWithOffset(slots_, 4, 0, &host, 4, 0, kKind, nullptr),
            ACL_ERROR_RT_PARAM_INVALID)
      << "src in host memory";
}

TEST_F(IndirectCopyTest, DescriptionsCanBeUsedAgain) {
  size_t bytes = 0;
  ASSERT_EQ(aclrtGetMemcpyDescSize(kKind, &bytes), ACL_SUCCESS);
  ASSERT_GT(bytes, 0u);
  void* const description = NewDeviceMemory(bytes);
  ASSERT_EQ(aclrtSetMemcpyDesc(description, kKind, from_, to_, 4, nullptr), ACL_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(aclrtMemset(to_, kBytes, '.', kBytes), ACL_SUCCESS);
    ASSERT_EQ(aclrtMemcpyAsyncWithDesc(description, kKind, nullptr), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    EXPECT_EQ(Result().substr(0, 5), "ABCD.");
  }
}

TEST_F(IndirectCopyTest, BadDescriptions) {
  size_t bytes = 7;
  void* const description = NewDeviceMemory(64);
  char host[64];
  const struct {
    const char* name;
    aclError code;
    aclError expected;
  } kCases[] = {
      {"size kind", aclrtGetMemcpyDescSize(ACL_MEMCPY_DEVICE_TO_DEVICE, &bytes), 100000},
      {"size null", aclrtGetMemcpyDescSize(kKind, nullptr), 100000},
      {"null", aclrtSetMemcpyDesc(nullptr, kKind, from_, to_, 4, nullptr), 100000},
      {"null source", aclrtSetMemcpyDesc(description, kKind, nullptr, to_, 4, nullptr), 100000},
      {"config", aclrtSetMemcpyDesc(description, kKind, from_, to_, 4, host), 107000},
      {"host memory", aclrtSetMemcpyDesc(host, kKind, from_, to_, 4, nullptr), 107000},
      {"too small", aclrtSetMemcpyDesc(slots_, kKind, from_, to_, 4, nullptr), 107000},
      {"kind", aclrtMemcpyAsyncWithDesc(description, ACL_MEMCPY_DEFAULT, nullptr), 100000},
      {"copy null", aclrtMemcpyAsyncWithDesc(nullptr, kKind, nullptr), 100000},
      {"copy host", aclrtMemcpyAsyncWithDesc(host, kKind, nullptr), 107000},
  };
  for (const auto& c : kCases) EXPECT_EQ(c.code, c.expected) << c.name;
  EXPECT_EQ(bytes, 7u);
}

}  // namespace
}  // namespace opserve::host_cann
