// Who polls for blocking calls, and what the others notice of it.

#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/unit/client/session_fixture.h"

namespace opserve {
namespace {

class BlockingCallsTest : public SessionFixture {
 protected:
  // The daemon answers each request at once but those of this value, which it keeps.
  static constexpr float kKept = 7;

  void StartPeer() {
    Start(HelloFrame(), [this](SessionPeer& peer) {
      std::optional<PeerRequest> kept;
      while (const std::optional<PeerFrame> frame = peer.Read()) {
        if (frame->kind != PeerFrame::kRequest) continue;
        const PeerRequest request(*frame);
        if (ValueOf(request.message) == kKept) {
          kept = request;
          is_kept_.Notify();
        } else {
          peer.Write({request.Answer()});
        }
        // The one that was kept is the last to be answered.
        if (kept && ValueOf(request.message) == kKept + 1) peer.Write({kept->Answer()});
      }
      return grpc::Status::OK;
    });
    // The client's thread has no turn after blocking calls.
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Ask(0).ok());
  }

  absl::Status Ask(float value) { return client_->Execute(ScaleOf({value})).status(); }

  // A blocking call, of which the daemon knows, and which it does not answer yet.
  std::future<std::thread::id> AskInVain() {
    auto asked = std::async(std::launch::async, [this] {
      EXPECT_TRUE(Ask(kKept).ok());
      return std::this_thread::get_id();
    });
    is_kept_.WaitForNotification();
    return asked;
  }

  absl::Notification is_kept_;
};

TEST_F(BlockingCallsTest, RunNoCallbacksOfOthers) {
  StartPeer();
  std::future<std::thread::id> waiting = AskInVain();

  std::promise<std::thread::id> called_back;
  client_->ExecuteAsync(ScaleOf({1}), [&](const absl::StatusOr<Response>& response) {
    EXPECT_TRUE(response.ok()) << response.status();
    called_back.set_value(std::this_thread::get_id());
  });
  const std::thread::id callback = called_back.get_future().get();

  EXPECT_TRUE(Ask(kKept + 1).ok());
  EXPECT_NE(callback, waiting.get());
  EXPECT_EQ(num_calls_, 0);
  End();
}

TEST_F(BlockingCallsTest, GetTheirAnswersBesideOneThatWaits) {
  StartPeer();
  std::future<std::thread::id> waiting = AskInVain();

  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Ask(0).ok());

  EXPECT_TRUE(Ask(kKept + 1).ok());
  waiting.get();
  EXPECT_EQ(num_calls_, 0);
  End();
}

// Its caller polled for the others, too, and is gone when they are answered.
TEST_F(BlockingCallsTest, GetTheirAnswersAfterTheOneThatPolled) {
  StartPeer();
  std::future<std::thread::id> waiting = AskInVain();

  std::vector<std::future<absl::Status>> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(std::async(std::launch::async, [this, i] {
      absl::Status status = Ask(i == 0 ? kKept + 1 : 0);
      for (int j = 0; j < 50 && status.ok(); ++j) status = Ask(0);
      return status;
    }));
  }
  waiting.get();
  for (std::future<absl::Status>& other : others) EXPECT_TRUE(other.get().ok());
  EXPECT_EQ(num_calls_, 0);
  End();
}

// The daemon ends the session while nobody has a call: the client leaves it without being asked.
TEST_F(BlockingCallsTest, LeaveSomebodyWhoListens) {
  absl::Notification has_left;
  Start(HelloFrame(), [&](SessionPeer& peer) {
    while (const std::optional<PeerFrame> frame = peer.Read()) {
      if (frame->kind != PeerFrame::kRequest) continue;
      const PeerRequest request(*frame);
      peer.Write({request.Answer()});
      if (ValueOf(request.message) == kKept) peer.Write({GoingAwayFrame(request.number)});
    }
    has_left.Notify();
    return grpc::Status::OK;
  });
  EXPECT_TRUE(Ask(0).ok());

  EXPECT_TRUE(Ask(kKept).ok());

  EXPECT_TRUE(has_left.WaitForNotificationWithTimeout(kDefaultTimeout));
  EXPECT_TRUE(Ask(0).ok());
  End();
}

}  // namespace
}  // namespace opserve
