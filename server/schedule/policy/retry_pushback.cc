#include "server/schedule/policy/retry_pushback.h"

#include <algorithm>
#include <cmath>

#include "proto/status/error.h"

namespace opserve::server {
namespace {

constexpr double kSpread = 0.1;

}  // namespace

int64_t PushbackMilliseconds(absl::Duration drain_time, std::mt19937_64& random) {
  const double shortest = absl::ToDoubleMilliseconds(kShortestPushback);
  const double longest = absl::ToDoubleMilliseconds(kLongestPushback);
  // Values at a bound are spread too, so the middle keeps its distance from the bounds.
  const double middle = std::clamp(absl::ToDoubleMilliseconds(drain_time), shortest / (1 - kSpread),
                                   longest / (1 + kSpread));
  const double factor = std::uniform_real_distribution<double>(1 - kSpread, 1 + kSpread)(random);
  return std::llround(std::clamp(middle * factor, shortest, longest));
}

absl::Status WithPushback(absl::Status error, absl::Duration drain_time) {
  if (!absl::IsResourceExhausted(error)) return error;
  v1::ErrorDetail detail = ErrorDetailOf(error).value_or(v1::ErrorDetail());
  // The refusal knows better when it is worth trying again, or that it never is.
  if (detail.retry_pushback_ms() != 0) return error;
  thread_local std::mt19937_64 random(std::random_device{}());
  detail.set_retry_pushback_ms(PushbackMilliseconds(drain_time, random));
  SetErrorDetail(detail, &error);
  return error;
}

}  // namespace opserve::server
