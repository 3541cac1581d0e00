// Calls on shared memory, through the C++ client: what they compute, and that nothing is copied.
#include "client/cpp/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/shared_memory_requests.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kCount = 10'000;
constexpr uint64_t kBytes = kCount * sizeof(float);
constexpr size_t kMiB = 1 << 20;

class SharedMemoryTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  std::unique_ptr<opserve::SharedRegion> CreateRegion(size_t bytes,
                                                      const SharedRegionOptions& options = {}) {
    auto region = memory_->CreateRegion(bytes, options);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }

  double Copied(const char* direction, const char* path) {
    return MetricValue(daemon_.daemon(), "opserve_host_copy_bytes_total",
                       {{"direction", direction}, {"path", path}});
  }

  InProcessDaemon daemon_{WithSharedMemory()};
  const std::unique_ptr<SharedMemory> memory_ = *SharedMemory::Open(daemon_.target());
};

TEST_F(SharedMemoryTest, InputsAndResultsAreUsedWhereTheyAre) {
  const auto region = CreateRegion(kMiB);
  Layout layout(region.get());
  Request request = layout.Put(OnesRequest(kCount), kBytes);
  request.want_receipt = true;

  const auto response = daemon_.client().Execute(request);

  ASSERT_TRUE(IsAllOnes(response, kCount)) << response.status();
  EXPECT_EQ(response->results[0].bytes().data(), layout.At(*request.destinations[0]));
  EXPECT_EQ(response->receipt->copied_to_device_bytes(), 0u);
  EXPECT_EQ(response->receipt->copied_from_device_bytes(), 0u);
  EXPECT_EQ(response->receipt->device_memory_bytes(), response->receipt->workspace_bytes());
  for (const char* path : {"grpc", "shm"}) {
    EXPECT_EQ(Copied("h2d", path), 0) << path;
    EXPECT_EQ(Copied("d2h", path), 0) << path;
  }
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

TEST_F(SharedMemoryTest, ADeviceThatCannotMapItCopiesOnce) {
  InjectFaults("call=aclrtHostRegister,count=all,code=207000");
  const auto region = CreateRegion(kMiB);
  Layout layout(region.get());
  const Request request = layout.Put(OnesRequest(kCount), kBytes);

  for (int call = 1; call <= 4; ++call) {
    std::memset(layout.At(*request.destinations[0]), 0xff, kBytes);
    const auto response = daemon_.client().Execute(request);
    ASSERT_TRUE(IsAllOnes(response, kCount)) << response.status();
    EXPECT_EQ(Copied("h2d", "shm"), call * (2.0 * kBytes + sizeof(float)));
    EXPECT_EQ(Copied("d2h", "shm"), call * 1.0 * kBytes);
  }
  EXPECT_EQ(Copied("h2d", "grpc"), 0);
  EXPECT_EQ(Copied("d2h", "grpc"), 0);
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

// aclnn wants addresses that are multiples of 32, and memory behind the tensor.
TEST_F(SharedMemoryTest, WhatDoesNotLieAsDevicesNeedItIsCopied) {
  const auto region = CreateRegion(kMiB);
  Layout layout(region.get());
  layout.Skip(4);
  EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(layout.Put(OnesRequest(kCount), kBytes)), kCount));
  EXPECT_EQ(Copied("h2d", "shm"), 2.0 * kBytes + sizeof(float));
  EXPECT_EQ(Copied("d2h", "shm"), 1.0 * kBytes);
}

TEST_F(SharedMemoryTest, InOneRequestSomeTensorsMayBeSharedAndOthersSent) {
  const auto region = CreateRegion(kMiB);
  Layout layout(region.get());
  for (size_t shared = 0; shared < 3; ++shared) {
    Request request = OnesRequest(kCount);
    NamedInput& input = request.invocations[0].inputs[shared];
    input.value = layout.Put(std::get<Tensor>(input.value));
    EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(request), kCount)) << shared;
  }
  Request request = OnesRequest(kCount);
  request.destinations = {layout.Next(kBytes)};
  EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(request), kCount));
}

// A result in shared memory is read by a later invocation from there.
TEST_F(SharedMemoryTest, AProgramsIntermediateMayBeAResultInSharedMemory) {
  const auto region = CreateRegion(kMiB);
  for (const char* faults : {"", "call=aclrtHostRegister,count=all,code=207000"}) {
    if (*faults != '\0') InjectFaults(faults);
    Layout layout(region.get());
    Request request = OnesRequest(kCount);
    request.invocations.push_back(request.invocations[0]);
    request.invocations[1].inputs[1].value = OutputOf{.invocation = 0};
    request.invocations[1].inputs[2].value =
        Tensor::Owning<float>({kCount}, std::vector<float>(kCount, 0));
    request.results = {{.invocation = 1}, {.invocation = 0}};
    request.destinations = {std::nullopt, layout.Next(kBytes)};

    const auto response = daemon_.client().Execute(request);

    ASSERT_TRUE(response.ok()) << response.status();
    for (const Result& result : response->results) {
      EXPECT_THAT(*result.values<float>(), ::testing::Each(1.0f));
    }
    EXPECT_EQ(response->results[1].bytes().data(), region->bytes().data());
  }
}

TEST_F(SharedMemoryTest, TensorsWithoutElementsNeedNoMemory) {
  const auto region = CreateRegion(1);
  Layout layout(region.get());
  const auto response = daemon_.client().Execute(layout.Put(OnesRequest(0), 0));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->results[0].num_bytes(), 0u);
}

TEST_F(SharedMemoryTest, RequestsOfAStreamUseItAsWell) {
  const auto region = CreateRegion(4 * kMiB);
  Layout layout(region.get());
  auto stream = *daemon_.client().OpenStream();
  std::vector<std::future<absl::StatusOr<Response>>> answers;
  for (int i = 0; i < 20; ++i) {
    answers.push_back(stream->Execute(layout.Put(OnesRequest(kCount), kBytes)));
  }
  for (auto& answer : answers) EXPECT_TRUE(IsAllOnes(answer.get(), kCount));
  EXPECT_EQ(Copied("h2d", "shm") + Copied("h2d", "grpc"), 0);
}

TEST_F(SharedMemoryTest, ADeviceThatWasResetMapsItAnew) {
  const auto region = CreateRegion(kMiB);
  Layout layout(region.get());
  const Request request = layout.Put(OnesRequest(kCount), kBytes);
  ASSERT_TRUE(IsAllOnes(daemon_.client().Execute(request), kCount));
  for (int round = 0; round < 3; ++round) {
    for (const auto& device : daemon_.daemon().scheduler().devices()) {
      device->device().Quarantine(Fault::kDevice, "by the test");
    }
    daemon_.AwaitReady();

    std::memset(layout.At(*request.destinations[0]), 0xff, kBytes);
    EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(request), kCount));
  }
  EXPECT_EQ(Copied("h2d", "shm") + Copied("h2d", "grpc"), 0);
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

// What a device could not stop doing may still read and write the memory.
TEST(SharedMemoryOnOneLaneTest, MemoryThatAHangingKernelUsesStaysUntilTheDeviceIsReset) {
  Config config = WithSharedMemory(InProcessDaemon::OneLane());
  config.execution_timeout = absl::Milliseconds(500);
  InProcessDaemon daemon(config);
  const auto memory = *SharedMemory::Open(daemon.target());
  const int64_t before = HostCount(OPSERVE_HOST_REGISTERED_REGIONS);
  {
    auto region = memory->CreateRegion(kMiB);
    ASSERT_TRUE(region.ok()) << region.status();
    Layout layout(region->get());
    InjectFaults("call=aclrtStreamAbort,code=107019;kernel=*,hang");
    EXPECT_FALSE(daemon.client().Execute(layout.Put(OnesRequest(kCount), kBytes)).ok());
  }
  ASSERT_EQ(memory->ListRegions()->size(), 0u);
  EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), before + 1);
  daemon.daemon().scheduler().Find(0)->device().Quarantine(Fault::kDevice, "by the test");
  ClearFaults();
  daemon.AwaitReady();
  EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), before);
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
}

TEST_F(SharedMemoryTest, ARegionMayBeReadOnlyForTheDaemon) {
  const auto inputs = CreateRegion(kMiB, {.read_only = true});
  const auto results = CreateRegion(kMiB);
  Layout layout(inputs.get());
  Request request = layout.Put(OnesRequest(kCount), kBytes);
  const absl::Status refused = daemon_.client().Execute(request).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(refused), "forbidden");

  request.destinations = {results->Range(0, kBytes)};
  EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(request), kCount));
}

TEST_F(SharedMemoryTest, ResultsOutliveTheirRegionInTheClient) {
  auto region = CreateRegion(kMiB);
  Layout layout(region.get());
  const auto response = daemon_.client().Execute(layout.Put(OnesRequest(kCount), kBytes));
  region.reset();
  EXPECT_TRUE(IsAllOnes(response, kCount));
  EXPECT_EQ(memory_->ListRegions()->size(), 0u);
}

TEST_F(SharedMemoryTest, TheClientSaysWhatIsWrong) {
  const absl::Status nobody = SharedMemory::Open(daemon_.target() + "x").status();
  EXPECT_EQ(nobody.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nobody.message()), HasSubstr("--enable_shm"));
  EXPECT_EQ(SharedMemory::Open("localhost:1").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(memory_->CreateRegion(0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(memory_->CreateRegion(size_t{1} << 60).status().code(),
            absl::StatusCode::kResourceExhausted);
  Request request = OnesRequest(10);
  request.destinations = {std::nullopt, std::nullopt};
  EXPECT_EQ(daemon_.client().Execute(request).status().code(), absl::StatusCode::kInvalidArgument);
  // The connection is as good as before.
  EXPECT_EQ(memory_->ListRegions()->size(), 0u);
}

TEST_F(SharedMemoryTest, MetricsTellWhatTenantsShare) {
  const auto value = [&](const char* family, MetricLabels labels) {
    labels.push_back({"tenant", "default"});
    return MetricValue(daemon_.daemon(), family, labels);
  };
  const auto first = CreateRegion(1);
  auto second = CreateRegion(100'000);
  const double both = 4096 + 102'400;
  EXPECT_EQ(value("opserve_shm_regions", {}), 2);
  EXPECT_EQ(value("opserve_shm_bytes", {}), both);
  EXPECT_EQ(value("opserve_tenant_memory_bytes", {{"kind", "shm"}}), both);
  second.reset();
  EXPECT_EQ(value("opserve_shm_regions", {}), 1);
  EXPECT_EQ(value("opserve_shm_bytes", {}), 4096);
}

// X11: what one tenant shared, and what of it went through device memory, another never sees.
TEST(SharedMemoryOfTenantsTest, NothingOfATenantsMemoryIsSeenByAnother) {
  Config config = WithSharedMemory(InProcessDaemon::OneLane());
  // printf %s a | sha256sum, and of b
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(tenant { name: "a"
                  token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
         tenant { name: "b"
                  token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" }
         anonymous_tenant: "a")",
      &config.values));
  config.tenants = *TenantsFrom(config.values);
  InProcessDaemon daemon(config);
  constexpr auto kSecret = std::byte{0x5a};
  struct Party {
    Party(const InProcessDaemon& daemon, const std::string& token)
        : client(*Client::Connect(daemon.target(), {.token = token})),
          memory(*SharedMemory::Open(daemon.target(), {.token = token})),
          region(*memory->CreateRegion(kMiB)) {}
    const std::unique_ptr<Client> client;
    const std::unique_ptr<SharedMemory> memory;
    const std::unique_ptr<opserve::SharedRegion> region;
  };
  for (const char* faults : {"", "call=aclrtHostRegister,count=all,code=207000"}) {
    if (*faults != '\0') InjectFaults(faults);
    Party a(daemon, "a");
    Party b(daemon, "b");
    std::fill(a.region->bytes().begin(), a.region->bytes().end(), kSecret);
    Request secret = OnesRequest(kCount);
    for (NamedInput& input : secret.invocations[0].inputs) {
      input.value = SharedTensor{v1::DATA_TYPE_FLOAT, {kCount}, a.region->Range(0, kBytes)};
    }
    secret.destinations = {a.region->Range(2 * kBytes + 64, kBytes)};
    EXPECT_TRUE(a.client->Execute(secret).ok());

    // Neither the region itself ...
    const absl::Status refused = b.client->Execute(secret).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(refused), "shm_invalid");
    // ... nor what it left behind.
    Layout layout(b.region.get());
    EXPECT_TRUE(IsAllOnes(b.client->Execute(layout.Put(OnesRequest(kCount), kBytes)), kCount));
    EXPECT_EQ(std::count(b.region->bytes().begin(), b.region->bytes().end(), kSecret), 0);
    ClearFaults();
  }
}

}  // namespace
}  // namespace opserve::server
