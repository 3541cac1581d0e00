#include "client/cli/bench/bench_load.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/bench/arrival_schedule.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::ElementsAre;

// Time that passes only while a load waits for it or a test lets it pass.
class FakeClock final : public LoadClock {
 public:
  // From `interrupted_at` on the user wants the load to end.
  explicit FakeClock(absl::Duration interrupted_at = absl::InfiniteDuration())
      : interrupted_at_(interrupted_at) {}

  absl::Duration Now() override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }

  bool WaitUntil(absl::Duration time) override {
    absl::MutexLock lock(&mutex_);
    now_ = std::max(now_, std::min(time, interrupted_at_));
    return now_ < interrupted_at_;
  }

  void Interrupt() override {
    absl::MutexLock lock(&mutex_);
    interrupted_at_ = std::min(interrupted_at_, now_);
  }

  void Pass(absl::Duration time) {
    absl::MutexLock lock(&mutex_);
    now_ += time;
  }

 private:
  absl::Mutex mutex_;
  absl::Duration now_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1000);
  absl::Duration interrupted_at_ ABSL_GUARDED_BY(mutex_);
};

absl::Status ErrorFor(absl::StatusCode code, const std::string& reason, int64_t pushback_ms = 0) {
  v1::ErrorDetail detail;
  detail.set_reason(reason);
  detail.set_retry_pushback_ms(pushback_ms);
  v1::StatusDetails details;
  details.set_code(static_cast<int>(code));
  details.set_message("for " + reason);
  details.add_details()->PackFrom(detail);
  return FromStatusDetails(details);
}

Response ResponseOf(size_t bytes) {
  static const auto* const elements = new std::string(64, '\0');
  const absl::string_view piece(elements->data(), bytes);
  Response response;
  response.results.push_back(
      Result({}, kFloat, {static_cast<int64_t>(bytes / 4)}, {piece}, nullptr));
  return response;
}

TEST(ClosedLoopTest, MeasuresWhatWasSentAfterTheWarmup) {
  FakeClock clock;
  int sent = 0;
  const SendRequest send = [&](bool) {
    clock.Pass(absl::Milliseconds(sent++ < 10 ? 100 : 50));  // the warm-up has 10 of them
    return ResponseOf(8);
  };

  const LoadResult result =
      RunLoad({.warmup = absl::Seconds(1), .duration = absl::Seconds(4)}, send, clock, nullptr);

  EXPECT_EQ(sent, 90);
  EXPECT_EQ(result.measured, absl::Seconds(4));
  EXPECT_EQ(result.answered, 80u);
  // One was asked for in the warm-up and came after it, and the last one came at the very end.
  EXPECT_EQ(result.answers_in_time, 80u);
  EXPECT_EQ(result.received_bytes, 80u * 8);
  EXPECT_EQ(result.latency.count(), 80u);
  EXPECT_EQ(result.latency.max(), absl::Milliseconds(50));
  EXPECT_EQ(result.unsent, 0u);
  EXPECT_FALSE(result.was_interrupted);
  EXPECT_FALSE(result.gave_up);
}

TEST(ClosedLoopTest, AlwaysHasAsManyRequestsInFlightAsItMay) {
  constexpr int kConcurrency = 8;
  FakeClock clock;
  std::atomic<int> in_flight = 0;
  std::atomic<int> most = 0;
  std::atomic<int> begun = 0;
  absl::Barrier all_are_in_flight(kConcurrency);
  const SendRequest send = [&](bool) {
    const int now = ++in_flight;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    // Would never end with fewer.
    if (begun++ < kConcurrency && all_are_in_flight.Block()) clock.Pass(absl::Milliseconds(1));
    clock.Pass(absl::Milliseconds(1));
    --in_flight;
    return ResponseOf(4);
  };

  const LoadResult result = RunLoad(
      {.concurrency = kConcurrency, .warmup = absl::ZeroDuration(), .duration = absl::Seconds(1)},
      send, clock, nullptr);

  EXPECT_EQ(most, kConcurrency);
  EXPECT_GE(result.answered, static_cast<uint64_t>(kConcurrency));
}

// Latencies of requests that are due by this rate, one at a time, each of which takes `service`.
struct Expected {
  uint64_t sent = 0;
  uint64_t unsent = 0;
  absl::Duration longest;
};

Expected Simulate(double rate, absl::Duration service, absl::Duration duration) {
  Expected expected;
  ArrivalSchedule schedule(rate);
  absl::Duration free_from;
  for (absl::Duration due = schedule.Next(); due < duration; due = schedule.Next()) {
    const absl::Duration sent = std::max(due, free_from);
    if (sent < duration) {
      ++expected.sent;
      free_from = sent + service;
      expected.longest = std::max(expected.longest, free_from - due);
    } else {
      ++expected.unsent;
      expected.longest = std::max(expected.longest, duration - due);
    }
  }
  return expected;
}

TEST(OpenLoopTest, LatencyCountsFromWhenARequestWasDue) {
  struct Case {
    double rate;
    absl::Duration service;
    bool is_overloaded;
  };
  constexpr absl::Duration kDuration = absl::Seconds(10);
  const Case kCases[] = {{10, absl::Milliseconds(1), false},
                         {10, absl::Milliseconds(60), false},
                         {10, absl::Milliseconds(500), true},
                         {1000, absl::Seconds(9), true}};
  for (const Case& c : kCases) {
    FakeClock clock;
    const SendRequest send = [&](bool) {
      clock.Pass(c.service);
      return ResponseOf(4);
    };

    const LoadResult result =
        RunLoad({.rate = c.rate, .warmup = absl::ZeroDuration(), .duration = kDuration}, send,
                clock, nullptr);

    const Expected expected = Simulate(c.rate, c.service, kDuration);
    EXPECT_EQ(result.answered, expected.sent);
    EXPECT_EQ(result.unsent, expected.unsent);
    if (c.is_overloaded) {
      EXPECT_GT(result.unsent, 0u);
    }
    EXPECT_EQ(result.latency.count(), expected.sent + expected.unsent);
    EXPECT_EQ(result.latency.max(), absl::Trunc(expected.longest, absl::Nanoseconds(1)));
    EXPECT_EQ(result.measured, kDuration);
  }
}

TEST(OpenLoopTest, OneStallIsFeltByAllThatWereDueInIt) {
  FakeClock clock;
  bool has_stalled = false;
  const SendRequest send = [&](bool) {
    if (!has_stalled) clock.Pass(absl::Seconds(1));
    has_stalled = true;
    return ResponseOf(4);
  };

  const LoadResult result =
      RunLoad({.rate = 1000, .warmup = absl::ZeroDuration(), .duration = absl::Seconds(2)}, send,
              clock, nullptr);

  // Sent one after another, all but one would have taken no time.
  EXPECT_GT(result.latency.Percentile(60), absl::ZeroDuration());
  EXPECT_GT(result.latency.Percentile(90), absl::Milliseconds(700));
}

TEST(LoadTest, ErrorsAreCountedByCodeAndReason) {
  FakeClock clock;
  int sent = 0;
  const SendRequest send = [&](bool) -> absl::StatusOr<Response> {
    clock.Pass(absl::Milliseconds(100));
    switch (sent++ % 4) {
      case 0:
        return ErrorFor(absl::StatusCode::kResourceExhausted, "queue_full", 50);
      case 1:
        return ErrorFor(absl::StatusCode::kInternal, "");
      case 2:
        return ErrorFor(absl::StatusCode::kResourceExhausted, "rate_limited", 50);
      default:
        return ResponseOf(4);
    }
  };

  const LoadResult result =
      RunLoad({.warmup = absl::Seconds(2), .duration = absl::Seconds(2)}, send, clock, nullptr);

  ASSERT_EQ(result.errors.size(), 3u);
  EXPECT_EQ(result.errors[0].reason, "queue_full");
  EXPECT_EQ(result.errors[0].first.message(), "for queue_full");
  EXPECT_TRUE(result.errors[0].is_refusal);
  EXPECT_EQ(result.errors[1].first.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(result.errors[1].is_refusal);
  for (const LoadError& error : result.errors) {
    EXPECT_EQ(error.count, 10u);
    EXPECT_EQ(error.in_warmup, 5u);
  }
  EXPECT_EQ(result.answered, 5u);
  EXPECT_EQ(result.latency.count(), 5u);
}

TEST(LoadTest, GivesUpAfterNothingButFailures) {
  struct Case {
    absl::Status error;
    bool gives_up;
  };
  const Case kCases[] = {
      {absl::UnavailableError("gone"), true},
      {ErrorFor(absl::StatusCode::kResourceExhausted, "queue_full", 50), false},
  };
  for (const Case& c : kCases) {
    for (const std::optional<double> rate : {std::optional<double>(), std::optional<double>(100)}) {
      FakeClock clock;
      std::atomic<int> sent = 0;
      const SendRequest send = [&](bool) -> absl::StatusOr<Response> {
        clock.Pass(absl::Milliseconds(10));
        ++sent;
        return c.error;
      };

      const LoadResult result =
          RunLoad({.rate = rate, .warmup = absl::ZeroDuration(), .duration = absl::Seconds(5)},
                  send, clock, nullptr);

      EXPECT_EQ(result.gave_up, c.gives_up) << c.error;
      EXPECT_FALSE(result.was_interrupted);
      EXPECT_EQ(sent == 100, c.gives_up) << sent;
      EXPECT_EQ(result.measured < absl::Seconds(5), c.gives_up);
    }
  }
}

TEST(LoadTest, TheUserEndsItEarly) {
  for (const std::optional<double> rate : {std::optional<double>(), std::optional<double>(10)}) {
    FakeClock clock(/*interrupted_at=*/absl::Seconds(1004));
    const SendRequest send = [&](bool) {
      clock.Pass(absl::Milliseconds(50));
      return ResponseOf(4);
    };

    const LoadResult result =
        RunLoad({.rate = rate, .warmup = absl::Seconds(1), .duration = absl::Hours(1)}, send, clock,
                nullptr);

    EXPECT_TRUE(result.was_interrupted);
    EXPECT_NEAR(absl::ToDoubleSeconds(result.measured), 3, 0.05);
    EXPECT_GT(result.answered, 0u);
  }
}

TEST(LoadTest, InterruptedInTheWarmupItHasMeasuredNothing) {
  FakeClock clock(/*interrupted_at=*/absl::Seconds(1001));
  const SendRequest send = [&](bool) {
    clock.Pass(absl::Milliseconds(50));
    return ResponseOf(4);
  };

  const LoadResult result = RunLoad({.warmup = absl::Seconds(2)}, send, clock, nullptr);

  EXPECT_TRUE(result.was_interrupted);
  EXPECT_EQ(result.measured, absl::ZeroDuration());
  EXPECT_EQ(result.answered, 0u);
  EXPECT_EQ(result.latency.count(), 0u);
}

TEST(LoadTest, ReceiptsAreOfEverySixteenthMeasuredRequest) {
  FakeClock clock;
  std::vector<int> asked;
  int sent = 0;
  const SendRequest send = [&](bool want_receipt) {
    clock.Pass(absl::Milliseconds(10));
    Response response = ResponseOf(4);
    if (want_receipt) {
      asked.push_back(sent);
      response.receipt.emplace().set_queue_ns(1'000'000);
      response.receipt->set_execute_ns(3'000'000);
      response.receipt->set_total_ns(4'000'000);
    }
    ++sent;
    return response;
  };

  const LoadResult result =
      RunLoad({.warmup = absl::Milliseconds(50), .duration = absl::Milliseconds(400)}, send, clock,
              nullptr);

  EXPECT_THAT(asked, ElementsAre(5, 21, 37));
  EXPECT_EQ(result.receipts.count, 3u);
  EXPECT_EQ(result.receipts.total_ns, 12'000'000);
  EXPECT_EQ(result.receipts.call_ns, 30'000'000);
  EXPECT_THAT(result.receipts.stages_ns, ElementsAre(0, 0, 3'000'000, 0, 0, 9'000'000, 0, 0));
}

TEST(OverloadRefusalTest, IsWhatALaterRequestMayBeSparedOf) {
  struct Case {
    absl::Status status;
    bool is_refusal;
  };
  constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
  constexpr auto kDeadline = absl::StatusCode::kDeadlineExceeded;
  const Case kCases[] = {
      {ErrorFor(kExhausted, "queue_full", 10), true},
      {ErrorFor(kExhausted, "tenant_queue_full", 0), true},
      {ErrorFor(kExhausted, "rate_limited", 10), true},
      {ErrorFor(kExhausted, "tenant_memory", 10), true},
      {ErrorFor(kExhausted, "tenant_memory", -1), false},  // larger than all that it may have
      {ErrorFor(kExhausted, "device_memory", 10), true},
      {ErrorFor(kExhausted, "work_limit", 10), true},
      {ErrorFor(absl::StatusCode::kFailedPrecondition, "work_limit", -1), false},  // of itself
      {ErrorFor(kDeadline, "deadline_infeasible", -1), true},
      {ErrorFor(kDeadline, "deadline_expired", 0), false},
      {ErrorFor(absl::StatusCode::kUnavailable, "draining", 10), false},
      {ErrorFor(absl::StatusCode::kInvalidArgument, "invalid", -1), false},
      {absl::ResourceExhaustedError("a message too large for gRPC"), false},
      {absl::DeadlineExceededError("no answer"), false},
  };
  for (const Case& c : kCases) EXPECT_EQ(IsOverloadRefusal(c.status), c.is_refusal) << c.status;
}

}  // namespace
}  // namespace opserve::cli
