// Calls on shared memory, through the C++ client: the same bits as with tensors that are sent, and
// nothing is copied.
#include "client/cpp/shared_memory.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/catalog.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

Config WithSharedMemory(Config config = InProcessDaemon::DefaultConfig()) {
  config.enable_shm = true;
  return config;
}

double CopiedBytes(const InProcessDaemon& daemon, const char* direction, const char* path) {
  return MetricValue(daemon.daemon(), "opserve_host_copy_bytes_total",
                     {{"direction", direction}, {"path", path}});
}

// Tensors and results of one request, one behind the other in one region, as the header of the
// client recommends.
class Layout {
 public:
  explicit Layout(opserve::SharedRegion* region) : region_(*region) {}

  SharedRange Next(uint64_t bytes) {
    const SharedRange range = region_.Range(offset_, bytes);
    offset_ += (bytes + 32 + 63) / 64 * 64;
    return range;
  }

  // Where `range` is in this process.
  std::byte* At(const SharedRange& range) { return region_.bytes().data() + range.offset; }

  // The tensor with its elements in the region.
  SharedTensor Put(const Tensor& tensor) {
    const SharedRange range = Next(tensor.storage().size());
    std::memcpy(At(range), tensor.storage().data(), tensor.storage().size());
    return {tensor.dtype(), tensor.shape(), range, tensor.strides(), tensor.offset()};
  }

 private:
  opserve::SharedRegion& region_;
  uint64_t offset_ = 0;
};

// The same request with its tensors in shared memory and room for its one result there.
Request InSharedMemory(const Request& request, uint64_t result_bytes, Layout* layout) {
  Request shared = request;
  for (Invocation& invocation : shared.invocations) {
    for (NamedInput& input : invocation.inputs) {
      if (const auto* tensor = std::get_if<Tensor>(&input.value))
        input.value = layout->Put(*tensor);
    }
  }
  shared.destinations = {layout->Next(result_bytes)};
  return shared;
}

class SharedMemoryTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  std::unique_ptr<opserve::SharedRegion> CreateRegion(size_t bytes) {
    auto region = memory_->CreateRegion(bytes);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }

  InProcessDaemon daemon_{WithSharedMemory()};
  const std::unique_ptr<SharedMemory> memory_ = *SharedMemory::Open(daemon_.target());
};

TEST_F(SharedMemoryTest, InputsAndResultsAreUsedWhereTheyAre) {
  constexpr int64_t kCount = 100'000;
  const auto region = CreateRegion(2 * kMiB);
  Layout layout(region.get());
  Request request = InSharedMemory(OnesRequest(kCount), kCount * sizeof(float), &layout);
  request.want_receipt = true;

  const auto response = daemon_.client().Execute(request);

  ASSERT_TRUE(IsAllOnes(response, kCount)) << response.status();
  EXPECT_EQ(response->results[0].bytes().data(), layout.At(*request.destinations[0]));
  EXPECT_EQ(response->receipt->copied_to_device_bytes(), 0u);
  EXPECT_EQ(response->receipt->copied_from_device_bytes(), 0u);
  EXPECT_EQ(response->receipt->device_memory_bytes(), response->receipt->workspace_bytes());
  for (const char* path : {"grpc", "shm"}) {
    EXPECT_EQ(CopiedBytes(daemon_, "h2d", path), 0) << path;
    EXPECT_EQ(CopiedBytes(daemon_, "d2h", path), 0) << path;
  }
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

}  // namespace
}  // namespace opserve::server
