#include "client/cpp/retry_policy.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"

namespace opserve {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kForever = absl::InfiniteDuration();

// A policy whose random numbers are always the same.
RetryPolicy PolicyWith(double random, const RetryOptions& options = {.budget = 1000}) {
  return RetryPolicy(options, [random] { return random; });
}

// As the daemon's error with this pushback.
absl::Status WithPushback(absl::StatusCode code, int64_t milliseconds) {
  v1::ErrorDetail detail;
  detail.set_retry_pushback_ms(milliseconds);
  v1::StatusDetails details;
  details.set_code(static_cast<int>(code));
  details.set_message("refused");
  details.add_details()->PackFrom(detail);
  return FromStatusDetails(details);
}

TEST(RetryPolicyTest, OnlyErrorsThatMayPassAreRepeated) {
  for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const auto error = static_cast<absl::StatusCode>(code);
    absl::Status status(error, "failed");

    const auto wait = PolicyWith(0.5).WaitAfter(1, kForever, &status);

    const bool is_repeated =
        error == absl::StatusCode::kUnavailable || error == absl::StatusCode::kResourceExhausted;
    EXPECT_EQ(wait.has_value(), is_repeated) << status;
    EXPECT_EQ(status.message(), "failed");
  }
}

TEST(RetryPolicyTest, BackoffDoublesUpToItsLongestAndIsDrawnFromAll) {
  struct Case {
    int attempts;
    double random;
    absl::Duration wait;
  };
  const Case kCases[] = {
      {1, 0, absl::ZeroDuration()},
      {1, 1, absl::Milliseconds(50)},
      {1, 0.5, absl::Milliseconds(25)},
      {2, 1, absl::Milliseconds(100)},
      {3, 1, absl::Milliseconds(200)},
      {7, 1, absl::Milliseconds(3200)},
      {8, 1, absl::Seconds(5)},
      {9, 0.5, absl::Milliseconds(2500)},
      {1'000'000, 0.5, absl::Seconds(2.5)},
  };
  for (const Case& c : kCases) {
    absl::Status status = absl::UnavailableError("");
    RetryPolicy policy = PolicyWith(c.random, {.max_attempts = 2'000'000, .budget = 1000});
    EXPECT_EQ(policy.WaitAfter(c.attempts, kForever, &status), c.wait) << c.attempts;
  }
}

TEST(RetryPolicyTest, WaitsAtLeastAsLongAsTheDaemonAsks) {
  struct Case {
    int64_t pushback_ms;
    double random;
    std::optional<absl::Duration> wait;
  };
  const Case kCases[] = {
      {400, 0, absl::Milliseconds(400)}, {400, 1, absl::Milliseconds(500)},
      {20'000, 0, absl::Seconds(20)},    {-1, 0.5, std::nullopt},
      {-7, 0.5, std::nullopt},
  };
  for (const Case& c : kCases) {
    absl::Status status = WithPushback(absl::StatusCode::kResourceExhausted, c.pushback_ms);
    EXPECT_EQ(PolicyWith(c.random).WaitAfter(1, kForever, &status), c.wait) << c.pushback_ms;
  }
  absl::Status status = WithPushback(absl::StatusCode::kInternal, 400);
  EXPECT_EQ(PolicyWith(0).WaitAfter(1, kForever, &status), std::nullopt);
}

TEST(RetryPolicyTest, AttemptsAreBounded) {
  for (const int max_attempts : {1, 2, 5}) {
    RetryPolicy policy = PolicyWith(0.5, {.max_attempts = max_attempts, .budget = 1000});
    absl::Status status = absl::UnavailableError("gone");
    int attempts = 1;
    while (attempts <= max_attempts && policy.WaitAfter(attempts, kForever, &status)) ++attempts;
    EXPECT_EQ(attempts, max_attempts);
    EXPECT_EQ(status.message(),
              attempts == 1 ? "gone" : "gone (after " + std::to_string(attempts) + " attempts)");
  }
}

TEST(RetryPolicyTest, WithoutAConnectionGrpcGetsTheTimeToMakeOne) {
  const absl::Status none = absl::UnavailableError("failed to connect to all addresses; closed");
  absl::Status status = none;
  EXPECT_EQ(PolicyWith(0).WaitAfter(1, kForever, &status), absl::Milliseconds(150));
  EXPECT_EQ(PolicyWith(1).WaitAfter(4, kForever, &status), absl::Milliseconds(400));
  EXPECT_EQ(PolicyWith(0).WaitAfter(1, absl::Milliseconds(150), &status), std::nullopt);

  absl::Status lost = absl::UnavailableError("Socket closed");
  EXPECT_EQ(PolicyWith(0).WaitAfter(1, kForever, &lost), absl::ZeroDuration());
}

TEST(RetryPolicyTest, WhatWouldBeginBeyondTheDeadlineIsGivenUp) {
  RetryPolicy policy = PolicyWith(1);
  absl::Status status = absl::UnavailableError("gone");
  EXPECT_EQ(policy.WaitAfter(1, absl::Milliseconds(51), &status), absl::Milliseconds(50));
  EXPECT_EQ(policy.WaitAfter(1, absl::Milliseconds(50), &status), std::nullopt);
  EXPECT_EQ(status.message(), "gone (after 1 attempt; the next would be beyond the deadline)");

  status = absl::UnavailableError("gone");
  EXPECT_EQ(policy.WaitAfter(2, absl::Milliseconds(-1), &status), std::nullopt);
  EXPECT_EQ(status.message(), "gone (after 2 attempts; the next would be beyond the deadline)");
}

TEST(RetryPolicyTest, GivingUpKeepsWhatTheDaemonSaid) {
  absl::Status status = WithPushback(absl::StatusCode::kUnavailable, 400);
  EXPECT_EQ(PolicyWith(0).WaitAfter(3, absl::Milliseconds(300), &status), std::nullopt);
  EXPECT_EQ(RetryPushbackOf(status), absl::Milliseconds(400));

  absl::Status other = absl::InternalError("wrong");
  EXPECT_EQ(PolicyWith(0).WaitAfter(3, kForever, &other), std::nullopt);
  EXPECT_EQ(other.message(), "wrong (after 3 attempts)");
}

// How many of `calls` calls, which are all refused once, are repeated.
int Repeated(RetryPolicy& policy, int calls) {
  int repeated = 0;
  for (int i = 0; i < calls; ++i) {
    absl::Status status = absl::ResourceExhaustedError("");
    repeated += policy.WaitAfter(1, kForever, &status).has_value();
  }
  return repeated;
}

TEST(RetryPolicyTest, TheBudgetIsSharedAndSuccessesFillIt) {
  RetryPolicy policy = PolicyWith(0.5, {.budget = 10});
  EXPECT_EQ(Repeated(policy, 100), 6);  // 10, 9, 8, 7, 6 and 5 of 10 were at least half
  absl::Status status = absl::UnavailableError("gone");
  EXPECT_EQ(policy.WaitAfter(2, kForever, &status), std::nullopt);
  EXPECT_THAT(std::string(status.message()), HasSubstr("gone (after 2 attempts; too many calls"));

  for (int i = 0; i < 9; ++i) policy.RecordSuccess();
  EXPECT_EQ(Repeated(policy, 100), 0);
  policy.RecordSuccess();
  EXPECT_EQ(Repeated(policy, 100), 1);

  for (int i = 0; i < 1000; ++i) policy.RecordSuccess();
  EXPECT_EQ(Repeated(policy, 100), 6) << "it never holds more than at first";
}

TEST(RetryPolicyTest, ErrorsThatAreNotRepeatedCostNothing) {
  RetryPolicy policy = PolicyWith(0.5, {.max_attempts = 2, .budget = 10});
  for (int i = 0; i < 100; ++i) {
    absl::Status last = absl::UnavailableError("");
    absl::Status late = absl::UnavailableError("");
    absl::Status fatal = absl::InternalError("");
    EXPECT_EQ(policy.WaitAfter(2, kForever, &last), std::nullopt);
    EXPECT_EQ(policy.WaitAfter(1, absl::ZeroDuration(), &late), std::nullopt);
    EXPECT_EQ(policy.WaitAfter(1, kForever, &fatal), std::nullopt);
  }
  EXPECT_EQ(Repeated(policy, 100), 6);
}

TEST(RetryPolicyTest, LostCallsAreRepeatedOnceForNothing) {
  RetryPolicy policy = PolicyWith(0.5, {.budget = 10});
  for (int i = 0; i < 100; ++i) {
    absl::Status lost = absl::UnavailableError("connection reset");
    EXPECT_TRUE(policy.WaitAfter(1, kForever, &lost).has_value());
  }
  EXPECT_EQ(Repeated(policy, 100), 6);
  absl::Status refused = WithPushback(absl::StatusCode::kUnavailable, 1);
  EXPECT_EQ(policy.WaitAfter(1, kForever, &refused), std::nullopt) << "a daemon said so";
  absl::Status lost_again = absl::UnavailableError("connection reset");
  EXPECT_EQ(policy.WaitAfter(2, kForever, &lost_again), std::nullopt);
}

TEST(RetryPolicyTest, CallsThatHaveRunNowhereWaitForTheDaemon) {
  const absl::Status away = absl::UnavailableError("failed to connect to all addresses; refused");
  const absl::Status closed =
      absl::UnavailableError("failed to connect to all addresses; Socket closed");
  const absl::Status draining = MakeError(Reason::kDraining, "the daemon drains", 20);
  const struct {
    absl::Status status;
    bool was_reached;
    RetryOptions options;
    bool waits;
  } cases[] = {
      {away, false, {}, true},
      {away, true, {}, true},
      {away, true, {.max_attempts = 1}, false},
      {away, true, {.waits_for_daemon = false}, false},
      {closed, true, {}, true},
      {closed, false, {}, false},
      {absl::UnavailableError("connections to all backends failing; refused"), false, {}, true},
      {absl::UnavailableError("failed to connect to all addresses; Ssl handshake failed"),
       true,
       {},
       false},
      {absl::UnavailableError("Connection reset by peer"), true, {}, false},  // it may have run
      {draining, false, {}, true},
      {MakeError(Reason::kTensorMoved, "it is elsewhere"), false, {}, true},
      {MakeError(Reason::kTensorArriving, "it may come", 20), true, {}, true},
      {MakeError(Reason::kQueueFull, "no room", 20), true, {}, false},
      {absl::InternalError("failed to connect to all addresses"), true, {}, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.status.ToString(), c.was_reached ? ", reached before" : ""));
    RetryPolicy policy = PolicyWith(0.5, c.options);
    if (c.was_reached) policy.RecordSuccess();
    EXPECT_EQ(policy.WaitsForDaemon(c.status), c.waits);
  }
}

TEST(RetryPolicyTest, WaitsCostNothingAndEndWithTheDeadline) {
  std::vector<std::string> told;
  RetryPolicy policy = PolicyWith(
      0.5, {.waiting = [&](const absl::Status& cause) { told.emplace_back(cause.message()); }});
  CallAttempts attempts(&policy);
  for (int i = 0; i < 100; ++i) {
    absl::Status away = absl::UnavailableError("failed to connect to all addresses");
    const std::optional<absl::Duration> wait = attempts.WaitAfter(absl::Seconds(1), false, &away);
    ASSERT_TRUE(wait.has_value());
    EXPECT_EQ(*wait, std::min(absl::Milliseconds(25) * (int64_t{1} << std::min(i, 10)),
                              absl::Milliseconds(250)));
  }
  EXPECT_EQ(told.size(), 1u) << "once for a call";
  absl::Status away = absl::UnavailableError("failed to connect to all addresses");
  EXPECT_EQ(attempts.WaitAfter(absl::Milliseconds(250), false, &away), std::nullopt);
  EXPECT_EQ(away.message(),
            "failed to connect to all addresses (waited for it until the deadline)");
  EXPECT_EQ(Repeated(policy, 100), 6) << "the budget is untouched";
}

TEST(RetryPolicyTest, AnAttemptThatFoundNoConnectionUntilItsDeadlineSaysTheCause) {
  RetryPolicy policy = PolicyWith(0.5);
  const absl::Status late = absl::DeadlineExceededError("Deadline Exceeded");
  CallAttempts attempts(&policy);
  absl::Status status = late;
  EXPECT_EQ(attempts.WaitAfter(absl::ZeroDuration(), false, &status), std::nullopt);
  EXPECT_EQ(status,
            absl::UnavailableError("no connection was made (waited for it until the deadline)"));

  status = absl::UnavailableError("failed to connect to all addresses; refused");
  EXPECT_TRUE(attempts.WaitAfter(kForever, false, &status).has_value());
  status = late;
  EXPECT_EQ(attempts.WaitAfter(absl::ZeroDuration(), false, &status), std::nullopt);
  EXPECT_EQ(status, absl::UnavailableError("failed to connect to all addresses; refused "
                                           "(waited for it until the deadline)"));

  status = late;
  EXPECT_EQ(attempts.WaitAfter(absl::ZeroDuration(), true, &status), std::nullopt);
  EXPECT_EQ(status, late) << "it may have run";
  absl::Status expired = MakeError(Reason::kDeadlineExpired, "in the queue");
  EXPECT_EQ(attempts.WaitAfter(absl::ZeroDuration(), false, &expired), std::nullopt);
  EXPECT_EQ(expired.code(), absl::StatusCode::kDeadlineExceeded) << "the daemon said so";
}

TEST(RetryPolicyTest, ACallThatIsNotRepeatedWaitsForTheDaemonOnly) {
  RetryPolicy policy = PolicyWith(0.5);
  CallAttempts attempts(&policy, Repeats::kNever);
  absl::Status away = absl::UnavailableError("failed to connect to all addresses");
  EXPECT_TRUE(attempts.WaitAfter(kForever, false, &away).has_value());
  for (const absl::Status& may_have_run : {absl::UnavailableError("Connection reset by peer"),
                                           MakeError(Reason::kQueueFull, "full")}) {
    absl::Status status = may_have_run;
    EXPECT_EQ(attempts.WaitAfter(kForever, true, &status), std::nullopt);
    EXPECT_EQ(status, may_have_run) << "without a note of attempts";
  }
}

TEST(RetryPolicyTest, SmallBudgets) {
  struct Case {
    double budget;
    int repeated;
  };
  for (const Case& c : {Case{0, 0}, Case{0.5, 0}, Case{1, 1}, Case{2, 2}}) {
    RetryPolicy policy = PolicyWith(0.5, {.budget = c.budget});
    EXPECT_EQ(Repeated(policy, 100), c.repeated) << c.budget;
  }
}

TEST(RetryPolicyTest, OptionsAreChecked) {
  EXPECT_TRUE(RetryPolicy::Check({}).ok());
  EXPECT_TRUE(RetryPolicy::Check({.max_attempts = 1, .budget = 0}).ok());
  for (const RetryOptions& bad :
       {RetryOptions{.max_attempts = 0}, RetryOptions{.budget = -0.5},
        RetryOptions{.budget = std::numeric_limits<double>::quiet_NaN()}}) {
    EXPECT_EQ(RetryPolicy::Check(bad).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(RetryPolicy::Check({.max_attempts = 0}).message(),
            "retry.max_attempts is 0; expected at least 1");
}

TEST(RetryPolicyTest, RandomNumbersAreThereByDefault) {
  RetryPolicy policy(RetryOptions{.budget = 1000});
  for (int i = 0; i < 100; ++i) {
    absl::Status status = absl::UnavailableError("");
    const auto wait = policy.WaitAfter(1, kForever, &status);
    ASSERT_TRUE(wait.has_value());
    EXPECT_GE(*wait, absl::ZeroDuration());
    EXPECT_LE(*wait, absl::Milliseconds(50));
  }
}

}  // namespace
}  // namespace opserve
