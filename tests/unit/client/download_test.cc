#include <numeric>
#include <vector>

#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/codec/crc32c.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::ElementsAre;
using testing::Pair;

using Messages = std::vector<v1::DownloadResponse>;

v1::DownloadResponse Header(std::vector<int64_t> shape, uint64_t chunk_bytes) {
  v1::DownloadResponse message;
  message.mutable_header()->set_dtype(kFloat);
  message.mutable_header()->mutable_shape()->Add(shape.begin(), shape.end());
  message.mutable_header()->set_chunk_bytes(chunk_bytes);
  return message;
}

v1::DownloadResponse Chunk(const std::string& data) {
  v1::DownloadResponse message;
  message.set_data(data);
  message.set_crc32c(codec::Crc32c(data));
  return message;
}

// Messages of a daemon, and the client's verdict.
struct Case {
  const char* name;
  Messages messages;
  absl::StatusCode code;
};
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInternal = absl::StatusCode::kInternal;

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() : client_(server_.Connect()) {}

  // Lets the daemon send these messages, then this status.
  void Answer(const Messages& messages, const grpc::Status& status = grpc::Status::OK) {
    server_.tensors().set_download([=](auto*, const auto&, auto* writer) {
      for (const v1::DownloadResponse& message : messages) writer->Write(message);
      return status;
    });
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(DownloadTest, TensorsComeBackAsTheyWereUploaded) {
  struct Case {
    int64_t num_elements;
    uint64_t chunk_bytes;
  };
  for (const Case& c :
       {Case{0, 0}, Case{1, 0}, Case{1, 3}, Case{250, 0}, Case{251, 0}, Case{2 << 20, 1 << 20}}) {
    std::vector<float> elements(c.num_elements);
    std::iota(elements.begin(), elements.end(), 0.5f);
    const auto resident = client_->Upload(Tensor::Of<float>({1, c.num_elements}, elements));
    ASSERT_TRUE(resident.ok()) << resident.status();

    const absl::StatusOr<Result> result =
        client_->Download(resident->handle, {.chunk_bytes = c.chunk_bytes});

    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->dtype(), kFloat);
    EXPECT_THAT(result->shape(), ElementsAre(1, c.num_elements));
    EXPECT_EQ(*result->values<float>(), absl::MakeConstSpan(elements)) << c.num_elements;
  }
}

TEST_F(DownloadTest, AResultOutlivesTheClientAndIsOneBlock) {
  const auto resident = client_->Upload(Tensor::Owning<double>({300}, std::vector<double>(300, 7)));
  const auto result = client_->Download(resident->handle);
  client_ = nullptr;

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->values<double>()->back(), 7);
}

TEST_F(DownloadTest, ProgressIsToldAfterEachChunk) {
  Answer({Header({3}, 8), Chunk("12345678"), Chunk("1234")});
  std::vector<std::pair<uint64_t, uint64_t>> progress;

  const auto result = client_->Download("x", {.on_progress = [&](uint64_t done, uint64_t total) {
                                          progress.emplace_back(done, total);
                                        }});

  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(progress, ElementsAre(Pair(8, 12), Pair(12, 12)));
}

TEST_F(DownloadTest, DamageIsSeen) {
  v1::DownloadResponse flipped = Chunk("12345678");
  flipped.mutable_data()->at(3) ^= 1;
  v1::DownloadResponse without_crc = Chunk("12345678");
  without_crc.clear_crc32c();
  const Case kCases[] = {
      {"Good", {Header({4}, 8), Chunk("12345678"), Chunk("12345678")}, absl::StatusCode::kOk},
      {"FlippedBit", {Header({4}, 8), Chunk("12345678"), flipped}, kDataLoss},
      {"NoChecksum", {Header({4}, 8), Chunk("12345678"), without_crc}, kDataLoss},
      {"CutOff", {Header({4}, 8), Chunk("12345678")}, kDataLoss},
      {"ShortChunk", {Header({4}, 8), Chunk("1234"), Chunk("123456789012")}, kDataLoss},
      {"LongChunk", {Header({4}, 8), Chunk("1234567890123456")}, kDataLoss},
      {"LongLastChunk", {Header({3}, 8), Chunk("12345678"), Chunk("12345678")}, kDataLoss},
      {"OneChunkMore", {Header({2}, 8), Chunk("12345678"), Chunk("1")}, kDataLoss},
      {"ElementsOfAnEmptyTensor", {Header({0}, 8), Chunk("1")}, kDataLoss},
      {"NoChunkSize", {Header({2}, 0), Chunk("12345678")}, kDataLoss},
      {"Nothing", {}, kInternal},
      {"NoHeader", {Chunk("12345678")}, kInternal},
      {"NoSuchShape", {Header({-2}, 8), Chunk("12345678")}, kInternal},
      {"OverflowingShape", {Header({int64_t{1} << 61, 8}, 8), Chunk("12345678")}, kInternal},
  };
  for (const Case& c : kCases) {
    Answer(c.messages);
    const auto result = client_->Download("x");
    EXPECT_EQ(result.status().code(), c.code) << c.name << ": " << result.status();
  }
}

TEST_F(DownloadTest, ASnapshotHasItsTensorsInTheOrderAskedFor) {
  std::vector<std::string> handles;
  for (const int64_t num_elements : {251, 0, 1}) {
    const std::vector<float> elements(num_elements, static_cast<float>(num_elements));
    handles.push_back(client_->Upload(Tensor::Of<float>({num_elements}, elements))->handle);
  }
  std::vector<std::pair<uint64_t, uint64_t>> progress;

  const auto snapshot = client_->Snapshot(
      {handles[2], handles[1], handles[0]},
      {.on_progress = [&](uint64_t done, uint64_t total) { progress.emplace_back(done, total); }});

  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_EQ(snapshot->size(), 3u);
  EXPECT_EQ((*snapshot)[0].tensor.values<float>()->front(), 1);
  EXPECT_THAT((*snapshot)[1].tensor.shape(), ElementsAre(0));
  EXPECT_EQ((*snapshot)[2].tensor.values<float>()->back(), 251);
  EXPECT_EQ((*snapshot)[2].version, 7u);
  EXPECT_EQ(progress.front(), std::pair(uint64_t{4}, uint64_t{1008}));
  EXPECT_EQ(progress.back(), std::pair(uint64_t{1008}, uint64_t{1008}));

  EXPECT_TRUE(client_->Snapshot({})->empty());
  EXPECT_EQ(client_->Snapshot({handles[0], "tensor-9"}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(DownloadTest, DamageOfASnapshotIsSeen) {
  const Case kCases[] = {
      {"Good",
       {Header({2}, 8), Chunk("12345678"), Header({1}, 8), Chunk("1234")},
       absl::StatusCode::kOk},
      {"FirstCutOff",
       {Header({4}, 8), Chunk("12345678"), Header({1}, 8), Chunk("1234")},
       kDataLoss},
      {"SecondCutOff", {Header({2}, 8), Chunk("12345678"), Header({1}, 8)}, kDataLoss},
      {"SecondMissing", {Header({2}, 8), Chunk("12345678")}, kInternal},
      {"OneTooMany", {Header({0}, 8), Header({0}, 8), Header({0}, 8)}, kInternal},
      {"ChunkOfTheNext",
       {Header({2}, 8), Chunk("12345678"), Chunk("1234"), Header({1}, 8)},
       kDataLoss},
  };
  for (const Case& c : kCases) {
    Answer(c.messages);
    EXPECT_EQ(client_->Snapshot({"x", "y"}).status().code(), c.code) << c.name;
  }
}

TEST_F(DownloadTest, TheDaemonsErrorIsGiven) {
  const auto unknown = client_->Download("tensor-9");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorDetailOf(unknown.status())->reason(), "tensor_unknown");

  Answer({Header({4}, 8), Chunk("12345678")},
         {grpc::StatusCode::FAILED_PRECONDITION, "the device was reset"});
  EXPECT_EQ(client_->Download("x").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DownloadTest, DeadlinesHold) {
  server_.tensors().set_download([this](auto*, const auto&, auto* writer) {
    writer->Write(Header({4}, 8));
    server_.WaitForLetGo();
    return grpc::Status::OK;
  });

  EXPECT_EQ(client_->Download("x", {.timeout = absl::Milliseconds(20)}).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace opserve
