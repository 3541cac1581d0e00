// Administration: draining and resuming devices, their pools, and who may.
#include <sys/stat.h>

#include <future>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "opserve/v1/admin_service.grpc.pb.h"
#include "server/admin/admin_server.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

class AdminTest : public ::testing::TestWithParam<Door> {
 protected:
  AdminTest() : config_(WithAdmin()), daemon_(config_), calls_(daemon_.target()) {
    stub_ = v1::AdminService::NewStub(
        grpc::CreateChannel(config_.admin_listen->ToString(), grpc::InsecureChannelCredentials()));
  }
  void TearDown() override { ClearFaults(); }

  static Config WithAdmin() {
    Config config = InProcessDaemon::DefaultConfig();
    config.admin_listen = config.listen[0];
    config.admin_listen->path += ".admin";
    config.recovery_wait = absl::Hours(1);  // nobody but an administrator brings a device back
    return config;
  }

  // Calls an RPC about a device; `response` may be null.
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::AdminService::Stub::*rpc)(grpc::ClientContext*,
                                                                const Request&, Response*),
                    uint32_t device, Response* response = nullptr,
                    absl::Duration timeout = absl::Seconds(60)) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    Request request;
    request.set_device(device);
    Response unused;
    return (stub_.get()->*rpc)(&context, request, response != nullptr ? response : &unused);
  }
  grpc::Status Drain(uint32_t device) { return Call(&v1::AdminService::Stub::DrainDevice, device); }
  grpc::Status Resume(uint32_t device) {
    return Call(&v1::AdminService::Stub::ResumeDevice, device);
  }
  v1::PoolSnapshot Snapshot(uint32_t device) {
    v1::PoolSnapshot snapshot;
    EXPECT_TRUE(Call(&v1::AdminService::Stub::GetPoolSnapshot, device, &snapshot).ok());
    return snapshot;
  }

  bool Executes() { return caller_.ExecuteOnes(10).ok(); }
  v1::DeviceStatus::State StateOf(uint32_t device) {
    return daemon_.client().GetServerStatus()->devices(device).state();
  }

  double StateMetric(uint32_t device, const std::string& state) {
    return MetricValue(daemon_.daemon(), "opserve_device_state",
                       {{"device", absl::StrCat(device)}, {"state", state}});
  }

  const Config config_;
  InProcessDaemon daemon_;
  TensorCalls calls_;
  DoorCaller caller_{daemon_.target(), GetParam()};
  std::unique_ptr<v1::AdminService::Stub> stub_;
};

TEST_P(AdminTest, ADrainedDeviceTakesNothingUntilItIsResumed) {
  ASSERT_TRUE(Drain(0).ok());
  EXPECT_EQ(StateOf(0), v1::DeviceStatus::STATE_DRAINED);
  EXPECT_EQ(StateMetric(0, "drained"), 1);
  EXPECT_EQ(StateMetric(0, "draining"), 0);
  EXPECT_EQ(StateMetric(1, "drained"), 0);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Executes());
  EXPECT_EQ(daemon_.client().GetServerStatus()->devices(0).completed_requests(), 0u);
  EXPECT_TRUE(Drain(0).ok());  // it is empty already

  ASSERT_TRUE(Resume(0).ok());

  EXPECT_EQ(StateOf(0), v1::DeviceStatus::STATE_READY);
  ASSERT_TRUE(Drain(1).ok());
  EXPECT_TRUE(Executes());
  EXPECT_EQ(daemon_.client().GetServerStatus()->devices(0).completed_requests(), 1u);
}

TEST_P(AdminTest, ATransferIsOneRequestHoweverManyChunksItHas) {
  const auto uploaded =
      calls_.Upload({.bytes = CountingBytes(1000), .chunk_bytes = 100, .device = 1});
  ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
  EXPECT_EQ(daemon_.client().GetServerStatus()->devices(1).completed_requests(), 1u);
  const auto downloaded = calls_.Download(uploaded.response.handle(), /*chunk_bytes=*/100);
  EXPECT_EQ(downloaded.chunks.size(), 40u);
  EXPECT_EQ(daemon_.client().GetServerStatus()->devices(1).completed_requests(), 2u);
}

TEST_P(AdminTest, StatusAddsUpRequestsByTenantAndOperator) {
  ASSERT_TRUE(Executes());
  Request wrong = OnesRequest(10);
  wrong.invocations[0].inputs.clear();
  ASSERT_FALSE(daemon_.client().Execute(wrong).ok());

  grpc::ClientContext context;
  v1::AdminStatus status;
  ASSERT_TRUE(stub_->GetStatus(&context, v1::GetStatusRequest(), &status).ok());

  ASSERT_EQ(status.tenants_size(), 1);
  const v1::TenantStatus& tenant = status.tenants(0);
  ASSERT_EQ(status.operators_size(), 1);
  const v1::OperatorStatus& op = status.operators(0);
  EXPECT_EQ(op.name(), "L1LossBackward");
  EXPECT_EQ(op.requests(), 2u);
  EXPECT_EQ(op.failed_requests(), 1u);
  EXPECT_GT(op.success_seconds(), 0);
  EXPECT_GT(op.request_bytes(), 80u);
  EXPECT_GT(op.response_bytes(), 40u);
  EXPECT_EQ(tenant.requests(), 2u);
  EXPECT_NEAR(tenant.success_seconds(), op.success_seconds(), 1e-6);
  EXPECT_EQ(tenant.request_bytes(), op.request_bytes());
  EXPECT_EQ(tenant.response_bytes(), op.response_bytes());
}

TEST_P(AdminTest, TensorsAreListedForTheirTenantAndForAdministrators) {
  for (const int64_t count : {100, 1000}) {
    ASSERT_TRUE(calls_.Upload({.bytes = CountingBytes(count), .device = 1}).status.ok());
  }

  const auto own = daemon_.client().ListTensors();
  v1::ListTensorsResponse all;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->ListTensors(&context, v1::ListTensorsRequest(), &all).ok());
  v1::ListTensorsRequest unknown;
  unknown.set_tenant("nobody");
  grpc::ClientContext other;
  const grpc::Status refused = stub_->ListTensors(&other, unknown, &all);

  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_EQ(own->size(), 2u);
  EXPECT_LT((*own)[0].tensor.handle, (*own)[1].tensor.handle);
  EXPECT_EQ((*own)[0].num_bytes + (*own)[1].num_bytes, 4400u);
  EXPECT_EQ((*own)[0].tensor.device, 1u);
  EXPECT_GE((*own)[0].age, absl::ZeroDuration());
  EXPECT_GT((*own)[0].lease_left, absl::ZeroDuration());
  ASSERT_EQ(all.tensors_size(), 2);
  EXPECT_EQ(all.total_bytes(), 4400u);
  const v1::TensorSummary& largest = all.tensors(0).tensor();
  EXPECT_EQ(largest.bytes(), 4000u);
  EXPECT_EQ(largest.handle().size(), 4u);
  EXPECT_NE(all.tensors(0).tenant(), "");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_P(AdminTest, ResidentTensorsLeaveTheirDrainedDeviceAndNoneComeToIt) {
  const std::string bytes = CountingBytes(1000);
  const auto uploaded = calls_.Upload({.bytes = bytes, .device = 1});
  ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);

  ASSERT_TRUE(Drain(1).ok());
  const auto elsewhere = calls_.Upload({.bytes = bytes});
  const grpc::Status refused = calls_.Upload({.bytes = bytes, .device = 1}).status;

  EXPECT_EQ(StateOf(1), v1::DeviceStatus::STATE_DRAINED);
  EXPECT_EQ(calls_.Download(uploaded.response.handle()).bytes, bytes);
  EXPECT_EQ(daemon_.client().GetServerStatus()->devices(0).resident_tensors(), 2u);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << ToStatus(refused);
  EXPECT_EQ(DetailOf(refused).reason(), "draining");
  EXPECT_EQ(elsewhere.response.device(), 0u);
  EXPECT_TRUE(calls_.Renew(uploaded.response.handle()).ok());
}

TEST_P(AdminTest, DrainingWaitsForWhatRunsUntilItsDeadline) {
  ASSERT_TRUE(Drain(1).ok());
  InjectFaults("kernel=*,hang");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  auto hanging = std::async(std::launch::async, [this] { return caller_.ExecuteOnes(10); });
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));

  const grpc::Status status =
      Call(&v1::AdminService::Stub::DrainDevice, 0, static_cast<v1::DrainDeviceResponse*>(nullptr),
           absl::Milliseconds(100));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(StateOf(0), v1::DeviceStatus::STATE_DRAINING);
  EXPECT_EQ(StateMetric(0, "draining"), 1);
  EXPECT_EQ(StateMetric(0, "drained"), 0);
  caller_.Cancel();
  EXPECT_EQ(hanging.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Drain(0).ok());
}

TEST_P(AdminTest, ResumingBringsAQuarantinedDeviceBackAtOnce) {
  InjectFaults("device=1,lost");
  EXPECT_TRUE(Await([&] {
    Executes();
    return StateOf(1) == v1::DeviceStatus::STATE_QUARANTINED;
  }));
  // The device was up for less than twice the recovery wait, so nothing happens by itself.

  const grpc::Status drained = Drain(1);
  const grpc::Status resumed = Resume(1);

  EXPECT_EQ(drained.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << ToStatus(drained);
  ASSERT_TRUE(resumed.ok()) << ToStatus(resumed);
  EXPECT_EQ(StateOf(1), v1::DeviceStatus::STATE_READY);
  ASSERT_TRUE(Drain(0).ok());
  EXPECT_TRUE(Executes());
}

TEST_P(AdminTest, ASnapshotAddsUpAndTrimmingGivesIdleMemoryBack) {
  const auto uploaded = calls_.Upload({.bytes = std::string(1 << 20, 'x'), .device = 0});
  ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);

  const v1::PoolSnapshot lent = Snapshot(0);
  calls_.Release(uploaded.response.handle());
  const v1::PoolSnapshot released = Snapshot(0);
  v1::TrimPoolResponse trimmed;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::TrimPool, 0, &trimmed).ok());
  const v1::PoolSnapshot after = Snapshot(0);

  EXPECT_GE(lent.allocated_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(released.allocated_bytes(), 0u);
  EXPECT_GE(trimmed.trimmed_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(after.reserved_bytes() + trimmed.trimmed_bytes(), released.reserved_bytes());
  bool has_tensor = false;
  for (const v1::PoolSnapshot& snapshot : {lent, released, after}) {
    uint64_t regions = 0;
    for (const v1::PoolSnapshot::Region& region : snapshot.regions()) {
      uint64_t offset = 0;
      for (const v1::PoolSnapshot::Block& block : region.blocks()) {
        EXPECT_EQ(block.offset(), offset);
        offset += block.bytes();
        const bool is_lent = block.state() == v1::PoolSnapshot::Block::STATE_ALLOCATED;
        EXPECT_EQ(block.has_age(), is_lent);
        if (!is_lent || block.requested_bytes() != uint64_t{1} << 20) continue;
        has_tensor = true;
        EXPECT_TRUE(block.has_owner());
        EXPECT_EQ(block.stream(), 0u);  // a resident tensor is in the order of none
        EXPECT_GT(block.age().seconds() * 1'000'000'000 + block.age().nanos(), 0);
      }
      EXPECT_EQ(offset, region.bytes());
      regions += region.bytes();
    }
    EXPECT_EQ(regions, snapshot.reserved_bytes());
    EXPECT_EQ(snapshot.reserved_bytes(),
              snapshot.allocated_bytes() + snapshot.idle_bytes() + snapshot.retired_bytes());
  }
  EXPECT_TRUE(has_tensor);
}

TEST_P(AdminTest, AnUnknownDeviceIsNotFoundAndTheErrorNamesThoseThereAre) {
  for (uint32_t device : {2u, UINT32_MAX}) {
    for (const grpc::Status& status :
         {Drain(device), Resume(device), Call(&v1::AdminService::Stub::TrimPool, device),
          Call(&v1::AdminService::Stub::GetPoolSnapshot, device)}) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
      EXPECT_THAT(status.error_message(), HasSubstr("there are 0, 1"));
    }
  }
}

TEST_P(AdminTest, OnlyTheOwnerMayConnectAndClientsListenersDoNotOfferIt) {
  struct stat info = {};
  ASSERT_EQ(stat(config_.admin_listen->path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  stub_ = v1::AdminService::NewStub(
      grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Drain(0).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(AdminListenTest, AddressesOfOtherMachinesAreRefused) {
  Config config = InProcessDaemon::DefaultConfig();
  for (const char* address : {"0.0.0.0:0", "192.168.7.7:9465", "[::]:0"}) {
    config.admin_listen = *ParseListenAddress(address);
    EXPECT_EQ(Daemon::Start(config).status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
}

INSTANTIATE_TEST_SUITE_P(Doors, AdminTest, BothDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
