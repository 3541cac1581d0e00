// Shared memory by name, for tests of the Open Inference Protocol.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"

namespace opserve::server {

inline constexpr int64_t kPlacedElements = 1000;
inline constexpr uint64_t kTensorBytes = kPlacedElements * sizeof(float);
inline constexpr uint64_t kPageBytes = 4096;

// A POSIX shared memory object, as a client makes it.
class SharedObject {
 public:
  explicit SharedObject(uint64_t size) {
    static int count = 0;
    name_ = absl::StrCat("/opserve-test-", getpid(), "-", count++);
    fd_ = shm_open(name_.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    EXPECT_GE(fd_, 0);
    Resize(size);
  }
  ~SharedObject() {
    close(fd_);
    shm_unlink(name_.c_str());
  }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  const std::string& name() const { return name_; }
  int fd() const { return fd_; }
  void Resize(uint64_t size) { EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size)), 0); }
  void Write(uint64_t offset, const std::string& bytes) {
    EXPECT_EQ(pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string Read(uint64_t offset, uint64_t size) const {
    std::string bytes(size, 0);
    bytes.resize(static_cast<size_t>(
        std::max<ssize_t>(pread(fd_, bytes.data(), size, static_cast<off_t>(offset)), 0)));
    return bytes;
  }
  uint64_t size() const {
    struct stat info = {};
    fstat(fd_, &info);
    return static_cast<uint64_t>(info.st_size);
  }

 private:
  std::string name_;
  int fd_ = -1;
};

// Lets a tensor be in a region.
template <typename Tensor>
void Place(const std::string& region, int64_t offset, int64_t size, Tensor* tensor) {
  auto& parameters = *tensor->mutable_parameters();
  parameters["shared_memory_region"].set_string_param(region);
  parameters["shared_memory_byte_size"].set_int64_param(size);
  if (offset != 0) parameters["shared_memory_offset"].set_int64_param(offset);
}

class InferenceSharedMemoryTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  grpc::Status Register(const std::string& name, const std::string& key, uint64_t offset,
                        uint64_t size) {
    grpc::ClientContext context;
    inference::SystemSharedMemoryRegisterRequest request;
    request.set_name(name);
    request.set_key(key);
    request.set_offset(offset);
    request.set_byte_size(size);
    inference::SystemSharedMemoryRegisterResponse response;
    return stub_->SystemSharedMemoryRegister(&context, request, &response);
  }

  grpc::Status Unregister(const std::string& name) {
    grpc::ClientContext context;
    inference::SystemSharedMemoryUnregisterRequest request;
    request.set_name(name);
    inference::SystemSharedMemoryUnregisterResponse response;
    return stub_->SystemSharedMemoryUnregister(&context, request, &response);
  }

  inference::SystemSharedMemoryStatusResponse Regions() {
    grpc::ClientContext context;
    inference::SystemSharedMemoryStatusResponse response;
    EXPECT_TRUE(stub_->SystemSharedMemoryStatus(&context, {}, &response).ok());
    return response;
  }

  // Puts self and target into `object`, one behind the other, from `offset` on.
  static void WriteInputs(SharedObject& object, uint64_t offset) {
    object.Write(offset, OnesInput(1, kPlacedElements));
    object.Write(offset + kTensorBytes, OnesInput(2, kPlacedElements));
  }

  InProcessDaemon daemon_{WithNamedRegions()};
  const std::unique_ptr<InferenceStub> stub_ = NewInferenceStub(daemon_.target());
};

}  // namespace opserve::server
