#include "client/cpp/execute_stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;
using testing::Pair;
using testing::UnorderedElementsAre;

Request ScaleOf(float value) {
  return {.invocations = {
              {.operator_name = "Scale", .inputs = {{"x", Tensor::Owning<float>({1}, {value})}}}}};
}

float ValueOf(const absl::StatusOr<Response>& response) {
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->results[0].values<float>()->front() : -1;
}

// Of the tensor that a request brings.
float ValueOf(const v1::ExecuteRequest& request) {
  float value = 0;
  std::memcpy(&value, request.payloads(0).data(), sizeof(value));
  return value;
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
  server_.set_execute([this](auto* context, const auto& request, auto* response) {
    if (ValueOf(request) == 0) server_.WaitForLetGo();
    return TestServer::Echo(context, request, response);
  });
  const auto stream = Open();
  std::vector<float> values;

  for (int i = 0; i < 4; ++i) {
    stream->Execute(ScaleOf(i), [&](auto response) {
      values.push_back(ValueOf(response));
      if (values.size() == 3) server_.LetGo();
    });
  }

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_THAT(values, UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(values.back(), 0);
}

TEST_F(ExecuteStreamTest, AFullWindowIsWaitedForAndNoLonger) {
  server_.HoldCalls();
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

TEST_F(ExecuteStreamTest, RequestsTravelWithTheirKeysAndTheEarlierTimeout) {
  absl::Mutex mutex;
  std::vector<std::pair<std::string, absl::Time>> sent;
  server_.set_execute([&](auto* context, const auto& request, auto* response) {
    absl::MutexLock lock(&mutex);
    sent.emplace_back(request.idempotency_key(), absl::FromChrono(context->deadline()));
    return TestServer::Echo(context, request, response);
  });
  const auto stream = *client_->OpenStream({.timeout = absl::Hours(5)});
  const absl::Time start = absl::Now();

  for (const absl::Duration timeout : {absl::Hours(1), absl::Hours(9)}) {
    Request request = ScaleOf(1);
    request.timeout = timeout;
    request.idempotency_key = absl::FormatDuration(timeout);
    EXPECT_EQ(ValueOf(stream->Execute(request).get()), 1);
  }

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  absl::MutexLock lock(&mutex);
  const auto in_hours = [start](double least, double most) {
    return AllOf(Ge(start + absl::Hours(least)), Le(start + absl::Hours(most)));
  };
  EXPECT_THAT(sent, ElementsAre(Pair("1h", in_hours(0.5, 2)), Pair("9h", in_hours(4, 6))));
}

TEST_F(ExecuteStreamTest, AnErrorConcernsItsRequestAlone) {
  server_.set_execute([](auto* context, const auto& request, auto* response) {
    if (ValueOf(request) == 0) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no zeros");
    return TestServer::Echo(context, request, response);
  });
  const auto stream = Open();

  EXPECT_EQ(stream->Execute(ScaleOf(0)).get().status(), absl::InvalidArgumentError("no zeros"));
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
  EXPECT_THAT(values, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
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

TEST_F(ExecuteStreamTest, ItsTimeoutEndsAllThatIsInProgress) {
  server_.HoldCalls();
  const auto stream = *client_->OpenStream({.timeout = absl::Milliseconds(20)});
  std::vector<absl::StatusCode> codes;

  for (int i = 0; i < 3; ++i) {
    stream->Execute(ScaleOf(i), [&](auto response) { codes.push_back(response.status().code()); });
  }

  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(codes, std::vector(3, absl::StatusCode::kDeadlineExceeded));
}

TEST_F(ExecuteStreamTest, TheTimeoutOfARequestIsItsOwn) {
  server_.HoldCalls();
  const auto stream = Open();
  Request request = ScaleOf(0);
  request.timeout = absl::Milliseconds(20);

  EXPECT_EQ(stream->Execute(request).get().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(ExecuteStreamTest, DestructorCancelsAndWaitsForTheCallbacks) {
  server_.HoldCalls();
  const std::vector<float> borrowed(1 << 20);
  Request large = ScaleOf(0);
  large.invocations[0].inputs.push_back({"y", Tensor::Of<float>({1 << 20}, borrowed)});
  auto stream = Open();
  ExecuteStream& opened = *stream;
  std::vector<absl::StatusCode> codes;
  for (int i = 0; i < 8; ++i) {
    stream->Execute(ScaleOf(i), [&](auto response) { codes.push_back(response.status().code()); });
  }
  std::future<absl::StatusOr<Response>> last = stream->Execute(large);
  absl::Status of_callback;
  stream->Execute(ScaleOf(0), [&](const auto&) {
    opened.Execute(ScaleOf(0), [&](auto response) { of_callback = response.status(); });
  });

  stream = nullptr;

  EXPECT_EQ(codes, std::vector(8, absl::StatusCode::kCancelled));
  EXPECT_EQ(last.get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(of_callback.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ExecuteStreamTest, DestructorOfAnIdleStreamReturns) { const auto stream = Open(); }

TEST_F(ExecuteStreamTest, AWindowOfNothingIsRefused) {
  EXPECT_EQ(client_->OpenStream({.window = 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace opserve
