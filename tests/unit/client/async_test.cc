#include <atomic>
#include <future>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::Each;
using testing::ElementsAre;

Request ScaleOf(const std::vector<float>& x) {
  const auto extent = static_cast<int64_t>(x.size());
  return {.invocations = {
              {.operator_name = "Scale", .inputs = {{"x", Tensor::Owning<float>({extent}, x)}}}}};
}

class AsyncTest : public testing::Test {
 protected:
  AsyncTest() : client_(server_.Connect()) {}
  TestServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(AsyncTest, CallsRunBesideEachOther) {
  server_.HoldCalls();
  std::vector<std::future<absl::StatusOr<Response>>> futures;
  for (int i = 0; i < 8; ++i) {
    futures.push_back(client_->ExecuteAsync(ScaleOf(std::vector<float>(3000, i))));
  }
  server_.LetGo();

  for (int i = 0; i < 8; ++i) {
    const absl::StatusOr<Response> response = futures[i].get();
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_THAT(*response->results[0].values<float>(), Each(static_cast<float>(i)));
  }
}

TEST_F(AsyncTest, ACallbackMayStartTheNextCall) {
  absl::Notification done;
  std::atomic<int> left = 100;
  std::function<void()> next = [&] {
    client_->ExecuteAsync(ScaleOf({1, 2}), [&](absl::StatusOr<Response> response) {
      EXPECT_TRUE(response.ok()) << response.status();
      if (--left > 0) {
        next();
      } else {
        done.Notify();
      }
    });
  };
  next();
  done.WaitForNotification();

  EXPECT_EQ(left, 0);
}

TEST_F(AsyncTest, CancelEndsOneCallOnly) {
  server_.HoldCalls();
  std::promise<absl::Status> cancelled;
  const CallHandle handle = client_->ExecuteAsync(
      ScaleOf({1}),
      [&](absl::StatusOr<Response> response) { cancelled.set_value(response.status()); });
  auto other = client_->ExecuteAsync(ScaleOf({2}));

  handle.Cancel();

  EXPECT_EQ(cancelled.get_future().get().code(), absl::StatusCode::kCancelled);
  handle.Cancel();
  server_.LetGo();
  EXPECT_TRUE(other.get().ok());
}

TEST_F(AsyncTest, AHandleMayOutliveItsCallAndTheClient) {
  absl::Notification done;
  const CallHandle handle =
      client_->ExecuteAsync(ScaleOf({1}), [&](absl::StatusOr<Response>) { done.Notify(); });
  done.WaitForNotification();
  handle.Cancel();
  client_ = nullptr;
  handle.Cancel();
  CallHandle().Cancel();
}

TEST_F(AsyncTest, DestructorCancelsAndWaitsForTheCallbacks) {
  server_.HoldCalls();
  constexpr int kNumCalls = 8;
  std::vector<absl::StatusCode> codes;
  const std::vector<float> borrowed(1 << 20);
  for (int i = 0; i < kNumCalls; ++i) {
    Request request = ScaleOf({1});
    request.invocations[0].inputs.push_back({"y", Tensor::Of<float>({1 << 20}, borrowed)});
    client_->ExecuteAsync(request, [&](absl::StatusOr<Response> response) {
      codes.push_back(response.status().code());
    });
  }

  client_ = nullptr;

  EXPECT_EQ(codes, std::vector(kNumCalls, absl::StatusCode::kCancelled));
}

TEST_F(AsyncTest, NoCallStartsWhileTheClientIsBeingDestroyed) {
  server_.HoldCalls();
  std::vector<absl::StatusCode> codes;
  Client& client = *client_;
  client.ExecuteAsync(ScaleOf({1}), [&](absl::StatusOr<Response> first) {
    codes.push_back(first.status().code());
    client.ExecuteAsync(ScaleOf({1}), [&](absl::StatusOr<Response> second) {
      codes.push_back(second.status().code());
    });
  });

  client_ = nullptr;

  EXPECT_THAT(codes, ElementsAre(absl::StatusCode::kCancelled, absl::StatusCode::kCancelled));
}

TEST_F(AsyncTest, DeadlinesHold) {
  server_.HoldCalls();
  Request request = ScaleOf({1});
  request.timeout = absl::Milliseconds(20);

  EXPECT_EQ(client_->ExecuteAsync(request).get().status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(AsyncTest, OwnersAreReleasedAfterTheCall) {
  Request request = ScaleOf(std::vector<float>(1 << 20));
  const auto& tensor = std::get<Tensor>(request.invocations[0].inputs[0].value);
  const std::weak_ptr<const void> owner = tensor.owner();

  auto future = client_->ExecuteAsync(request);
  request = Request();
  EXPECT_TRUE(future.get().ok());
  client_ = nullptr;

  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace opserve
