#include "client/cpp/retry_policy.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/error.h"
#include "client/cpp/text_search.h"
#include "proto/status/reason.h"

namespace opserve {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kLongestBackoff = absl::Seconds(5);
// gRPC makes a connection that was ended again after 0.1 s (transport.cc) and a fifth; attempts
// before that fail with the same error.
constexpr absl::Duration kReconnection = absl::Milliseconds(150);
// To ask whether a daemon is back costs this process's time alone.
constexpr absl::Duration kLongestWaitForDaemon = absl::Milliseconds(500);

constexpr int64_t kThousandths = 1000;
// Prices are in thousandths of a repetition: a failure takes one, ten successes earn one.
constexpr int64_t kCost = 1 * kThousandths;
constexpr int64_t kGain = kThousandths / 10;

// How gRPC's texts begin where a call found no connection on which to leave this process. All other
// texts mean that it may have arrived.
constexpr absl::string_view kNoConnection[] = {"failed to connect to all addresses",
                                               "connections to all backends failing",
                                               "empty address list", "DNS resolution failed"};
// Causes that no restart of a daemon has: TLS against plaintext, certificates, other servers.
constexpr absl::string_view kMistakes[] = {"andshake failed", "Verification Check failed",
                                           "http1.x", "Expected SETTINGS frame",
                                           "WRONG_VERSION_NUMBER"};
// Causes that a restart may have for a moment; of a target that never answered, they are mistakes.
constexpr absl::string_view kMistakesAtFirst[] = {"Socket closed", "reset by peer",
                                                  "Domain name not found", "Permission denied"};

bool FoundNoConnection(absl::string_view message) {
  return std::any_of(std::begin(kNoConnection), std::end(kNoConnection),
                     [message](absl::string_view text) { return absl::StartsWith(message, text); });
}

constexpr absl::string_view kWaitedInVain = "waited for it until the deadline";

// Exponential, and random.
absl::Duration Backoff(int doublings, absl::Duration longest, double random) {
  // A shift, which must stay in the width of the type.
  constexpr int kMostDoublings = 10;  // more than any longest one needs
  return std::min(kFirstBackoff * (int64_t{1} << std::min(doublings, kMostDoublings)), longest) *
         random;
}

// Which errors may pass: the request did not run, or it does no harm to run it again.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// Whether the connection broke, or there was none: no daemon refused anything, so repeating it once
// multiplies no overload, and however many calls a dead daemon had, all go to another.
bool IsFirstLoss(int attempts, const absl::Status& status) {
  return attempts == 1 && absl::IsUnavailable(status) && !ErrorDetailOf(status);
}

absl::Status WithNote(const absl::Status& status, absl::string_view note) {
  return WithMessage(absl::StrCat(status.message(), " (", note, ")"), status);
}

std::string AfterAttempts(int attempts) {
  return absl::StrCat("after ", attempts, attempts == 1 ? " attempt" : " attempts");
}

// Whether the daemon leaves, or the call's resident tensors are on their way between daemons.
bool IsOfLeavingDaemon(Reason reason) {
  return reason == Reason::kDraining || reason == Reason::kTensorMoved ||
         reason == Reason::kTensorArriving;
}

}  // namespace

absl::Status RetryPolicy::Check(const RetryOptions& options) {
  if (options.max_attempts < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("retry.max_attempts is ", options.max_attempts, "; expected at least 1"));
  }
  // So that its thousandths can be counted. The negation also finds NaN.
  constexpr double kLargestBudget = 1e12;
  if (!(options.budget >= 0 && options.budget <= kLargestBudget)) {
    return absl::InvalidArgumentError(
        absl::StrCat("retry.budget is ", options.budget, "; expected 0 to ", kLargestBudget));
  }
  return absl::OkStatus();
}

RetryPolicy::RetryPolicy(const RetryOptions& options, Random random)
    : max_attempts_(options.max_attempts),
      waits_for_daemon_(options.waits_for_daemon && options.max_attempts > 1),
      waiting_(options.waiting),
      full_budget_(std::llround(options.budget * kThousandths)),
      random_(std::move(random)),
      budget_(full_budget_) {}

double RetryPolicy::UniformRandom() {
  thread_local absl::InsecureBitGen generator;
  return absl::Uniform(generator, 0.0, 1.0);
}

void RetryPolicy::RecordSuccess() {
  was_reached_.store(true, std::memory_order_relaxed);
  // Never above the full budget: a long quiet time saves nothing up.
  int64_t budget = budget_.load(std::memory_order_relaxed);
  while (budget < full_budget_ &&
         !budget_.compare_exchange_weak(budget, std::min(budget + kGain, full_budget_))) {
  }
}

bool RetryPolicy::TakeFromBudget() {
  int64_t budget = budget_.load(std::memory_order_relaxed);
  do {
    // As in gRPC's retry throttling nothing is repeated below half of the budget: when that many
    // calls fail, repetitions would make an overload worse.
    if (budget < kCost || 2 * budget < full_budget_) return false;
  } while (!budget_.compare_exchange_weak(budget, budget - kCost));
  return true;
}

std::optional<absl::Duration> RetryPolicy::WishedWait(int attempts,
                                                      const absl::Status& status) const {
  if (!MayPass(status) || attempts >= max_attempts_) return std::nullopt;
  if (const std::optional<absl::Duration> pushback = RetryPushbackOf(status)) {
    // The daemon says that it can never succeed.
    if (*pushback == absl::InfiniteDuration()) return std::nullopt;
    return Spread(*pushback);
  }
  const absl::Duration wait = Backoff(attempts - 1, kLongestBackoff, random_());
  return FoundNoConnection(status.message()) ? std::max(wait, kReconnection) : wait;
}

bool RetryPolicy::WaitsForDaemon(const absl::Status& status) {
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  // A detail is written by a daemon, so the target has been reached.
  if (detail) was_reached_.store(true, std::memory_order_relaxed);
  if (!waits_for_daemon_ || !absl::IsUnavailable(status)) return false;
  if (detail) return IsOfLeavingDaemon(ReasonFromText(detail->reason()));
  if (!FoundNoConnection(status.message()) || HasAny(status.message(), kMistakes)) return false;
  return was_reached_.load(std::memory_order_relaxed) ||
         !HasAny(status.message(), kMistakesAtFirst);
}

std::optional<absl::Duration> RetryPolicy::WaitForDaemon(int waits, absl::Duration time_left,
                                                         absl::Status* status) {
  // Once for each call, before the first wait.
  if (waits == 0) TellOfWait(*status);
  const std::optional<absl::Duration> pushback = RetryPushbackOf(*status);
  const bool is_told = pushback && *pushback != absl::InfiniteDuration();
  const absl::Duration wait =
      is_told ? Spread(*pushback) : Backoff(waits, kLongestWaitForDaemon, random_());
  if (wait < time_left) return wait;
  *status = WithNote(*status, kWaitedInVain);
  return std::nullopt;
}

std::optional<absl::Duration> RetryPolicy::WaitAfter(int attempts, absl::Duration time_left,
                                                     absl::Status* status) {
  const std::optional<absl::Duration> wait = WishedWait(attempts, *status);
  if (!wait) {
    if (attempts > 1) *status = WithNote(*status, AfterAttempts(attempts));
    return std::nullopt;
  }
  // A wait that ends beyond the deadline would fail with less to tell.
  if (*wait >= time_left) {
    *status = WithNote(
        *status, absl::StrCat(AfterAttempts(attempts), "; the next would be beyond the deadline"));
    return std::nullopt;
  }
  // Last, so that only attempts that are made are paid for.
  if (!IsFirstLoss(attempts, *status) && !TakeFromBudget()) {
    *status = WithNote(
        *status, absl::StrCat(AfterAttempts(attempts), "; too many calls failed to try more"));
    return std::nullopt;
  }
  return wait;
}

std::optional<absl::Duration> CallAttempts::WaitAfter(absl::Duration time_left, bool may_have_run,
                                                      absl::Status* status) {
  // The deadline passed while gRPC looked for a connection; its own text does not say why there was
  // none.
  if (absl::IsDeadlineExceeded(*status) && !ErrorDetailOf(*status) && !may_have_run) {
    *status = WithNote(cause_, kWaitedInVain);
    return std::nullopt;
  }
  if (policy_.WaitsForDaemon(*status)) {
    cause_ = *status;
    return policy_.WaitForDaemon(waits_++, time_left, status);
  }
  if (repeats_ == Repeats::kNever) return std::nullopt;
  return policy_.WaitAfter(++attempts_, time_left, status);
}

}  // namespace opserve
