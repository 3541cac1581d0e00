// Uploads that announce much and send little: what they take from others, and how they end.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/codec/crc32c.h"
#include "tests/await.h"
#include "tests/bytes.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/tensor_calls.h"
#include "tests/integration/two_tenants.h"

namespace opserve::server {
namespace {

constexpr uint64_t kDeviceBytes = 32 * kMiB;  // that a device lends

class Uploader {
 public:
  Uploader(const InProcessDaemon& daemon, std::string token)
      : stub_(v1::TensorService::NewStub(
            grpc::CreateChannel(daemon.target(), grpc::InsecureChannelCredentials()))),
        token_(std::move(token)) {}

  // An upload of `bytes` bytes to `device` whose header is sent, and nothing else yet.
  struct Upload {
    grpc::ClientContext context;
    v1::UploadResponse response;
    std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer;

    bool Send(const std::string& chunk) {
      v1::UploadRequest request;
      request.set_data(chunk);
      request.set_crc32c(codec::Crc32c(chunk));
      return writer->Write(request);
    }
    grpc::Status Finish() { return writer->Finish(); }
  };
  std::unique_ptr<Upload> Announce(uint32_t device, uint64_t bytes, uint64_t chunk_bytes) {
    auto upload = std::make_unique<Upload>();
    if (!token_.empty()) upload->context.AddMetadata("authorization", "Bearer " + token_);
    upload->writer = stub_->Upload(&upload->context, &upload->response);
    v1::UploadRequest request;
    v1::UploadHeader& header = *request.mutable_header();
    header.set_dtype(v1::DATA_TYPE_FLOAT);
    header.add_shape(static_cast<int64_t>(bytes / sizeof(float)));
    header.set_chunk_bytes(chunk_bytes);
    header.set_device(device);
    upload->writer->Write(request);
    return upload;
  }

 private:
  const std::unique_ptr<v1::TensorService::Stub> stub_;
  const std::string token_;
};

Config TwoTenants() {
  Config config = InProcessDaemon::DefaultConfig();
  AddTwoTenants(&config);
  return config;
}

absl::StatusOr<Response> Ask(const InProcessDaemon& daemon, const std::string& token) {
  const auto client =
      *Client::Connect(daemon.target(), {.token = token, .retry = {.max_attempts = 1}});
  Request request = OnesRequest(16);
  request.timeout = absl::Seconds(20);
  return client->Execute(std::move(request));
}

TEST(StalledUploadsTest, AnnouncementsTakeNothingFromOthers) {
  InProcessDaemon daemon(TwoTenants());
  Uploader a(daemon, "a");
  std::vector<std::unique_ptr<Uploader::Upload>> uploads;
  for (uint32_t i = 0; i < 16; ++i) uploads.push_back(a.Announce(i % 2, kDeviceBytes / 2, kMiB));
  TensorCalls calls(daemon.target());
  ASSERT_TRUE(Await([&] { return calls.CountTensors() >= 2; }));

  for (int i = 0; i < 20; ++i) {
    const auto response = Ask(daemon, "b");
    ASSERT_TRUE(IsAllOnes(response, 16)) << response.status();
  }
  for (const auto& upload : uploads) upload->context.TryCancel();
}

TEST(StalledUploadsTest, BookingsThatAreHardlyFilledTakeNothingFromOthers) {
  Config config = TwoTenants();
  config.upload_stall_timeout = absl::Minutes(10);  // they last as long as the test
  InProcessDaemon daemon(config);
  Uploader a(daemon, "a");
  // A byte of each is enough to book all of it, up to the tenant's half of each device.
  std::vector<std::unique_ptr<Uploader::Upload>> uploads;
  for (uint32_t i = 0; i < 16; ++i) {
    uploads.push_back(a.Announce(i % 2, kDeviceBytes / 8, 1));
    uploads.back()->Send("x");
  }
  const auto booked = [&] {
    return MetricValue(daemon.daemon(), "opserve_tenant_memory_bytes",
                       {{"tenant", "a"}, {"kind", "hbm"}});
  };
  ASSERT_TRUE(Await([&] { return booked() >= kDeviceBytes; })) << booked();
  EXPECT_LE(booked(), kDeviceBytes) << "half of both devices";

  for (int i = 0; i < 20; ++i) {
    const auto response = Ask(daemon, "b");
    ASSERT_TRUE(IsAllOnes(response, 16)) << response.status();
  }
  for (const auto& upload : uploads) upload->context.TryCancel();
}

class SlowUploadTest : public ::testing::Test {
 protected:
  static Config Impatient() {
    Config config = InProcessDaemon::DefaultConfig();
    config.upload_stall_timeout = absl::Milliseconds(500);
    return config;
  }
  double Device0(const std::string& gauge) const {
    return MetricValue(daemon_.daemon(), gauge, {{"device", "0"}});
  }
  double Stalled() const {
    return MetricValue(daemon_.daemon(), "opserve_uploads_total", {{"result", "stalled"}});
  }
  void ExpectStalled(Uploader::Upload* upload) {
    const grpc::Status status = upload->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << ToStatus(status);
    EXPECT_EQ(DetailOf(status).reason(), "upload_stalled");
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr("--upload_stall_timeout"));
    EXPECT_EQ(Device0("opserve_workspace_pool_booked_bytes"), 0);
    EXPECT_EQ(Device0("opserve_upload_unwritten_bytes"), 0);
    EXPECT_TRUE(Await([&] { return Stalled() == 1; }));
    EXPECT_EQ(daemon_.HeldByRequests(), 0);
    EXPECT_EQ(TensorCalls(daemon_.target()).CountTensors(), 0u);
  }

  InProcessDaemon daemon_{Impatient()};
  Uploader uploader_{daemon_, ""};
};

TEST_F(SlowUploadTest, AnAnnouncementWithoutBytesEnds) {
  const auto upload = uploader_.Announce(0, kDeviceBytes / 2, 4096);
  ExpectStalled(upload.get());
}

TEST_F(SlowUploadTest, AByteNowAndThenDoesNotKeepAnUploadAlive) {
  const auto upload = uploader_.Announce(0, kDeviceBytes / 2, 1);
  // Until the daemon ends it. Bytes come far more often than the stall timeout asks for.
  EXPECT_TRUE(Await([&] {
    absl::SleepFor(absl::Milliseconds(50));
    return !upload->Send("x");
  }));
  ExpectStalled(upload.get());
}

TEST_F(SlowUploadTest, AnUploadAtAGoodPaceEndsWell) {
  TensorCalls calls(daemon_.target());
  const auto uploaded = calls.Upload({.bytes = std::string(8 * kMiB, 'x'), .chunk_bytes = kMiB});
  EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
  EXPECT_TRUE(Await([&] {
    return MetricValue(daemon_.daemon(), "opserve_uploads_total", {{"result", "complete"}}) == 1;
  }));
  EXPECT_EQ(Stalled(), 0);
}

TEST_F(SlowUploadTest, TheAnswerFollowsTheLastByteWithoutAnEndOfTheMessages) {
  TensorCalls calls(daemon_.target());
  for (const size_t chunks : {0, 1, 3}) {
    SCOPED_TRACE(chunks);
    const auto upload = uploader_.Announce(0, chunks * 4096, 4096);
    for (size_t i = 0; i < chunks; ++i) ASSERT_TRUE(upload->Send(std::string(4096, 'x')));

    const grpc::Status status = upload->Finish();

    ASSERT_TRUE(status.ok()) << ToStatus(status);
    EXPECT_EQ(calls.Download(upload->response.handle()).bytes, std::string(chunks * 4096, 'x'));
  }
  EXPECT_TRUE(Await([&] {
    return MetricValue(daemon_.daemon(), "opserve_uploads_total", {{"result", "complete"}}) == 3;
  }));
  EXPECT_EQ(Stalled(), 0);
}

TEST_F(SlowUploadTest, ASlowDeviceIsNoStallOfTheClients) {
  InjectFaults("call=aclrtMemcpy,count=all,slow=700000");
  const auto upload = uploader_.Announce(0, 4096, 4096);
  ASSERT_TRUE(upload->Send(std::string(4096, 'x')));

  const grpc::Status status = upload->Finish();

  ClearFaults();
  EXPECT_TRUE(status.ok()) << ToStatus(status);
}

TEST(UploadBookingTest, WhatIsBookedAndNotWrittenIsInTheMetrics) {
  Config config = InProcessDaemon::DefaultConfig();
  config.upload_stall_timeout = absl::Minutes(10);
  InProcessDaemon daemon(config);
  Uploader uploader(daemon, "");
  const auto device_0 = [&](const std::string& gauge) {
    return MetricValue(daemon.daemon(), gauge, {{"device", "0"}});
  };
  const auto upload = uploader.Announce(0, kDeviceBytes / 2, kMiB);
  TensorCalls calls(daemon.target());
  ASSERT_TRUE(Await([&] { return calls.CountTensors() == 1; }));
  EXPECT_EQ(device_0("opserve_workspace_pool_booked_bytes"), 0) << "it is only announced";

  ASSERT_TRUE(upload->Send(std::string(kMiB, 'x')));
  EXPECT_TRUE(
      Await([&] { return device_0("opserve_upload_unwritten_bytes") == kDeviceBytes / 2 - kMiB; }));
  EXPECT_EQ(device_0("opserve_workspace_pool_booked_bytes"), kDeviceBytes / 2);
  EXPECT_GE(MetricValue(daemon.daemon(), "opserve_overload_pressure_ratio",
                        {{"monitor", "device_memory"}}),
            0.5);

  upload->context.TryCancel();
  EXPECT_EQ(upload->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Await([&] { return device_0("opserve_workspace_pool_booked_bytes") == 0; }));
  EXPECT_EQ(device_0("opserve_upload_unwritten_bytes"), 0);
  EXPECT_TRUE(Await([&] {
    return MetricValue(daemon.daemon(), "opserve_uploads_total", {{"result", "cancelled"}}) == 1;
  }));
}

TEST(ResidentPartTest, ATenantKeepsItsPartOfADeviceAndNoMore) {
  InProcessDaemon daemon(TwoTenants());
  const auto a = *Client::Connect(daemon.target(), {.token = "a", .retry = {.max_attempts = 1}});
  const auto upload = [&](uint64_t bytes) {
    const int64_t count = static_cast<int64_t>(bytes / sizeof(float));
    return a->Upload(Tensor::Owning<float>({count}, std::vector<float>(count)), {.device = 0});
  };
  const absl::Status never = upload(kDeviceBytes / 2 + 4096).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kFailedPrecondition) << never;
  EXPECT_EQ(ReasonOf(never), "tenant_memory");

  const auto first = upload(kDeviceBytes / 4);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status later = upload(kDeviceBytes / 4 + 4096).status();
  EXPECT_EQ(later.code(), absl::StatusCode::kResourceExhausted) << later;
  EXPECT_EQ(ReasonOf(later), "tenant_memory");
  const auto response = Ask(daemon, "b");
  EXPECT_TRUE(IsAllOnes(response, 16)) << response.status();
}

}  // namespace
}  // namespace opserve::server
