// Batches of copies: both directions, both forms, and which copy is refused.
#include <cstring>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

constexpr aclrtMemLocation kHost = {0, ACL_MEM_LOCATION_TYPE_HOST};
constexpr aclrtMemLocation kDevice = {0, ACL_MEM_LOCATION_TYPE_DEVICE};

class CopyBatchTest : public RuntimeTest {
 protected:
  static constexpr size_t kBytes = 64;
  static constexpr size_t kCopies = 3;

  void SetUp() override {
    RuntimeTest::SetUp();
    for (size_t i = 0; i < kCopies; ++i) {
      device_[i] = NewDeviceMemory(kBytes);
      ASSERT_EQ(aclrtMallocHost(&pinned_[i], kBytes), ACL_SUCCESS);
      host_[i].assign(kBytes, static_cast<char>('a' + i));
      sizes_[i] = dest_maxs_[i] = kBytes;
    }
  }
  void TearDown() override {
    for (void* memory : pinned_) EXPECT_EQ(aclrtFreeHost(memory), ACL_SUCCESS);
    RuntimeTest::TearDown();
  }

  // Copies the batch at once, or in the order of a stream.
  aclError Copy(aclrtStream stream = nullptr) {
    if (v2_) {
      fail_index_ = SIZE_MAX;
      return stream == nullptr ? aclrtMemcpyBatchV2(dsts_, dest_maxs_, srcs_, sizes_, kCopies,
                                                    attrs_, indexes_, num_attrs_)
                               : aclrtMemcpyBatchAsyncV2(dsts_, dest_maxs_, srcs_, sizes_, kCopies,
                                                         attrs_, indexes_, num_attrs_, stream);
    }
    return stream == nullptr
               ? aclrtMemcpyBatch(dsts_, dest_maxs_, srcs_, sizes_, kCopies, attrs_, indexes_,
                                  num_attrs_, &fail_index_)
               : aclrtMemcpyBatchAsync(dsts_, dest_maxs_, srcs_, sizes_, kCopies, attrs_, indexes_,
                                       num_attrs_, &fail_index_, stream);
  }
  void ToDevice(bool pinned) {
    for (size_t i = 0; i < kCopies; ++i) {
      dsts_[i] = device_[i];
      srcs_[i] = pinned ? pinned_[i] : host_[i].data();
      if (pinned) std::memcpy(pinned_[i], host_[i].data(), kBytes);
    }
    attrs_[0] = {kDevice, kHost, {}};
    num_attrs_ = 1;
  }
  void FromDevice(bool pinned) {
    for (size_t i = 0; i < kCopies; ++i) {
      std::swap(dsts_[i], srcs_[i]);
      std::memset(pinned ? pinned_[i] : host_[i].data(), 0, kBytes);
    }
    attrs_[0] = {kHost, kDevice, {}};
  }

  void* device_[kCopies] = {};
  void* pinned_[kCopies] = {};
  std::string host_[kCopies];
  void* dsts_[kCopies] = {};
  void* srcs_[kCopies] = {};
  size_t sizes_[kCopies] = {};
  size_t dest_maxs_[kCopies] = {};
  aclrtMemcpyBatchAttr attrs_[kCopies] = {};
  size_t indexes_[kCopies] = {};
  size_t num_attrs_ = 1;
  size_t fail_index_ = 99;
  bool v2_ = false;  // by the functions without failIndex
};

TEST_F(CopyBatchTest, ThereAndBack) {
  for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool async = (form & 1) != 0;
    const bool pinned = (form & 2) != 0;
    v2_ = (form & 4) != 0;
    SCOPED_TRACE(form);
    const aclrtStream stream = async ? NewStream() : nullptr;
    ToDevice(pinned);
    sizes_[1] = async ? 0 : kBytes;  // a copy of nothing is left out
    ASSERT_EQ(Copy(stream), ACL_SUCCESS) << RecentMessage();
    EXPECT_EQ(fail_index_, SIZE_MAX);
    if (async) {
      ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    }
    FromDevice(pinned);
    ASSERT_EQ(Copy(stream), ACL_SUCCESS) << RecentMessage();
    if (async) {
      ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    }
    for (size_t i = 0; i < kCopies; ++i) {
      const char expected = sizes_[i] == 0 ? '\0' : static_cast<char>('a' + i);
      const char* const result = pinned ? static_cast<char*>(pinned_[i]) : host_[i].data();
      EXPECT_EQ(std::string(result, kBytes), std::string(kBytes, expected)) << i;
      host_[i].assign(kBytes, static_cast<char>('a' + i));
    }
    sizes_[1] = kBytes;
  }
}

TEST_F(CopyBatchTest, RefusesTheWholeBatchAndNamesTheCopy) {
  const aclrtMemcpyBatchAttr to_device = {kDevice, kHost, {}};
  const aclrtMemcpyBatchAttr to_host = {kHost, kDevice, {}};
  const aclrtMemcpyBatchAttr other_device = {{1, ACL_MEM_LOCATION_TYPE_DEVICE}, kHost, {}};
  const struct {
    const char* name;
    std::function<void()> spoil;
    aclError expected;
    size_t fail_index;
  } kCases[] = {
      {"no attributes", [&] { num_attrs_ = 0; }, 107000, SIZE_MAX},
      {"more attributes than copies", [&] { num_attrs_ = 4; }, 107000, SIZE_MAX},
      {"does not begin with 0", [&] { indexes_[0] = 1; }, 107000, SIZE_MAX},
      {"out of order",
       [&] {
         num_attrs_ = 2;
         attrs_[1] = to_device;
         indexes_[1] = 0;
       },
       107000, SIZE_MAX},
      {"both directions",
       [&] {
         num_attrs_ = 2;
         attrs_[1] = to_host;
         indexes_[1] = 2;
       },
       107000, 2},
      {"another device", [&] { attrs_[0] = other_device; }, 107000, 0},
      {"no room", [&] { dest_maxs_[1] = kBytes - 1; }, 107000, 1},
      {"null address", [&] { srcs_[2] = nullptr; }, 100000, 2},
      {"host as device", [&] { dsts_[2] = host_[2].data(); }, 107000, 2},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    ToDevice(/*pinned=*/false);
    indexes_[0] = indexes_[1] = 0;
    dest_maxs_[1] = kBytes;
    ASSERT_EQ(aclrtMemset(device_[0], kBytes, 0, kBytes), ACL_SUCCESS);
    c.spoil();
    for (const aclrtStream stream : {aclrtStream{nullptr}, NewStream()}) {
      v2_ = false;
      EXPECT_EQ(Copy(stream), c.expected);
      EXPECT_EQ(fail_index_, c.fail_index);
      v2_ = true;
      EXPECT_EQ(Copy(stream), c.expected);
    }
    char first = 1;
    ASSERT_EQ(aclrtMemcpy(&first, 1, device_[0], 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    EXPECT_EQ(first, 0) << "copied";
  }
  EXPECT_EQ(aclrtMemcpyBatch(dsts_, dest_maxs_, srcs_, sizes_, 1, attrs_, indexes_, 1, nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(
      aclrtMemcpyBatch(nullptr, dest_maxs_, srcs_, sizes_, 1, attrs_, indexes_, 1, &fail_index_),
      ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace opserve::host_cann
