// Resident tensors from upload to release: their bytes, their use in calls, quotas and leases.
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;

// A view of a FLOAT tensor, whose strides are in elements.
v1::Tensor View(std::vector<int64_t> shape, std::vector<int64_t> strides = {}, int64_t offset = 0) {
  v1::Tensor view;
  view.set_dtype(v1::DATA_TYPE_FLOAT);
  view.mutable_shape()->Add(shape.begin(), shape.end());
  view.mutable_strides()->Add(strides.begin(), strides.end());
  view.set_offset(offset);
  return view;
}

// A call whose result is the elements of `tensor`, of `shape`: LogSoftmaxBackward where every
// probability is 0.
v1::ExecuteRequest EchoRequest(const v1::Tensor& tensor, const std::vector<int64_t>& shape) {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("LogSoftmaxBackward");
  v1::NamedTensor* input = invocation->add_inputs();
  input->set_name("grad_output");
  *input->mutable_tensor() = tensor;
  input = invocation->add_inputs();
  input->set_name("output");
  *input->mutable_tensor() = View(shape, std::vector<int64_t>(shape.size(), 0));
  input->mutable_tensor()->set_payload(0);
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  request.add_payloads(&minus_infinity, sizeof(minus_infinity));
  request.set_want_receipt(true);
  return request;
}

v1::ExecuteRequest EchoRequest(const std::string& handle, const std::vector<int64_t>& shape) {
  v1::Tensor tensor;
  tensor.set_resident_tensor(handle);
  return EchoRequest(tensor, shape);
}

TEST(ResidentTensorsTest, ATensorLargerThanAMessageComesBackAsItWas) {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_message_bytes = kMiB;
  InProcessDaemon daemon(config);
  TensorCalls calls(daemon.target());
  const std::string bytes = CountingBytes(800'001);  // 3.05 MiB
  const uint64_t longest_chunk = kMiB - (64 << 10);

  const auto uploaded = calls.Upload({.bytes = bytes, .chunk_bytes = longest_chunk});

  ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
  for (uint64_t chunk_bytes : {uint64_t{0}, longest_chunk, uint64_t{77777}}) {
    const auto downloaded = calls.Download(uploaded.response.handle(), chunk_bytes);
    ASSERT_TRUE(downloaded.status.ok()) << ToStatus(downloaded.status);
    EXPECT_EQ(downloaded.header.dtype(), v1::DATA_TYPE_FLOAT);
    EXPECT_THAT(downloaded.header.shape(), ElementsAre(800'001));
    EXPECT_EQ(downloaded.header.chunk_bytes(), chunk_bytes == 0 ? longest_chunk : chunk_bytes);
    EXPECT_EQ(downloaded.chunks.front(), downloaded.header.chunk_bytes());
    EXPECT_TRUE(downloaded.checksums_are_right);
    EXPECT_EQ(downloaded.bytes, bytes) << chunk_bytes;
  }
  EXPECT_EQ(calls.Release(uploaded.response.handle()), 1u);
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST(ResidentTensorsTest, ChunksOfAnySizeMakeTheSameTensor) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  const std::string bytes = CountingBytes(1000);
  for (uint64_t chunk_bytes : {1333, 3999, 4000, 4001, 1 << 20}) {
    for (bool header_alone : {false, true}) {
      const auto uploaded =
          calls.Upload({.bytes = bytes, .chunk_bytes = chunk_bytes, .header_alone = header_alone});
      ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
      EXPECT_EQ(calls.Download(uploaded.response.handle(), 1000).bytes, bytes) << chunk_bytes;
    }
  }
}

TEST(ResidentTensorsTest, TensorsWithoutElementsAndWithoutAxesWork) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());

  const auto empty = calls.Upload({.bytes = "", .shape = {2, 0, 3}});
  v1::UploadRequest scalar_upload = UploadMessages({.bytes = CountingBytes(1)})[0];
  scalar_upload.mutable_header()->clear_shape();
  const auto scalar = calls.Upload({scalar_upload});

  ASSERT_TRUE(empty.status.ok()) << ToStatus(empty.status);
  ASSERT_TRUE(scalar.status.ok()) << ToStatus(scalar.status);
  const auto nothing = calls.Download(empty.response.handle());
  EXPECT_TRUE(nothing.status.ok()) << ToStatus(nothing.status);
  EXPECT_THAT(nothing.header.shape(), ElementsAre(2, 0, 3));
  EXPECT_TRUE(nothing.chunks.empty());
  EXPECT_EQ(calls.Download(scalar.response.handle()).bytes, CountingBytes(1));
  v1::ExecuteResponse response;
  EXPECT_TRUE(calls.Execute(EchoRequest(empty.response.handle(), {2, 0, 3}), &response).ok());
  EXPECT_EQ(calls.CountTensors(), 2u);
}

TEST(ResidentTensorsTest, ManyCallsUseATensorWholeOrInPart) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  const std::string bytes = CountingBytes(20);
  const auto uploaded = calls.Upload({.bytes = bytes, .shape = {4, 5}});
  ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
  // The elements 11, 16; 12, 17; 13, 18: part of the transposed matrix.
  v1::Tensor part = View({3, 2}, {1, 5}, 11);
  part.set_resident_tensor(uploaded.response.handle());
  std::string expected;
  for (int64_t element : {11, 16, 12, 17, 13, 18}) expected += bytes.substr(element * 4, 4);

  for (int i = 0; i < 2; ++i) {
    v1::ExecuteResponse response;
    grpc::Status status = calls.Execute(EchoRequest(uploaded.response.handle(), {4, 5}), &response);
    ASSERT_TRUE(status.ok()) << ToStatus(status);
    EXPECT_EQ(response.payloads(0), bytes);
    EXPECT_EQ(response.receipt().copied_to_device_bytes(), 4u);  // only the call's own payload
    EXPECT_EQ(response.receipt().device(), uploaded.response.device());

    status = calls.Execute(EchoRequest(part, {3, 2}), &response);
    ASSERT_TRUE(status.ok()) << ToStatus(status);
    EXPECT_EQ(response.payloads(0), expected);
  }
  EXPECT_EQ(calls.Download(uploaded.response.handle()).bytes, bytes);
}

TEST(ResidentTensorsTest, AReleasedTensorIsUnknownToEveryCall) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  const std::string handle = calls.Upload({.bytes = CountingBytes(9)}).response.handle();

  EXPECT_EQ(calls.Release(handle), 1u);

  EXPECT_EQ(calls.Release(handle), 0u);
  v1::ExecuteResponse response;
  for (const grpc::Status& status :
       {calls.Execute(EchoRequest(handle, {9}), &response), calls.Download(handle).status,
        calls.Renew(handle), calls.Renew("no handle")}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << ToStatus(status);
    EXPECT_EQ(DetailOf(status).reason(), "tensor_unknown");
  }
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST(ResidentTensorsTest, ATensorReleasedDuringItsDownloadStillArrives) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  const std::string bytes = CountingBytes(2 << 20);
  const auto uploaded = calls.Upload({.bytes = bytes, .chunk_bytes = kMiB});
  grpc::ClientContext context;
  v1::DownloadRequest request;
  request.set_handle(uploaded.response.handle());
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  const auto reader = calls.tensors().Download(&context, request);
  v1::DownloadResponse message;
  ASSERT_TRUE(reader->Read(&message));

  EXPECT_EQ(calls.Release(uploaded.response.handle()), 1u);

  std::string received;
  while (reader->Read(&message)) received += message.data();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(received, bytes);
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST(ResidentTensorsTest, TensorsOfATenantShareADeviceUnlessItSaysOtherwise) {
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());
  const auto device_of = [&](std::optional<uint32_t> device) {
    const auto uploaded = calls.Upload({.bytes = CountingBytes(1000), .device = device});
    EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
    return uploaded.response.device();
  };

  EXPECT_EQ(device_of(1), 1u);
  EXPECT_EQ(device_of({}), 1u);
  EXPECT_EQ(device_of(0), 0u);
  EXPECT_EQ(device_of({}), 1u);
}

TEST(ResidentTensorsTest, AFullDeviceSendsTheNextTensorToTheOther) {
  InProcessDaemon daemon;  // each device's pool has 32 MiB
  TensorCalls calls(daemon.target());
  const UploadPlan large = {.bytes = std::string(20 * kMiB, 'x'), .chunk_bytes = kMiB};

  const auto first = calls.Upload(large);
  const auto second = calls.Upload(large);
  const auto third = calls.Upload(large);

  ASSERT_TRUE(first.status.ok()) << ToStatus(first.status);
  ASSERT_TRUE(second.status.ok()) << ToStatus(second.status);
  EXPECT_NE(first.response.device(), second.response.device());
  EXPECT_EQ(third.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(third.status).reason(), "device_memory");
  EXPECT_THAT(third.status.error_message(),
              testing::HasSubstr("the 33554432 bytes that the daemon may take of it "
                                 "(--workspace_max_bytes) are in use or reserved"));
  EXPECT_EQ(calls.CountTensors(), 2u);
}

TEST(ResidentTensorsTest, TheQuotaRefusesWhatExceedsItAndReleasingMakesRoom) {
  Config config = InProcessDaemon::DefaultConfig();
  config.resident_max_bytes_per_tenant = 10'000;
  InProcessDaemon daemon(config);
  TensorCalls calls(daemon.target());
  const auto first = calls.Upload({.bytes = CountingBytes(2000)});
  ASSERT_TRUE(first.status.ok()) << ToStatus(first.status);

  const auto refused = calls.Upload({.bytes = CountingBytes(501)});
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(refused.status).reason(), "tenant_memory");
  calls.Release(first.response.handle());

  EXPECT_TRUE(calls.Upload({.bytes = CountingBytes(501)}).status.ok());
}

TEST(ResidentTensorsTest, ALeaseThatIsNotRenewedEndsAndFreesTheMemory) {
  Config config = InProcessDaemon::DefaultConfig();
  config.resident_grace = absl::ZeroDuration();
  InProcessDaemon daemon(config);
  TensorCalls calls(daemon.target());
  const auto uploaded = calls.Upload({.bytes = CountingBytes(1000), .lease_ms = 1});
  ASSERT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);

  grpc::Status status;
  EXPECT_TRUE(Await([&] {
    status = calls.Download(uploaded.response.handle()).status;
    return !status.ok();
  }));

  EXPECT_EQ(DetailOf(status).reason(), "tensor_unknown") << ToStatus(status);
  EXPECT_TRUE(Await([&] { return daemon.HeldByRequests() == 0; }));
  EXPECT_EQ(calls.CountTensors(), 0u);
}

TEST(ResidentTensorsTest, AHandleOfAnEarlierDaemonIsLost) {
  std::string handle;
  {
    InProcessDaemon daemon;
    handle = TensorCalls(daemon.target()).Upload({.bytes = CountingBytes(9)}).response.handle();
  }
  InProcessDaemon daemon;
  TensorCalls calls(daemon.target());

  v1::ExecuteResponse response;
  for (const grpc::Status& status : {calls.Execute(EchoRequest(handle, {9}), &response),
                                     calls.Download(handle).status, calls.Renew(handle)}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << ToStatus(status);
    EXPECT_EQ(DetailOf(status).reason(), "tensor_lost");
  }
}

TEST(ResidentTensorsTest, ADrainingDaemonTakesNoNewUploadsAndEndsThoseInProgress) {
  std::optional<InProcessDaemon> daemon(std::in_place);
  TensorCalls calls(daemon->target());
  const std::vector<v1::UploadRequest> messages =
      UploadMessages({.bytes = CountingBytes(4), .header_alone = true});
  grpc::ClientContext context;
  v1::UploadResponse response;
  const auto writer = calls.tensors().Upload(&context, &response);
  ASSERT_TRUE(writer->Write(messages[0]));
  EXPECT_TRUE(Await([&] { return calls.CountTensors() > 0; }));

  std::thread drain([&] { daemon.reset(); });
  grpc::Status refused;
  EXPECT_TRUE(Await([&] {
    refused = calls.Upload({.bytes = CountingBytes(4)}).status;
    return !refused.ok();
  }));

  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << ToStatus(refused);
  EXPECT_EQ(DetailOf(refused).reason(), "draining");
  EXPECT_TRUE(writer->Write(messages[1]));
  EXPECT_TRUE(writer->WritesDone());
  const grpc::Status status = writer->Finish();
  EXPECT_TRUE(status.ok()) << ToStatus(status);
  drain.join();
}

}  // namespace
}  // namespace opserve::server
