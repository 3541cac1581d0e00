#include "server/grpc/pace_watch.h"

#include <chrono>

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

constexpr absl::Duration kLong = absl::Hours(1);
constexpr absl::Duration kShort = absl::Milliseconds(1);

// A call with a watch that waits for up to `stall_timeout`; a byte takes a second.
class WatchedCall {
 public:
  explicit WatchedCall(absl::Duration stall_timeout)
      : watch_(UploadPace(stall_timeout, /*bytes_per_second=*/1), &queue_,
               {.expect_event = [this] { ++expected_; },
                .on_overdue =
                    [this] {
                      ++overdue_;
                      watch_.EndWait();
                    },
                .event_ended = [this] { --expected_; }}) {}
  ~WatchedCall() {
    watch_.Stop();
    HandleEvents();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    EXPECT_FALSE(queue_.Next(&tag, &ok)) << "an event was not announced";
  }

  // Until none is expected.
  void HandleEvents() {
    while (expected_ > 0 && HandleEvent()) {
    }
  }
  // False: there was none for a minute.
  bool HandleEvent() {
    void* tag = nullptr;
    bool ok = false;
    const auto end = std::chrono::system_clock::now() + std::chrono::minutes(1);
    const bool has_event = queue_.AsyncNext(&tag, &ok, end) == grpc::CompletionQueue::GOT_EVENT;
    EXPECT_TRUE(has_event);
    if (has_event) static_cast<CompletionEvent*>(tag)->Complete(ok);
    return has_event;
  }

  PaceWatch& watch() { return watch_; }
  int expected() const { return expected_; }
  int overdue() const { return overdue_; }

 private:
  grpc::CompletionQueue queue_;
  PaceWatch watch_;
  int expected_ = 0;
  int overdue_ = 0;
};

TEST(PaceWatchTest, AMessageThatDoesNotComeIsOverdueOnce) {
  WatchedCall call(kShort);
  call.watch().Wait(0);
  call.HandleEvents();
  EXPECT_EQ(call.overdue(), 1);
}

TEST(PaceWatchTest, MessagesInTimeShareOneAlarm) {
  WatchedCall call(kLong);
  for (int i = 0; i < 100; ++i) {
    call.watch().Wait(10);
    call.watch().EndWait();
    call.watch().Arrived(10);
    EXPECT_EQ(call.expected(), 1);
  }
  call.watch().Stop();
  call.HandleEvents();
  EXPECT_EQ(call.overdue(), 0);
}

TEST(PaceWatchTest, ASmallMessageIsDueBeforeTheAlarmOfALargeOne) {
  WatchedCall call(kShort);
  call.watch().Wait(3600);
  call.watch().EndWait();
  call.watch().Arrived(3600);
  call.watch().Wait(0);
  call.HandleEvents();
  EXPECT_EQ(call.overdue(), 1);
}

TEST(PaceWatchTest, AnAlarmThatRingsEarlyIsSetAnew) {
  WatchedCall call(kShort);
  call.watch().Wait(0);
  call.watch().EndWait();
  call.watch().Wait(3600);

  EXPECT_TRUE(call.HandleEvent());

  EXPECT_EQ(call.overdue(), 0);
  EXPECT_EQ(call.expected(), 1);
}

TEST(PaceWatchTest, NothingIsOverdueBetweenTwoWaits) {
  WatchedCall call(kShort);
  call.watch().Wait(0);
  call.watch().EndWait();
  call.HandleEvents();
  EXPECT_EQ(call.overdue(), 0);
  call.watch().Wait(0);
  call.HandleEvents();
  EXPECT_EQ(call.overdue(), 1);
}

}  // namespace
}  // namespace opserve::server
