#include "server/grpc/upload_pace.h"

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

class UploadPaceTest : public ::testing::Test {
 protected:
  // The client sends `bytes` after a pause; false: too late.
  bool Send(absl::Duration pause, uint64_t bytes) {
    pace_.WaitFor(bytes, now_);
    now_ += pause;
    if (now_ >= pace_.due()) return false;
    pace_.Arrived(bytes, now_);
    return true;
  }
  // The daemon is busy and does not read.
  void BeBusy(absl::Duration time) { now_ += time; }

  UploadPace pace_{absl::Seconds(10), /*bytes_per_second=*/1000};
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(UploadPaceTest, NothingForTheWholeTimeoutIsTooLate) {
  pace_.WaitFor(/*bytes=*/0, now_);
  EXPECT_EQ(pace_.due(), now_ + absl::Seconds(10));
}

TEST_F(UploadPaceTest, AMessageHasTheTimeItTakesAtTheLeastRate) {
  pace_.WaitFor(/*bytes=*/5000, now_);
  EXPECT_EQ(pace_.due(), now_ + absl::Seconds(15));
}

TEST_F(UploadPaceTest, AByteNowAndThenIsTooSlow) {
  EXPECT_TRUE(Send(absl::Seconds(9), 1));
  EXPECT_FALSE(Send(absl::Seconds(9), 1));
}

TEST_F(UploadPaceTest, TheLeastRateIsEnoughForEver) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Send(absl::Milliseconds(500), 500));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Send(absl::Milliseconds(1), 1));
}

TEST_F(UploadPaceTest, LessThanTheLeastRateEndsSooner) {
  int sent = 0;
  while (Send(absl::Milliseconds(1000), 500) && sent < 100) ++sent;
  EXPECT_GE(sent, 19);
  EXPECT_LE(sent, 21);
}

TEST_F(UploadPaceTest, FastBytesEarnNoMoreThanOneTimeout) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send(absl::ZeroDuration(), 1'000'000));
  EXPECT_TRUE(Send(absl::Milliseconds(9999), 1));
  EXPECT_FALSE(Send(absl::Milliseconds(100), 1));
}

TEST_F(UploadPaceTest, PausesAreMadeUpForByBytes) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(Send(absl::Seconds(9), 1));
    EXPECT_TRUE(Send(absl::Milliseconds(1), 9000));
  }
}

TEST_F(UploadPaceTest, TheDaemonsOwnTimeDoesNotCount) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(Send(absl::Milliseconds(1), 1));
    BeBusy(absl::Minutes(1));
  }
}

}  // namespace
}  // namespace opserve::server
