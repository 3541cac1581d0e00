#include "client/cpp/execute_stream.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::ElementsAre;

Request ScaleOf(float value) {
  return {.invocations = {
              {.operator_name = "Scale", .inputs = {{"x", Tensor::Owning<float>({1}, {value})}}}}};
}

float ValueOf(const absl::StatusOr<Response>& response) {
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->results[0].values<float>()->front() : -1;
}

class ExecuteStreamTest : public testing::Test {
 protected:
  ExecuteStreamTest() : client_(server_.Connect()) {}

  std::unique_ptr<ExecuteStream> Open(uint32_t window = 64) {
    return *client_->OpenStream({.window = window});
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ExecuteStreamTest, EveryRequestGetsItsAnswer) {
  const auto stream = Open(/*window=*/8);
  std::vector<std::future<absl::StatusOr<Response>>> futures;

  for (int i = 0; i < 300; ++i) futures.push_back(stream->Execute(ScaleOf(i)));

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  for (int i = 0; i < 300; ++i) EXPECT_EQ(ValueOf(futures[i].get()), i);
}

TEST_F(ExecuteStreamTest, CallbacksRunAsAnswersCome) {
  server_.set_stream([](auto*, TestServer::Stream* stream) {
    std::vector<v1::ExecuteStreamRequest> requests(4);
    for (v1::ExecuteStreamRequest& request : requests) stream->Read(&request);
    std::rotate(requests.begin(), requests.begin() + 1, requests.end());
    std::swap(requests[0], requests[1]);
    for (const v1::ExecuteStreamRequest& request : requests) {
      stream->Write(TestServer::EchoInStream(request));
    }
    // Else the stream might end before the client has said that no more come, which is an error.
    while (stream->Read(&requests[0])) {
    }
    return grpc::Status::OK;
  });
  const auto stream = Open();
  std::vector<float> values;

  for (int i = 0; i < 4; ++i) {
    stream->Execute(ScaleOf(i), [&](auto response) { values.push_back(ValueOf(response)); });
  }

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_THAT(values, ElementsAre(2, 1, 3, 0));
}

TEST_F(ExecuteStreamTest, AFullWindowIsWaitedForAndNoLonger) {
  server_.set_stream([this](auto*, TestServer::Stream* stream) {
    server_.WaitForLetGo();
    v1::ExecuteStreamRequest request;
    while (stream->Read(&request)) stream->Write(TestServer::EchoInStream(request));
    return grpc::Status::OK;
  });
  const auto stream = Open(/*window=*/2);
  std::atomic<int> num_answers = 0;
  std::atomic<bool> may_have_room = false;
  const auto count = [&](const auto&) { ++num_answers; };
  stream->Execute(ScaleOf(0), count);
  stream->Execute(ScaleOf(1), count);
  absl::Notification is_third_coming;

  std::thread caller([&] {
    is_third_coming.Notify();
    stream->Execute(ScaleOf(2), count);
    EXPECT_TRUE(may_have_room);
    EXPECT_GE(num_answers, 1);
  });
  is_third_coming.WaitForNotification();
  may_have_room = true;
  server_.LetGo();

  caller.join();
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_EQ(num_answers, 3);
}

TEST_F(ExecuteStreamTest, NoMoreThanTheWindowIsInProgress) {
  constexpr int kWindow = 4;
  const auto stream = Open(kWindow);
  std::atomic<int> num_answers = 0;

  for (int num_requests = 1; num_requests <= 500; ++num_requests) {
    stream->Execute(ScaleOf(0), [&](const auto&) { ++num_answers; });
    ASSERT_LE(num_requests - num_answers, kWindow);
  }

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(ExecuteStreamTest, ACallbackFindsRoomForOneRequest) {
  const auto stream = Open(/*window=*/1);
  std::vector<absl::StatusCode> refusals;
  int num_left = 50;
  absl::Notification done;
  std::function<void(absl::StatusOr<Response>)> next = [&](absl::StatusOr<Response> response) {
    EXPECT_TRUE(response.ok()) << response.status();
    if (--num_left == 0) return done.Notify();
    stream->Execute(ScaleOf(0), next);
    if (num_left % 10 != 0) return;
    stream->Execute(ScaleOf(0), [&](absl::StatusOr<Response> refused) {
      refusals.push_back(refused.status().code());
    });
  };

  stream->Execute(ScaleOf(0), next);
  done.WaitForNotification();

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_EQ(refusals, std::vector(4, absl::StatusCode::kResourceExhausted));
}

TEST_F(ExecuteStreamTest, ThreadsShareAStream) {
  const auto stream = Open(/*window=*/3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&stream, t] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(ValueOf(stream->Execute(ScaleOf(100 * t + i)).get()), 100 * t + i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(ExecuteStreamTest, RequestsTravelWithTheirTimeoutsAndKeys) {
  std::vector<v1::ExecuteStreamRequest> requests;
  absl::Notification has_all;  // ThreadSanitizer sees no order in what gRPC carries
  server_.set_stream([&](auto*, TestServer::Stream* stream) {
    v1::ExecuteStreamRequest request;
    while (stream->Read(&request)) {
      requests.push_back(request);
      stream->Write(TestServer::EchoInStream(request));
    }
    has_all.Notify();
    return grpc::Status::OK;
  });
  const auto stream = Open();
  const absl::Duration kTimeouts[] = {absl::Milliseconds(1500), absl::InfiniteDuration(),
                                      absl::ZeroDuration()};

  for (const absl::Duration timeout : kTimeouts) {
    Request request = ScaleOf(1);
    request.timeout = timeout;
    request.idempotency_key = "once";
    stream->Execute(request, [](const auto&) {});
  }

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  has_all.WaitForNotification();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].timeout().seconds(), 1);
  EXPECT_EQ(requests[0].timeout().nanos(), 500000000);
  EXPECT_FALSE(requests[1].has_timeout());
  EXPECT_EQ(requests[2].timeout().nanos(), 1) << "0 would be no deadline";
  EXPECT_EQ(requests[0].request().idempotency_key(), "once");
  EXPECT_EQ(requests[0].request().payloads_size(), 0);
  EXPECT_EQ(requests[0].payloads_size(), 1);
  EXPECT_NE(requests[0].id(), requests[1].id());
}

TEST_F(ExecuteStreamTest, AnErrorConcernsItsRequestAlone) {
  server_.set_stream([](auto*, TestServer::Stream* stream) {
    v1::ErrorDetail detail;
    detail.set_reason("queue_full");
    detail.set_retry_pushback_ms(40);
    v1::ExecuteStreamRequest request;
    for (const int code : {8, 0, 77, -1}) {
      stream->Read(&request);
      v1::ExecuteStreamResponse response;
      response.set_id(request.id());
      response.mutable_error()->set_code(code);
      response.mutable_error()->set_message("full");
      response.mutable_error()->add_details()->PackFrom(detail);
      stream->Write(response);
    }
    while (stream->Read(&request)) stream->Write(TestServer::EchoInStream(request));
    return grpc::Status::OK;
  });
  const auto stream = Open();

  const absl::Status refused = stream->Execute(ScaleOf(0)).get().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), "full");
  EXPECT_EQ(ErrorDetailOf(refused)->reason(), "queue_full");
  EXPECT_EQ(RetryPushbackOf(refused), absl::Milliseconds(40));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stream->Execute(ScaleOf(0)).get().status().code(), absl::StatusCode::kUnknown);
  }
  EXPECT_EQ(ValueOf(stream->Execute(ScaleOf(5)).get()), 5);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(ExecuteStreamTest, BorrowedBytesAreFreeWhenTheCallbackRuns) {
  constexpr int64_t kLarge = 1 << 20;
  const auto stream = Open(/*window=*/4);
  std::vector<std::vector<float>> storages(12, std::vector<float>(kLarge));
  std::vector<float> values;

  for (size_t i = 0; i < storages.size(); ++i) {
    std::vector<float>& storage = storages[i];
    std::fill(storage.begin(), storage.end(), static_cast<float>(i));
    Request request = ScaleOf(0);
    request.invocations[0].inputs[0].value = Tensor::Of<float>({kLarge}, storage);
    stream->Execute(request, [&](absl::StatusOr<Response> response) {
      ASSERT_TRUE(response.ok()) << response.status();
      values.push_back(response->results[0].values<float>()->back());
      storage = std::vector<float>();  // AddressSanitizer sees a later use
    });
  }

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST_F(ExecuteStreamTest, AfterFinishNothingStarts) {
  const auto stream = Open();
  EXPECT_EQ(stream->Finish(), absl::OkStatus());

  EXPECT_EQ(stream->Execute(ScaleOf(0)).get().status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(ExecuteStreamTest, OutlivesItsClient) {
  const auto stream = Open();
  client_ = nullptr;

  EXPECT_EQ(ValueOf(stream->Execute(ScaleOf(5)).get()), 5);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(ExecuteStreamTest, AWindowOfNothingIsRefused) {
  EXPECT_EQ(client_->OpenStream({.window = 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace opserve
