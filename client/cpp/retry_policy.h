// Internal: which calls are repeated, and when.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/connect_options.h"

namespace opserve {

// Decides for all calls of a client; they share its budget. Does not wait itself and knows no
// clock. Thread-safe.
class RetryPolicy {
 public:
  // Gives numbers in [0, 1), evenly distributed. Thread-safe.
  using Random = std::function<double()>;

  // kInvalidArgument: an option is outside its range.
  static absl::Status Check(const RetryOptions& options);

  // Requires: Check(options) is OK.
  explicit RetryPolicy(const RetryOptions& options, Random random = &UniformRandom);

  // Records a success.
  void RecordSuccess();

  // As RetryOptions says: whether calls wait for a daemon that is away; tells of the first wait.
  bool waits_for_daemon() const { return waits_for_daemon_; }
  void TellOfWait(const absl::Status& cause) const {
    if (waiting_) waiting_(cause);
  }

  // Whether a call that failed with `status` can wait for the daemon, since it has run nowhere.
  // Remembers which target has ever answered: of one that never did, a connection that is closed
  // or forbidden is a mistake of the caller's.
  bool WaitsForDaemon(const absl::Status& status);

  // How long to wait for the daemon after a call has waited for it `waits` times, now because of
  // *status, as WaitAfter. Nothing: its time is up.
  std::optional<absl::Duration> WaitForDaemon(int waits, absl::Duration time_left,
                                              absl::Status* status);

  // How long to wait before the next attempt of a call that has failed `attempts` times, now with
  // *status, and has `time_left` until its deadline. Never so short that gRPC has not tried for a
  // connection in between, if there was none. The budget pays for the attempt, except for
  // the first repetition of a call that no daemon answered.
  //
  // Nothing: *status is the outcome, and its message now says after how many attempts.
  std::optional<absl::Duration> WaitAfter(int attempts, absl::Duration time_left,
                                          absl::Status* status);

 private:
  static double UniformRandom();

  // The wait that `status` and the number of attempts ask for. Nothing: none can help.
  std::optional<absl::Duration> WishedWait(int attempts, const absl::Status& status) const;

  // `pushback` and a random share of it: calls that were refused together and told the same are not
  // to come back together.
  absl::Duration Spread(absl::Duration pushback) const { return pushback * (1 + random_() / 4); }

  // Takes 1 from the budget; false: there is not enough left.
  bool TakeFromBudget();

  const int max_attempts_;
  const bool waits_for_daemon_;
  const std::function<void(const absl::Status&)> waiting_;
  const int64_t full_budget_;  // in thousandths, as budget_
  const Random random_;
  std::atomic<int64_t> budget_;
  std::atomic<bool> was_reached_ = false;
};

// Whether a call is repeated, beside its wait for a daemon that is away.
enum class Repeats { kAsPolicySays, kNever };

// The failures of one call. Not thread-safe.
class CallAttempts {
 public:
  // `policy` outlives it.
  explicit CallAttempts(RetryPolicy* policy, Repeats repeats = Repeats::kAsPolicySays)
      : policy_(*policy), repeats_(repeats) {}

  // As RetryPolicy::WaitAfter or WaitForDaemon, whichever *status asks for. `may_have_run`: whether
  // the attempt can have left this process. If it cannot, and its deadline passed, *status becomes
  // kUnavailable with the cause of the last wait, which gRPC does not tell.
  std::optional<absl::Duration> WaitAfter(absl::Duration time_left, bool may_have_run,
                                          absl::Status* status);

 private:
  RetryPolicy& policy_;
  const Repeats repeats_;
  int attempts_ = 0;
  int waits_ = 0;
  absl::Status cause_ = absl::UnavailableError("no connection was made");
};

}  // namespace opserve
