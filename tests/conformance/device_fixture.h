// A device of the host CANN with a stream, and memory on it, for tests that go through the C ABI.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "acl/acl.h"

namespace opserve::conformance {

// Device memory, freed at the end. Move-only.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes) : bytes_(bytes) {
    // A tensor without elements has an address too.
    EXPECT_EQ(aclrtMalloc(&address_, std::max<size_t>(bytes, 1), ACL_MEM_MALLOC_HUGE_FIRST), 0);
  }
  explicit DeviceBuffer(std::string_view contents) : DeviceBuffer(contents.size()) {
    Write(contents);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer() { Free(); }

  void* address() const { return address_; }

  // Frees the memory before the end.
  void Free() {
    if (address_ == nullptr) return;
    EXPECT_EQ(aclrtFree(std::exchange(address_, nullptr)), 0);
  }

  void Write(std::string_view contents) {
    if (contents.empty()) return;
    EXPECT_EQ(
        aclrtMemcpy(address_, bytes_, contents.data(), contents.size(), ACL_MEMCPY_HOST_TO_DEVICE),
        0);
  }

  std::string Read() const {
    std::string contents(bytes_, '\0');
    if (bytes_ > 0) {
      EXPECT_EQ(aclrtMemcpy(contents.data(), bytes_, address_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST),
                0);
    }
    return contents;
  }

 private:
  void* address_ = nullptr;
  size_t bytes_;
};

// Device 0 bound to the test's thread, and a stream, from before a fixture's own members until
// after them. ACL is initialised once per process.
class DeviceTest : public testing::Test {
 protected:
  DeviceTest() {
    static const aclError initialised = aclInit(nullptr);
    EXPECT_EQ(initialised, 0);
    EXPECT_EQ(aclrtSetDevice(0), 0);
    EXPECT_EQ(aclrtCreateStream(&stream_), 0);
  }
  ~DeviceTest() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), 0);
    EXPECT_EQ(aclrtResetDevice(0), 0);
  }

  aclrtStream stream_ = nullptr;
};

}  // namespace opserve::conformance
