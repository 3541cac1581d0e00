#include "server/observability/request_log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/status/error.h"
#include "server/observability/log.h"
#include "tests/await.h"

namespace opserve::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
const TraceContext kContext = {.trace_high = 1, .trace_low = 0xab, .span = 2, .parent = 3};

class RequestLogTest : public ::testing::Test {
 protected:
  // What `record` writes, a line each.
  template <typename Record>
  std::vector<nlohmann::json> LinesOf(Record record) {
    ::testing::internal::CaptureStderr();
    record();
    FlushLog();
    std::istringstream text(::testing::internal::GetCapturedStderr());
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::vector<nlohmann::json> LinesOf(const absl::Status& status,
                                      std::optional<uint32_t> tenant = 0, int times = 1,
                                      absl::Time now = kNow) {
    return LinesOf([&] {
      for (int i = 0; i < times; ++i) Record(status, tenant, now);
    });
  }

  void Record(const absl::Status& status, std::optional<uint32_t> tenant = 0,
              absl::Time now = kNow) {
    log_.Record({.trace = trace_,
                 .tenant = tenant,
                 .tenant_name = "vision",
                 .op = "L1LossBackward",
                 .device = 1,
                 .status = status,
                 .clock = clock_,
                 .request_bytes = 100,
                 .response_bytes = 50,
                 .details = &details_},
                now);
  }

  TraceContext trace_ = kContext;
  StageClock clock_;
  RequestDetails details_ = {.program = "L1LossBackward(FLOAT [3])",
                             .lane = 2,
                             .plan_misses = 1,
                             .device_memory_bytes = 4096,
                             .pool_outcome = "GROW"};
  RequestLog log_{{.slow = absl::ZeroDuration()}};
};

TEST_F(RequestLogTest, OrdinaryRequestsHaveNoLine) {
  EXPECT_FALSE(log_.Wants(kContext, absl::OkStatus(), clock_));
  EXPECT_THAT(LinesOf(absl::OkStatus()), IsEmpty());
}

TEST_F(RequestLogTest, FailedOnesSayWhatHappenedToWhom) {
  const absl::Status error = InvalidCall("L1LossBackward", "target", "bad shape");
  const auto lines = LinesOf(error);
  ASSERT_THAT(lines, SizeIs(1));
  const nlohmann::json& line = lines.front();
  EXPECT_EQ(line["event"], "request_failed");
  EXPECT_EQ(line["level"], "info") << "the caller's mistake";
  EXPECT_EQ(line["trace_id"], "000000000000000100000000000000ab");
  EXPECT_EQ(line["span_id"], "0000000000000002");
  EXPECT_EQ(line["parent_span_id"], "0000000000000003");
  EXPECT_EQ(line["tenant"], "vision");
  EXPECT_EQ(line["operator"], "L1LossBackward");
  EXPECT_EQ(line["program"], "L1LossBackward(FLOAT [3])");
  EXPECT_EQ(line["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(line["reason"], "invalid");
  EXPECT_EQ(line["aclnn_status"], 161002);
  EXPECT_EQ(line["error"], "L1LossBackward: target: bad shape");
  EXPECT_EQ(line["request_bytes"], 100);
  EXPECT_TRUE(line["seconds"].contains("queue"));
  EXPECT_TRUE(line["seconds"].contains("total"));
}

TEST_F(RequestLogTest, LevelsTellWhoseFaultItWas) {
  const std::pair<absl::StatusCode, const char*> cases[] = {
      {absl::StatusCode::kInternal, "error"},         {absl::StatusCode::kUnknown, "error"},
      {absl::StatusCode::kDataLoss, "error"},         {absl::StatusCode::kCancelled, "info"},
      {absl::StatusCode::kDeadlineExceeded, "info"},  {absl::StatusCode::kUnavailable, "info"},
      {absl::StatusCode::kResourceExhausted, "info"}, {absl::StatusCode::kUnauthenticated, "info"},
  };
  for (uint32_t tenant = 0; const auto& [code, level] : cases) {
    const auto lines = LinesOf(absl::Status(code, "why"), tenant++);
    ASSERT_THAT(lines, SizeIs(1)) << code;
    EXPECT_EQ(lines[0]["level"], level) << code;
  }
}

TEST_F(RequestLogTest, SlowOnesSayWhereTheTimeWent) {
  log_.SetOptions({.slow = absl::Nanoseconds(1)});
  ASSERT_TRUE(Await([this] {
    clock_.Book(Stage::kExecute);
    return clock_.total_nanoseconds() > 0;
  }));
  const auto lines = LinesOf(absl::OkStatus());
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0]["event"], "request_slow");
  EXPECT_EQ(lines[0]["level"], "warning");
  EXPECT_EQ(lines[0]["lane"], 2);
  EXPECT_EQ(lines[0]["plan_misses"], 1);
  EXPECT_EQ(lines[0]["pool_outcome"], "GROW");
  EXPECT_GT(lines[0]["seconds"]["execute"], 0);
  EXPECT_EQ(lines[0]["seconds"]["execute"], lines[0]["seconds"]["total"]);
  log_.SetOptions({.slow = absl::Hours(1)});
  EXPECT_THAT(LinesOf(absl::OkStatus()), IsEmpty());
}

TEST_F(RequestLogTest, SamplesAreChosenByTheirTrace) {
  log_.SetOptions({.slow = absl::ZeroDuration(), .sample_one_in = 4, .lines_per_second = 1000});
  const auto lines = LinesOf([&] {
    for (int i = 0; i < 32; ++i) {
      trace_.trace_low = i;
      Record(absl::OkStatus(), 0, kNow + i * absl::Milliseconds(1));
    }
  });
  EXPECT_THAT(lines, SizeIs(8));
  EXPECT_EQ(lines.at(0)["event"], "request_sampled");
}

TEST_F(RequestLogTest, EachTenantHasItsOwnBoundOnLines) {
  const absl::Status refusal = absl::InvalidArgumentError("no");
  EXPECT_THAT(LinesOf(refusal, /*tenant=*/0, /*times=*/1000), SizeIs(LineLimiter::kBurst));
  EXPECT_THAT(LinesOf(refusal, /*tenant=*/1), SizeIs(1));
  EXPECT_THAT(LinesOf(refusal, std::nullopt), SizeIs(1));
  EXPECT_THAT(LinesOf(absl::InternalError("device"), /*tenant=*/0), SizeIs(1))
      << "refusals do not hide faults";

  const auto later = LinesOf(refusal, /*tenant=*/0, /*times=*/2, kNow + absl::Seconds(1));
  ASSERT_THAT(later, SizeIs(1));
  EXPECT_EQ(later[0]["left_out"], 1000 - LineLimiter::kBurst);
}

TEST_F(RequestLogTest, ThreadsTogetherKeepToTheBound) {
  const auto lines = LinesOf([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) Record(absl::InvalidArgumentError("no"));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_THAT(lines, SizeIs(LineLimiter::kBurst));
}

TEST_F(RequestLogTest, ALevelThatIsNotLoggedUsesNothingUp) {
  ASSERT_TRUE(SetLogLevel("error").ok());
  EXPECT_THAT(LinesOf(absl::InvalidArgumentError("no"), 0, 100), IsEmpty());
  ASSERT_TRUE(SetLogLevel("info").ok());
  const auto lines = LinesOf(absl::InvalidArgumentError("no"));
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_FALSE(lines[0].contains("left_out"));
}

// A text of a client's, as large as its message may be.
constexpr size_t kHuge = 50 << 20;

TEST_F(RequestLogTest, ErrorsThatQuoteALongTextHaveShortLines) {
  const auto lines =
      LinesOf(absl::InvalidArgumentError(absl::StrCat("no operator ", std::string(kHuge, 'x'))));
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0]["operator"], "L1LossBackward");
  EXPECT_LE(lines[0]["error"].get<std::string>().size(), 1100u);
}

TEST_F(RequestLogTest, EveryFieldOfALineIsBounded) {
  const std::string text(kHuge, 'x');
  const auto lines = LinesOf([&] {
    LogInfo("text", {{"text", text}, {"number", 1}});
    LogInfo("list", {{"list", std::vector<int>(100'000, 7)}, {"number", 1}});
    LogInfo("nested", {{"outer", {{"inner", text}}}, {"number", 1}});
  });
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[0]["text"], std::string(2048, 'x') + "... (52428800 bytes)");
  EXPECT_THAT(lines[1]["list"], SizeIs(65));
  EXPECT_EQ(lines[1]["list"].back(), "... and 99936 more");
  EXPECT_THAT(lines[2]["outer"]["inner"].get<std::string>(), SizeIs(2048 + 20));
  for (const auto& line : lines) EXPECT_EQ(line["number"], 1);
}

TEST_F(RequestLogTest, ALineHas16KiBAtMostWhateverIsInIt) {
  // Each byte becomes six of JSON, or three, or a mark for a character cut in two.
  for (const std::string& text : {std::string(10'000, '\x01'), std::string(10'000, '\xff'),
                                  absl::StrCat("y", std::string(4095, '\xc3'), "\xa4")}) {
    const auto lines = LinesOf([&text] {
      nlohmann::ordered_json fields;
      for (int i = 0; i < 20; ++i) fields[absl::StrCat("field", i)] = text;
      Log(LogSeverity::kInfo, "texts", fields);
      for (int i = 0; i < 1000; ++i) fields[absl::StrCat("field", i)] = text;
      Log(LogSeverity::kInfo, "more texts", fields);
    });
    ASSERT_THAT(lines, SizeIs(2));
    for (const auto& line : lines) EXPECT_LE(line.dump().size(), size_t{16} << 10);
    EXPECT_EQ(lines[0]["event"], "texts");
    EXPECT_EQ(lines[1]["event"], "more texts");
  }
}

// Standard error is a pipe that is not read.
class UnreadLog {
 public:
  UnreadLog() : standard_error_(dup(STDERR_FILENO)) {
    FlushLog();
    EXPECT_EQ(pipe(ends_), 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~UnreadLog() {
    // The log's thread finds the pipe closed and gives the rest up.
    close(ends_[0]);
    FlushLog();
    dup2(standard_error_, STDERR_FILENO);
    close(ends_[1]);
    close(standard_error_);
  }

 private:
  const int standard_error_;
  int ends_[2];
};

TEST(LogTest, WhatWaitsIsBoundedInBytes) {
  std::signal(SIGPIPE, SIG_IGN);
  constexpr int kLines = 5000;  // of 2 KiB and more: more than the queue holds
  const uint64_t dropped_before = DroppedLogLines();
  {
    const UnreadLog unread;
    const std::string text(100'000, 'x');
    for (int i = 0; i < kLines; ++i) LogInfo("line", {{"text", text}});

    EXPECT_LE(QueuedLogBytes(), size_t{4} << 20);
    EXPECT_GE(QueuedLogBytes(), size_t{3} << 20);
    EXPECT_GT(DroppedLogLines() - dropped_before, uint64_t{kLines} / 2);
  }
}

// Standard error is a pipe, which somebody may not read.
TEST(LogTest, WhoDoesNotReadHoldsUpNobody) {
  constexpr int kLines = 50000;  // more than the pipe and the queue hold
  FlushLog();
  const uint64_t dropped_before = DroppedLogLines();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int standard_error = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);

  for (int i = 0; i < kLines; ++i)
    LogInfo("line", {{"number", i}, {"filler", std::string(100, 'x')}});

  // It did not wait. Whoever reads again gets what was kept, the last line last.
  std::string text;
  std::vector<char> buffer(1 << 16);
  const std::string last = absl::StrCat("\"number\":", kLines - 1);
  while (!absl::StrContains(text, last)) {
    pollfd next = {.fd = ends[0], .events = POLLIN, .revents = 0};
    const bool has_more = poll(&next, 1, 60000) == 1;
    const ssize_t size = has_more ? read(ends[0], buffer.data(), buffer.size()) : 0;
    if (size <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  dup2(standard_error, STDERR_FILENO);
  EXPECT_TRUE(absl::StrContains(text, last)) << "not within a minute of the line before";
  for (int end : {ends[0], ends[1], standard_error}) close(end);
  const uint64_t dropped = DroppedLogLines() - dropped_before;
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n') + dropped, uint64_t{kLines});
}

}  // namespace
}  // namespace opserve::server
