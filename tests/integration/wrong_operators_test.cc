// A daemon with two devices, one of which computes an operator wrong: the operator is not used
// there, and everything else is.
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "opserve/v1/admin_service.grpc.pb.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOperator[] = "L1LossBackward";
constexpr char kFamily[] = "opserve_operator_unavailable";

class WrongOperatorsTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  // `where`: devices that compute L1LossBackward wrong, `times` each.
  void Start(absl::Span<const int> where, int times = 1) {
    TestAcl();  // has the function that injects
    for (const int device : where) {
      InjectFaults(absl::StrCat("kernel=aclnnL1LossBackward,wrong,on=", device, ",count=", times));
    }
    Config config = InProcessDaemon::DefaultConfig();
    config.admin_listen = config.listen[0];
    config.admin_listen->path += ".admin";
    daemon_.emplace(config);
    calls_.emplace(daemon_->target());
    admin_ = v1::AdminService::NewStub(
        grpc::CreateChannel(config.admin_listen->ToString(), grpc::InsecureChannelCredentials()));
  }

  // The devices on which requests run that name none.
  std::set<uint32_t> DevicesOf(Request request) {
    request.want_receipt = true;
    std::set<uint32_t> devices;
    for (int i = 0; i < 8; ++i) {
      const auto response = daemon_->client().Execute(request);
      EXPECT_TRUE(response.ok()) << response.status();
      if (response.ok()) devices.insert(response->receipt->device());
    }
    return devices;
  }

  v1::DeviceStatus StatusOf(int device) {
    return daemon_->client().GetServerStatus()->devices(device);
  }
  double Gauge(int device) {
    return MetricValue(daemon_->daemon(), kFamily,
                       {{"operator", kOperator}, {"device", absl::StrCat(device)}});
  }
  bool IsListedAsAvailable() {
    return daemon_->client().ListOperators({{kOperator}})->front().available();
  }
  bool IsModelReady() {
    const auto stub = NewInferenceStub(daemon_->target());
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(kOperator);
    inference::ModelReadyResponse response;
    EXPECT_TRUE(stub->ModelReady(&context, request, &response).ok());
    return response.ready();
  }
  grpc::Status Resume(uint32_t device) {
    grpc::ClientContext context;
    v1::ResumeDeviceRequest request;
    request.set_device(device);
    v1::ResumeDeviceResponse response;
    return admin_->ResumeDevice(&context, request, &response);
  }

  // `self` of L1LossBackward or, with another name, of an operator with the same inputs.
  static Request WithResident(const opserve::ResidentTensor& self, const char* name) {
    Request request = OnesRequest(1);
    request.invocations[0].operator_name = name;
    request.invocations[0].inputs[1].value = self;
    return request;
  }

  std::optional<InProcessDaemon> daemon_;
  std::optional<TensorCalls> calls_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

TEST_F(WrongOperatorsTest, RequestsGoWhereTheOperatorIsRight) {
  Start({0});
  EXPECT_THAT(DevicesOf(OnesRequest(10)), ElementsAre(1));
  Request other = OnesRequest(10);
  other.invocations[0].operator_name = "MseLossBackward";
  EXPECT_THAT(DevicesOf(other), ElementsAre(0, 1));
  // A program is placed by all of its operators.
  other.invocations.push_back(OnesRequest(10).invocations[0]);
  EXPECT_THAT(DevicesOf(other), ElementsAre(1));
}

TEST_F(WrongOperatorsTest, StatusAndMetricsNameIt) {
  Start({0});
  const v1::DeviceStatus wrong = StatusOf(0);
  EXPECT_EQ(wrong.state(), v1::DeviceStatus::STATE_READY);
  EXPECT_EQ(wrong.quarantines(), 0u);
  ASSERT_EQ(wrong.wrong_operators_size(), 1);
  EXPECT_EQ(wrong.wrong_operators(0).operator_(), kOperator);
  EXPECT_THAT(wrong.wrong_operators(0).problem(),
              AllOf(HasSubstr("golden case: element 0 is"), HasSubstr("must be")));
  EXPECT_EQ(StatusOf(1).wrong_operators_size(), 0);
  EXPECT_EQ(Gauge(0), 1);
  EXPECT_EQ(Gauge(1), 0);
  EXPECT_TRUE(IsListedAsAvailable());
  EXPECT_TRUE(IsModelReady());
}

TEST_F(WrongOperatorsTest, ResidentTensorsThereCannotBeUsedWithIt) {
  Start({0});
  const auto resident = daemon_->client().Upload(Tensor::Owning<float>({1}, {3.0f}), {.device = 0});
  ASSERT_TRUE(resident.ok()) << resident.status();

  const absl::Status refused =
      daemon_->client().Execute(WithResident(*resident, kOperator)).status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), "operator_unavailable");
  EXPECT_EQ(DetailOf(refused).operator_(), kOperator);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("device 0 does not offer it: golden case: element 0 is"),
                    HasSubstr("the request's resident tensors are on this device")));
  EXPECT_TRUE(daemon_->client().Execute(WithResident(*resident, "MseLossBackward")).ok());
  EXPECT_EQ(daemon_->daemon().scheduler().Find(1)->completed(), 0u);
  daemon_->EndLeases();
}

TEST_F(WrongOperatorsTest, WhatIsKeptIsMadeWhereTheOperatorIsRight) {
  Start({0});
  // The tenant's other tensors are on device 0, which would make the device the first choice.
  ASSERT_TRUE(calls_->Upload({.bytes = CountingBytes(1), .device = 0}).status.ok());
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_(kOperator);
  for (const char* name : {"grad_output", "self", "target"}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    input->mutable_tensor()->add_shape(1);
    input->mutable_tensor()->set_literal(CountingBytes(1));
  }
  request.add_results()->mutable_keep();
  v1::ExecuteResponse response;

  const grpc::Status kept = calls_->Execute(request, &response);

  ASSERT_TRUE(kept.ok()) << ToStatus(kept);
  EXPECT_EQ(response.results(0).kept().device(), 1u);
  daemon_->EndLeases();
}

TEST_F(WrongOperatorsTest, NoDeviceThatOffersItIsARefusal) {
  Start({0, 1});
  const absl::Status refused = daemon_->client().Execute(OnesRequest(10)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), "operator_unavailable");
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("L1LossBackward: no device offers it: golden case: element 0 is"));
  EXPECT_FALSE(IsListedAsAvailable());
  EXPECT_FALSE(IsModelReady());
  const auto inference = Infer(*NewInferenceStub(daemon_->target()), OnesInference(3));
  EXPECT_EQ(inference.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailOf(inference.status).reason(), "operator_unavailable");
  EXPECT_EQ(MetricValue(daemon_->daemon(), "opserve_admission_rejections_total",
                        {{"reason", "operator_unavailable"}, {"tenant", "default"}}),
            2);
  // The daemon serves what is right.
  Request other = OnesRequest(10);
  other.invocations[0].operator_name = "MseLossBackward";
  EXPECT_THAT(DevicesOf(other), ElementsAre(0, 1));
}

TEST_F(WrongOperatorsTest, OnlyReadyDevicesCountAsOffering) {
  Start({0});
  ASSERT_TRUE(daemon_->daemon().scheduler().Find(1)->BeginDrain().ok());
  EXPECT_FALSE(IsListedAsAvailable());
  EXPECT_FALSE(IsModelReady());
  EXPECT_EQ(ReasonOf(daemon_->client().Execute(OnesRequest(10)).status()), "operator_unavailable");
}

TEST_F(WrongOperatorsTest, ResumingADeviceTriesItAgain) {
  Start({0}, /*times=*/2);
  ASSERT_TRUE(Resume(0).ok());
  EXPECT_EQ(Gauge(0), 1);  // still wrong, and still ready
  EXPECT_EQ(StatusOf(0).state(), v1::DeviceStatus::STATE_READY);
  EXPECT_THAT(DevicesOf(OnesRequest(10)), ElementsAre(1));

  ASSERT_TRUE(Resume(0).ok());

  EXPECT_EQ(Gauge(0), 0);
  EXPECT_EQ(StatusOf(0).wrong_operators_size(), 0);
  EXPECT_THAT(DevicesOf(OnesRequest(10)), ElementsAre(0, 1));
}

TEST_F(WrongOperatorsTest, AResetOfTheDeviceTriesItAgain) {
  Start({0});
  daemon_->daemon().scheduler().Find(0)->device().Quarantine(Fault::kDevice, "a test says so");
  daemon_->AwaitReady();
  EXPECT_EQ(StatusOf(0).wrong_operators_size(), 0);
  EXPECT_THAT(DevicesOf(OnesRequest(10)), ElementsAre(0, 1));
  EXPECT_EQ(Gauge(0), 0);  // there since the first call
}

}  // namespace
}  // namespace opserve::server
