#include "server/observability/line_limiter.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

class LineLimiterTest : public ::testing::Test {
 protected:
  // Asks for `times` lines with a text of so many bytes at `now`; what is written, a line each.
  std::vector<nlohmann::json> LinesOf(int times, size_t text_bytes, absl::Time now) {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < times; ++i) {
      if (limiter_.Admit(LogSeverity::kWarning, now)) {
        limiter_.Write(LogSeverity::kWarning, "denied", {{"text", std::string(text_bytes, 'x')}});
      }
    }
    FlushLog();
    std::istringstream text(::testing::internal::GetCapturedStderr());
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  LineLimiter limiter_{LimitedEvent::kDenied};
};

TEST_F(LineLimiterTest, CountsWhatIsLeftOutInTheNextLineAndInAll) {
  const uint64_t before = LeftOutLogLines(LimitedEvent::kDenied);

  EXPECT_THAT(LinesOf(/*times=*/300, /*text_bytes=*/10, kStart), SizeIs(LineLimiter::kBurst));

  EXPECT_EQ(LeftOutLogLines(LimitedEvent::kDenied) - before, 300u - LineLimiter::kBurst);
  const auto later = LinesOf(1, 10, kStart + absl::Seconds(1));
  ASSERT_THAT(later, SizeIs(1));
  EXPECT_EQ(later[0]["left_out"], 300 - LineLimiter::kBurst);
  EXPECT_FALSE(LinesOf(1, 10, kStart + absl::Seconds(2)).at(0).contains("left_out"));
}

// Ten minutes of lines of each length, of which ten are wanted a second.
TEST_F(LineLimiterTest, BytesAreBoundedWhateverTheLength) {
  for (const size_t text_bytes : {size_t{1}, size_t{600}, size_t{1000}, size_t{2000}}) {
    LineLimiter limiter(LimitedEvent::kGrpc);
    ASSERT_TRUE(SetLogLevel("info").ok());
    ::testing::internal::CaptureStderr();
    size_t bytes = 0;
    size_t longest = 0;
    int lines = 0;
    constexpr int kSeconds = 600;
    for (int i = 0; i < 10 * kSeconds; ++i) {
      const absl::Time now = kStart + i * absl::Milliseconds(100);
      if (!limiter.Admit(LogSeverity::kInfo, now)) continue;
      const size_t line =
          limiter.Write(LogSeverity::kInfo, "grpc", {{"message", std::string(text_bytes, 'x')}});
      ++lines;
      bytes += line;
      longest = std::max(longest, line);
    }
    FlushLog();
    EXPECT_EQ(::testing::internal::GetCapturedStderr().size(), bytes);
    EXPECT_LE(bytes, (kSeconds + LineLimiter::kBurst) * LineLimiter::kBytes +
                         LineLimiter::kBurst * longest)
        << text_bytes;
    EXPECT_GE(lines, kSeconds / 3) << text_bytes;
  }
}

TEST_F(LineLimiterTest, LinesThatAreNotWantedAreNotLeftOut) {
  ASSERT_TRUE(SetLogLevel("error").ok());
  const uint64_t before = LeftOutLogLines(LimitedEvent::kDenied);
  EXPECT_THAT(LinesOf(100, 10, kStart), SizeIs(0));
  ASSERT_TRUE(SetLogLevel("info").ok());
  EXPECT_EQ(LeftOutLogLines(LimitedEvent::kDenied), before);
  EXPECT_THAT(LinesOf(1, 10, kStart), SizeIs(1));
}

}  // namespace
}  // namespace opserve::server
