// Uploads and downloads that go wrong: wherever they do, nothing stays behind.
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

class BrokenTransfersTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  static Config OneDevice() {
    Config config = InProcessDaemon::DefaultConfig();
    config.devices = {0};
    config.recovery_wait = absl::Milliseconds(1);
    return config;
  }
};

bool IsReadyAgain(const v1::DeviceStatus& device) {
  return device.state() == v1::DeviceStatus::STATE_READY && device.quarantines() > 0;
}

using Messages = std::vector<v1::UploadRequest>;

// Three chunks of 4096, 4096 and 1808 bytes.
const UploadPlan kPlan = {.bytes = CountingBytes(2500), .chunk_bytes = 4096};

struct BadUpload {
  const char* name;
  std::function<void(Messages& messages)> change;
  grpc::StatusCode expected;
  const char* in_message;
};

const BadUpload kBadUploads[] = {
    // The order of messages
    {"NoMessage", [](Messages& m) { m.clear(); }, grpc::StatusCode::INVALID_ARGUMENT, "header"},
    {"NoHeader", [](Messages& m) { m[0].clear_header(); }, grpc::StatusCode::INVALID_ARGUMENT,
     "header"},
    {"HeaderTwice", [](Messages& m) { *m[1].mutable_header() = m[0].header(); },
     grpc::StatusCode::INVALID_ARGUMENT, "header"},
    {"EndsEarly", [](Messages& m) { m.pop_back(); }, grpc::StatusCode::INVALID_ARGUMENT,
     "ended after 8192 of the tensor's 10000 bytes"},
    {"HeaderOnly", [](Messages& m) { m = {m[0]}, m[0].clear_data(), m[0].clear_crc32c(); },
     grpc::StatusCode::INVALID_ARGUMENT, "ended after 0"},
    // Chunks
    {"FirstChunkTooShort", [](Messages& m) { m[0].mutable_data()->pop_back(); },
     grpc::StatusCode::INVALID_ARGUMENT, "has 4095 bytes, expected 4096"},
    {"ChunkTooLong", [](Messages& m) { m[1].mutable_data()->push_back('x'); },
     grpc::StatusCode::INVALID_ARGUMENT, "has 4097 bytes, expected 4096"},
    {"ChunkWithoutData", [](Messages& m) { m[1].clear_data(); }, grpc::StatusCode::INVALID_ARGUMENT,
     "has 0 bytes, expected 4096"},
    {"LastChunkTooLong", [](Messages& m) { m[2].mutable_data()->push_back('x'); },
     grpc::StatusCode::INVALID_ARGUMENT, "has 1809 bytes, expected 1808"},
    {"WrongFirstChecksum", [](Messages& m) { m[0].set_crc32c(m[0].crc32c() ^ 1); },
     grpc::StatusCode::DATA_LOSS, "the 4096 bytes from 0 on"},
    {"WrongLastByte", [](Messages& m) { m[2].mutable_data()->back() ^= 1; },
     grpc::StatusCode::DATA_LOSS, "the 1808 bytes from 8192 on"},
    // The header
    {"NoDtype", [](Messages& m) { m[0].mutable_header()->clear_dtype(); },
     grpc::StatusCode::INVALID_ARGUMENT, "dtype: 0"},
    {"UnknownDtype",
     [](Messages& m) { m[0].mutable_header()->set_dtype(static_cast<v1::DataType>(99)); },
     grpc::StatusCode::INVALID_ARGUMENT, "dtype: 99"},
    {"NegativeExtent", [](Messages& m) { m[0].mutable_header()->set_shape(0, -1); },
     grpc::StatusCode::INVALID_ARGUMENT, "shape"},
    {"TooManyAxes", [](Messages& m) { m[0].mutable_header()->mutable_shape()->Resize(1000, 1); },
     grpc::StatusCode::INVALID_ARGUMENT, "rank 1000"},
    {"TooLarge", [](Messages& m) { m[0].mutable_header()->set_shape(0, 1 << 30); },
     grpc::StatusCode::INVALID_ARGUMENT, "max_tensor_bytes"},
    {"OverflowingSize", [](Messages& m) { m[0].mutable_header()->add_shape(INT64_MAX); },
     grpc::StatusCode::INVALID_ARGUMENT, "2^63"},
    {"NoChunkSize", [](Messages& m) { m[0].mutable_header()->clear_chunk_bytes(); },
     grpc::StatusCode::INVALID_ARGUMENT, "chunk_bytes: is 0"},
    {"ChunkSizeAboveTheLimit",
     [](Messages& m) { m[0].mutable_header()->set_chunk_bytes((64 * kMiB) - (64 << 10) + 1); },
     grpc::StatusCode::INVALID_ARGUMENT, "chunk_bytes"},
    {"NegativeLease", [](Messages& m) { m[0].mutable_header()->mutable_lease()->set_seconds(-1); },
     grpc::StatusCode::INVALID_ARGUMENT, "lease"},
    {"NoSuchDevice", [](Messages& m) { m[0].mutable_header()->set_device(7); },
     grpc::StatusCode::INVALID_ARGUMENT, "there are 0, 1"},
    {"DeviceOutOfRange", [](Messages& m) { m[0].mutable_header()->set_device(UINT32_MAX); },
     grpc::StatusCode::INVALID_ARGUMENT, "there are 0, 1"},
    {"DataOfNoElements", [](Messages& m) { m[0].mutable_header()->set_shape(0, 0); },
     grpc::StatusCode::INVALID_ARGUMENT, "after the tensor's 0 bytes"},
};

TEST_F(BrokenTransfersTest, ABadUploadIsRefusedAndLeavesNothing) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  for (const BadUpload& bad : kBadUploads) {
    SCOPED_TRACE(bad.name);
    Messages messages = UploadMessages(kPlan);
    bad.change(messages);

    const auto refused = calls.Upload(messages);

    EXPECT_EQ(refused.status.error_code(), bad.expected) << ToStatus(refused.status);
    EXPECT_THAT(refused.status.error_message(), ::testing::HasSubstr(bad.in_message));
    EXPECT_EQ(calls.CountTensors(), 0u);
    EXPECT_EQ(daemon.HeldByRequests(), 0);
  }
  EXPECT_TRUE(calls.Upload(kPlan).status.ok());
}

TEST_F(BrokenTransfersTest, AMessageAfterTheLastByteIsRefusedWhileThatIsWritten) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  Messages full = UploadMessages(kPlan);
  full.push_back(full[1]);
  Messages empty = UploadMessages(kPlan);
  empty.emplace_back();
  InjectFaults("call=aclrtMemcpy,count=all,slow=200000");
  for (const Messages& messages : {full, empty}) {
    const auto refused = calls.Upload(messages);

    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.status.error_message(),
                ::testing::HasSubstr("after the tensor's 10000 bytes"));
    EXPECT_EQ(calls.CountTensors(), 0u);
    EXPECT_EQ(daemon.HeldByRequests(), 0);
  }
}

TEST_F(BrokenTransfersTest, BadChunkSizesOfADownloadAreRefused) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  const std::string handle = calls.Upload(kPlan).response.handle();

  const auto refused = calls.Download(handle, 64 * kMiB);

  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(refused.bytes.empty());
}

// An upload whose first chunk is on the device, and which waits for the next.
class HalfUpload {
 public:
  HalfUpload(const InProcessDaemon& daemon, TensorCalls& calls) : messages_(UploadMessages(kPlan)) {
    const double copied = CopiedBytes(daemon);
    writer_ = calls.tensors().Upload(&context_, &response_);
    writer_->Write(messages_[0]);
    EXPECT_TRUE(Await([&] { return CopiedBytes(daemon) > copied; }));
  }

  void Cancel() { context_.TryCancel(); }
  void WriteRest() {
    for (size_t i = 1; i < messages_.size(); ++i) writer_->Write(messages_[i]);
    writer_->WritesDone();
  }
  grpc::Status Finish() { return writer_->Finish(); }

 private:
  static double CopiedBytes(const InProcessDaemon& daemon) {
    return MetricValue(daemon.daemon(), "opserve_host_copy_bytes_total",
                       {{"direction", "h2d"}, {"path", "grpc"}});
  }

  const Messages messages_;
  grpc::ClientContext context_;
  v1::UploadResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::UploadRequest>> writer_;
};

TEST_F(BrokenTransfersTest, AnUploadCancelledInTheMiddleLeavesNothing) {
  InProcessDaemon daemon(OneDevice());
  TensorCalls calls(daemon.target());
  HalfUpload upload(daemon, calls);
  ASSERT_GT(daemon.HeldByRequests(), 0);
  ASSERT_EQ(calls.CountTensors(), 1u);

  upload.Cancel();

  EXPECT_EQ(upload.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0 && calls.CountTensors() == 0; }));
}

TEST_F(BrokenTransfersTest, AnUploadThatNeverGoesOnEndsWithItsTime) {
  Config config = OneDevice();
  config.max_deadline = absl::Milliseconds(300);
  InProcessDaemon daemon(config);
  TensorCalls calls(daemon.target());
  HalfUpload upload(daemon, calls);

  const grpc::Status status = upload.Finish();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << ToStatus(status);
  EXPECT_EQ(DetailOf(status).reason(), "deadline_expired");
  EXPECT_EQ(daemon.HeldByRequests(), 0);
  EXPECT_EQ(calls.CountTensors(), 0u);
}

TEST_F(BrokenTransfersTest, ADownloadThatNobodyReadsEndsWithItsTime) {
  Config config = OneDevice();
  config.max_deadline = absl::Seconds(2);
  InProcessDaemon daemon(config);
  TensorCalls calls(daemon.target());
  const int64_t pinned_bytes = HostCount(OPSERVE_HOST_PINNED_BYTES);
  const auto uploaded = calls.Upload({.bytes = std::string(24 * kMiB, 'x'), .chunk_bytes = kMiB});
  ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
  grpc::ClientContext context;
  v1::DownloadRequest request;
  request.set_handle(uploaded.response.handle());
  const auto reader = calls.tensors().Download(&context, request);
  v1::DownloadResponse message;
  ASSERT_TRUE(reader->Read(&message));
  calls.Release(uploaded.response.handle());
  EXPECT_GT(daemon.HeldByRequests(), 0);  // the download still has the tensor

  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));

  context.TryCancel();
  EXPECT_FALSE(reader->Finish().ok());
  // It never had more than two chunks of host memory.
  EXPECT_LE(HostCount(OPSERVE_HOST_PINNED_BYTES) - pinned_bytes, 2 * kMiB + kMiB / 4);
}

TEST_F(BrokenTransfersTest, ADeviceLostDuringAnUploadIsUnavailableAndServesAgain) {
  InProcessDaemon daemon(OneDevice());
  TensorCalls calls(daemon.target());
  HalfUpload upload(daemon, calls);

  InjectFaults("device=0,lost");
  upload.WriteRest();

  const grpc::Status status = upload.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << ToStatus(status);
  EXPECT_EQ(DetailOf(status).reason(), "device_unavailable");
  calls.Await(0, IsReadyAgain);
  EXPECT_EQ(calls.CountTensors(), 0u);
  EXPECT_EQ(daemon.HeldByRequests(), 0);
  const auto again = calls.Upload(kPlan);
  ASSERT_TRUE(again.status.ok()) << ToStatus(again.status);
  EXPECT_EQ(calls.Download(again.response.handle()).bytes, kPlan.bytes);
}

TEST_F(BrokenTransfersTest, AResetBetweenTwoChunksLosesTheUpload) {
  InProcessDaemon daemon(OneDevice());
  TensorCalls calls(daemon.target());
  const auto victim = calls.Upload(kPlan);
  ASSERT_TRUE(victim.status.ok()) << ToStatus(victim.status);
  HalfUpload upload(daemon, calls);

  InjectFaults("device=0,lost");
  EXPECT_FALSE(calls.Download(victim.response.handle()).status.ok());
  calls.Await(0, IsReadyAgain);
  upload.WriteRest();

  const grpc::Status status = upload.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << ToStatus(status);
  EXPECT_EQ(DetailOf(status).reason(), "tensor_lost");
  EXPECT_EQ(DetailOf(calls.Download(victim.response.handle()).status).reason(), "tensor_lost");
  EXPECT_EQ(calls.CountTensors(), 0u);
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

// Every ABI call of a transfer, failed once each, with a code of each kind but a lost device's.
TEST_F(BrokenTransfersTest, WhateverCallFailsTheNextTransferSucceedsAndNothingIsHeld) {
  InProcessDaemon daemon(OneDevice());
  TensorCalls calls(daemon.target());
  for (const char* function : {"aclrtMalloc", "aclrtMallocHost", "aclrtMemcpy"}) {
    for (int code : {107000, 207001, 507000}) {
      for (int nth = 1; nth <= 3; ++nth) {
        SCOPED_TRACE(absl::StrCat(function, " ", code, " ", nth));
        InjectFaults(absl::StrCat("call=", function, ",nth=", nth, ",count=2,code=", code));
        const auto faulty = calls.Upload(kPlan);
        const auto faulty_download = calls.Download(faulty.response.handle(), 4096);
        ClearFaults();

        for (const grpc::Status& status : {faulty.status, faulty_download.status}) {
          EXPECT_THAT(
              status.error_code(),
              ::testing::AnyOf(grpc::StatusCode::OK, grpc::StatusCode::INTERNAL,
                               grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::NOT_FOUND))
              << ToStatus(status);
        }
        const auto next = calls.Upload(kPlan);
        EXPECT_EQ(calls.Download(next.response.handle(), 4096).bytes, kPlan.bytes);
        calls.Release(faulty.response.handle());
        calls.Release(next.response.handle());
        EXPECT_EQ(calls.CountTensors(), 0u);
        EXPECT_EQ(daemon.HeldByRequests(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace opserve::server
