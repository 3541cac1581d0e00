// What becomes of the requests of a stream that ends before they are answered.

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

Request Scale() {
  return {.invocations = {
              {.operator_name = "Scale", .inputs = {{"x", Tensor::Owning<float>({1}, {1})}}}}};
}

class BrokenStreamTest : public testing::Test {
 protected:
  BrokenStreamTest() : client_(server_.Connect()) {}

  // Lets the daemon read `num_requests`, then do and return what `end` says.
  void EndAfter(int num_requests, std::function<grpc::Status(TestServer::Stream*)> end) {
    server_.set_stream([=](auto*, TestServer::Stream* stream) {
      v1::ExecuteStreamRequest request;
      for (int i = 0; i < num_requests; ++i) stream->Read(&request);
      return end(stream);
    });
  }

  // Starts requests whose outcomes go to codes_.
  void Start(ExecuteStream& stream, int num_requests) {
    for (int i = 0; i < num_requests; ++i) {
      stream.Execute(Scale(), [this](absl::StatusOr<Response> response) {
        codes_.push_back(response.status().code());
      });
    }
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
  std::vector<absl::StatusCode> codes_;  // read them after the stream's end
};

TEST_F(BrokenStreamTest, AllThatIsInProgressFailsOnceWithTheStreamsStatus) {
  EndAfter(5, [](TestServer::Stream* stream) {
    v1::ExecuteStreamResponse answer;
    answer.set_id(2);
    answer.mutable_response();
    stream->Write(answer);
    v1::ErrorDetail detail;
    detail.set_reason("draining");
    v1::StatusDetails details;
    details.add_details()->PackFrom(detail);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining", details.SerializeAsString());
  });
  const auto stream = *client_->OpenStream();

  Start(*stream, 5);

  const absl::Status status = stream->Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(ErrorDetailOf(status)->reason(), "draining");
  constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
  EXPECT_THAT(codes_, ElementsAre(absl::StatusCode::kOk, kUnavailable, kUnavailable, kUnavailable,
                                  kUnavailable));
}

TEST_F(BrokenStreamTest, LaterRequestsGetItsStatusToo) {
  EndAfter(1, [](auto*) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining"); });
  const auto stream = *client_->OpenStream({.window = 1});

  EXPECT_EQ(stream->Execute(Scale()).get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream->Execute(Scale()).get().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(BrokenStreamTest, WhoWaitsForRoomIsToldToo) {
  EndAfter(2, [this](auto*) {
    server_.WaitForLetGo();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
  });
  const auto stream = *client_->OpenStream({.window = 2});
  std::vector<std::thread> callers;
  std::atomic<int> num_unavailable = 0;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] {
      num_unavailable += absl::IsUnavailable(stream->Execute(Scale()).get().status()) ? 1 : 0;
    });
  }

  server_.LetGo();

  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(num_unavailable, 6);
}

TEST_F(BrokenStreamTest, DestructorCancelsAndWaitsForTheCallbacks) {
  EndAfter(8, [this](auto*) {
    server_.WaitForLetGo();
    return grpc::Status::OK;
  });
  const std::vector<float> borrowed(1 << 20);
  Request large = Scale();
  large.invocations[0].inputs.push_back({"y", Tensor::Of<float>({1 << 20}, borrowed)});
  auto stream = *client_->OpenStream();
  Start(*stream, 8);
  std::future<absl::StatusOr<Response>> last = stream->Execute(large);

  stream = nullptr;

  EXPECT_EQ(codes_, std::vector(8, absl::StatusCode::kCancelled));
  EXPECT_EQ(last.get().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(BrokenStreamTest, DestructorOfAnIdleStreamReturns) {
  const auto stream = *client_->OpenStream();
}

TEST_F(BrokenStreamTest, CallbacksOfABrokenStreamMayStillAsk) {
  EndAfter(1, [](auto*) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining"); });
  const auto stream = *client_->OpenStream();
  absl::Status second;

  stream->Execute(Scale(), [&](absl::StatusOr<Response>) {
    stream->Execute(Scale(),
                    [&](absl::StatusOr<Response> response) { second = response.status(); });
  });

  (void)stream->Finish();
  EXPECT_FALSE(second.ok());
}

TEST_F(BrokenStreamTest, ItsDeadlineEndsEverything) {
  EndAfter(3, [this](auto*) {
    server_.WaitForLetGo();
    return grpc::Status::OK;
  });
  const auto stream = *client_->OpenStream({.timeout = absl::Milliseconds(20)});

  Start(*stream, 3);

  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(codes_, AllOf(SizeIs(3), Each(absl::StatusCode::kDeadlineExceeded)));
}

TEST_F(BrokenStreamTest, AnswersThatBreakTheProtocolEndIt) {
  struct Case {
    const char* name;
    std::function<void(v1::ExecuteStreamResponse&)> spoil;
  };
  const Case kCases[] = {
      {"of no request", [](auto& answer) { answer.set_id(99); }},
      {"no outcome", [](auto& answer) { answer.clear_outcome(); }},
      {"no payload", [](auto& answer) { answer.mutable_response()->add_results(); }},
  };
  for (const Case& c : kCases) {
    codes_.clear();
    EndAfter(3, [&c](TestServer::Stream* stream) {
      v1::ExecuteStreamResponse answer;
      answer.set_id(1);
      answer.mutable_response();
      c.spoil(answer);
      stream->Write(answer);
      v1::ExecuteStreamRequest request;
      while (stream->Read(&request)) {
      }
      return grpc::Status::OK;
    });
    const auto stream = *client_->OpenStream();

    Start(*stream, 3);

    EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kInternal) << c.name;
    EXPECT_THAT(codes_, AllOf(SizeIs(3), Each(absl::StatusCode::kInternal))) << c.name;
  }
}

TEST_F(BrokenStreamTest, ASecondAnswerBreaksTheProtocol) {
  EndAfter(2, [](TestServer::Stream* stream) {
    v1::ExecuteStreamResponse answer;
    answer.set_id(1);
    answer.mutable_response();
    stream->Write(answer);
    stream->Write(answer);
    v1::ExecuteStreamRequest request;
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  });
  const auto stream = *client_->OpenStream();

  Start(*stream, 2);

  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(codes_, ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kInternal));
}

TEST_F(BrokenStreamTest, AnEndWithoutAnswersIsNoSuccess) {
  EndAfter(2, [](auto*) { return grpc::Status::OK; });
  const auto stream = *client_->OpenStream();

  Start(*stream, 2);

  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(codes_, AllOf(SizeIs(2), Each(absl::StatusCode::kInternal)));
}

TEST(StreamToNobodyTest, IsUnavailable) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("nobody");
  const auto client = *Client::Connect(target, {.retry = {.waits_for_daemon = false}});
  const auto stream = *client->OpenStream();

  EXPECT_EQ(stream->Execute(Scale()).get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace opserve
