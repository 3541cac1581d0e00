#include <algorithm>
#include <numeric>
#include <vector>

#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::Pair;

constexpr int64_t kUploaded = 8 << 20;  // elements; far more than what is on the way at a time

class UploadTest : public testing::Test {
 protected:
  UploadTest() : client_(server_.Connect()), large_(kUploaded, 1.5f) {}

  // Uploads 32 MiB of borrowed elements, and returns when they may be changed.
  absl::Status UploadLarge(const UploadOptions& options = {}) {
    absl::Status status = client_->Upload(Tensor::Of<float>({kUploaded}, large_), options).status();
    std::fill(large_.begin(), large_.end(), 2.5f);
    return status;
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
  std::vector<float> large_;
};

TEST_F(UploadTest, TensorsArriveInChunks) {
  struct Case {
    int64_t num_elements;
    uint64_t chunk_bytes;
    std::vector<size_t> chunks;
  };
  const Case kCases[] = {
      {0, 8, {0}},
      {1, 8, {4}},
      {2, 8, {8}},
      {3, 8, {8, 4}},
      {4, 8, {8, 8}},
      {3, 5, {5, 5, 2}},
      {2, 1, std::vector<size_t>(8, 1)},
      {5000, 1 << 20, {20000}},
  };
  for (const Case& c : kCases) {
    std::vector<float> elements(c.num_elements);
    std::iota(elements.begin(), elements.end(), 0.5f);

    const absl::StatusOr<ResidentTensor> resident = client_->Upload(
        Tensor::Of<float>({c.num_elements}, elements), {.chunk_bytes = c.chunk_bytes});

    ASSERT_TRUE(resident.ok()) << resident.status();
    const auto stored = server_.tensors().Find(resident->handle);
    EXPECT_THAT(stored.chunks, ElementsAreArray(c.chunks));
    EXPECT_EQ(stored.elements, absl::string_view(reinterpret_cast<const char*>(elements.data()),
                                                 elements.size() * sizeof(float)));
    EXPECT_EQ(stored.header.chunk_bytes(), c.chunk_bytes);
    EXPECT_THAT(stored.header.shape(), ElementsAre(c.num_elements));
  }
}

TEST_F(UploadTest, LargeTensorsArriveWhole) {
  const auto resident = client_->Upload(Tensor::Of<float>({kUploaded}, large_));

  ASSERT_TRUE(resident.ok()) << resident.status();
  const auto stored = server_.tensors().Find(resident->handle);
  EXPECT_EQ(stored.chunks.size(), kUploaded * sizeof(float) / kDefaultChunkBytes);
  EXPECT_EQ(stored.elements, absl::string_view(reinterpret_cast<const char*>(large_.data()),
                                               large_.size() * sizeof(float)));
}

TEST_F(UploadTest, ElementsAreMadeContiguousFirst) {
  const std::vector<Bf16> elements = {{0x101}, {0x202}, {0x303}, {0x404}};

  const auto resident = client_->Upload(Tensor::Of<Bf16>({2, 2}, elements).WithStrides({1, 2}));

  ASSERT_TRUE(resident.ok()) << resident.status();
  EXPECT_EQ(server_.tensors().Find(resident->handle).elements, "\1\1\3\3\2\2\4\4");
}

TEST_F(UploadTest, WhatIsAskedForArrivesAndWhatIsGivenComesBack) {
  const Tensor tensor = Tensor::Owning<double>({1, 2}, {1, 2});

  const auto chosen =
      client_->Upload(tensor, {.lease = absl::Milliseconds(90500), .device = uint32_t{0}});
  const auto defaults = client_->Upload(tensor);

  ASSERT_TRUE(chosen.ok() && defaults.ok());
  const v1::UploadHeader header = server_.tensors().Find(chosen->handle).header;
  EXPECT_EQ(header.dtype(), kDouble);
  EXPECT_THAT(header.shape(), ElementsAre(1, 2));
  EXPECT_EQ(header.lease().seconds(), 90);
  EXPECT_EQ(header.lease().nanos(), 500000000);
  EXPECT_TRUE(header.has_device());
  EXPECT_EQ(chosen->handle, "tensor-0");
  EXPECT_EQ(chosen->dtype, kDouble);
  EXPECT_THAT(chosen->shape, ElementsAre(1, 2));
  EXPECT_EQ(chosen->lease_end, absl::FromUnixSeconds(1700000090));
  EXPECT_EQ(chosen->device, 0u);
  const v1::UploadHeader default_header = server_.tensors().Find(defaults->handle).header;
  EXPECT_FALSE(default_header.has_lease());
  EXPECT_FALSE(default_header.has_device());
  EXPECT_EQ(defaults->device, 3u);
}

TEST_F(UploadTest, TheLongestLeaseIsOneTheMessageCanHave) {
  const auto resident =
      client_->Upload(Tensor::Owning<float>({}, {1}), {.lease = absl::InfiniteDuration()});

  ASSERT_TRUE(resident.ok()) << resident.status();
  EXPECT_EQ(server_.tensors().Find(resident->handle).header.lease().seconds(), 315576000000);
}

TEST_F(UploadTest, ProgressIsToldAfterEachChunk) {
  std::vector<std::pair<uint64_t, uint64_t>> progress;

  const auto resident = client_->Upload(
      Tensor::Owning<float>({3}, {1, 2, 3}),
      {.chunk_bytes = 8,
       .on_progress = [&](uint64_t done, uint64_t total) { progress.emplace_back(done, total); }});

  EXPECT_TRUE(resident.ok()) << resident.status();
  EXPECT_THAT(progress, ElementsAre(Pair(8, 12), Pair(12, 12)));
}

TEST_F(UploadTest, MistakesAreRefusedBeforeAnythingIsSent) {
  server_.tensors().set_upload([](auto*, auto*, auto*) {
    ADD_FAILURE() << "reached the daemon";
    return grpc::Status::OK;
  });
  const Tensor tensor = Tensor::Owning<float>({2}, {1, 2});

  EXPECT_EQ(client_->Upload(Tensor()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_->Upload(tensor.WithStrides({2})).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_->Upload(tensor, {.chunk_bytes = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_->Upload(tensor, {.chunk_bytes = uint64_t{1} << 32}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(UploadTest, TheDaemonsErrorEndsAnUploadEarly) {
  for (const int num_read : {0, 1, 5}) {
    server_.tensors().set_upload([num_read](auto*, auto* reader, auto*) {
      v1::UploadRequest message;
      for (int i = 0; i < num_read; ++i) reader->Read(&message);
      v1::ErrorDetail detail;
      detail.set_reason("tenant_memory");
      v1::StatusDetails details;
      details.add_details()->PackFrom(detail);
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "quota",
                          details.SerializeAsString());
    });

    const absl::Status status = UploadLarge({.chunk_bytes = 256 << 10});

    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(status.message(), "quota");
    EXPECT_EQ(ErrorDetailOf(status)->reason(), "tenant_memory") << num_read;
  }
}

TEST_F(UploadTest, AnAnswerBeforeTheLastChunkIsNone) {
  server_.tensors().set_upload([](auto*, auto*, v1::UploadResponse* response) {
    response->set_handle("early");
    return grpc::Status::OK;
  });

  EXPECT_EQ(UploadLarge().code(), absl::StatusCode::kInternal);
}

TEST_F(UploadTest, DeadlinesHold) {
  server_.tensors().set_upload([this](auto*, auto*, auto*) {
    server_.WaitForLetGo();
    return grpc::Status::OK;
  });

  EXPECT_EQ(UploadLarge({.timeout = absl::Milliseconds(20)}).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(client_->Upload(Tensor::Owning<float>({}, {1}), {.timeout = absl::Milliseconds(20)})
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(UploadToNobodyTest, IsUnavailable) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("nobody");
  const auto client = *Client::Connect(target, {.retry = {.waits_for_daemon = false}});

  EXPECT_EQ(client->Upload(Tensor::Owning<float>({}, {1})).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace opserve
