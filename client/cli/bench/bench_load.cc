#include "client/cli/bench/bench_load.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/bench/arrival_schedule.h"
#include "client/cpp/error.h"

namespace opserve::cli {
namespace {

constexpr absl::Duration kObservePeriod = absl::Milliseconds(100);
constexpr uint64_t kMaxFailuresInARow = 100;

// Times are the clock's.
struct Call {
  absl::Duration due;
  absl::Duration sent;
  absl::Duration done;
};

class Load {
 public:
  Load(const LoadOptions& options, const SendRequest& send, LoadClock& clock)
      : concurrency_(options.concurrency),
        send_(send),
        clock_(clock),
        start_(clock.Now()),
        measured_from_(start_ + options.warmup),
        working_(options.concurrency),
        end_(measured_from_ + options.duration) {
    if (options.rate) schedule_.emplace(*options.rate);
  }

  LoadResult Run(const std::function<void(const LoadProgress&)>& observe)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::thread> workers;
    for (uint32_t i = 0; i < concurrency_; ++i) workers.emplace_back(&Load::Work, this);
    // The waits end every 100 ms for the progress, and at once with the last worker.
    while (!AwaitWorkers()) {
      if (observe) observe(Progress());
    }
    for (std::thread& worker : workers) worker.join();
    absl::MutexLock lock(&mutex_);
    result_.measured = std::max(end_ - measured_from_, absl::ZeroDuration());
    return std::move(result_);
  }

 private:
  struct Turn {
    absl::Duration due;
    bool want_receipt;
  };

  // A worker has one request in flight at a time. One that comes late to a request that was due
  // while all were busy still counts from when it was due.
  void Work() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (const std::optional<Turn> turn = NextTurn()) {
      // Ctrl-C, or the clock was interrupted after too many failures.
      if (!clock_.WaitUntil(turn->due)) Interrupt();
      const absl::Duration sent = clock_.Now();
      // The load ended while this worker waited for its turn.
      if (IsOver(sent)) {
        RecordUnsent(turn->due);
        continue;
      }
      const absl::StatusOr<Response> response = send_(turn->want_receipt);
      const Call call = {.due = turn->due, .sent = sent, .done = clock_.Now()};
      if (response.ok()) {
        RecordAnswer(call, *response);
      } else {
        RecordFailure(call, response.status());
      }
    }
    absl::MutexLock lock(&mutex_);
    --working_;
  }

  // The next request; nothing if none is due before the end.
  std::optional<Turn> NextTurn() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    // Turns are taken under the lock, so the schedule is one sequence for all workers.
    const absl::Duration due = schedule_ ? start_ + schedule_->Next() : clock_.Now();
    if (due >= end_) return std::nullopt;
    const bool want_receipt = due >= measured_from_ && measured_turns_++ % kReceiptEvery == 0;
    return Turn{.due = due, .want_receipt = want_receipt};
  }

  bool IsOver(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return now >= end_;
  }

  void EndNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { end_ = std::min(end_, clock_.Now()); }

  void Interrupt() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    // Giving up interrupts the clock as well, which is not the user's doing.
    result_.was_interrupted = !result_.gave_up;
    EndNow();
  }

  void RecordUnsent(absl::Duration due) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    // In a closed loop a request is due when it is sent, so none remains unsent.
    if (!schedule_ || due < measured_from_ || due >= end_) return;
    ++result_.unsent;
    // At least so long; without these the slowest requests would not count at all.
    result_.latency.Record(end_ - due);
  }

  void RecordAnswer(const Call& call, const Response& response) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    failures_in_a_row_ = 0;
    ++progress_.answered;
    if (call.done >= measured_from_ && call.done < end_) {
      ++result_.answers_in_time;
      for (const Result& result : response.results) result_.received_bytes += result.num_bytes();
    }
    // Requests of the warm-up count in no result but the progress.
    if (call.due < measured_from_) return;
    ++result_.answered;
    result_.latency.Record(call.done - call.due);
    if (response.receipt) RecordReceipt(call, *response.receipt);
  }

  void RecordReceipt(const Call& call, const v1::Receipt& receipt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ReceiptSums& sums = result_.receipts;
    ++sums.count;
    for (size_t i = 0; i < kReceiptStages.size(); ++i) {
      sums.stages_ns[i] += (receipt.*kReceiptStages[i].time_ns)();
    }
    sums.total_ns += receipt.total_ns();
    // From the sending, unlike latency: a receipt tells nothing of the wait before.
    sums.call_ns += absl::ToInt64Nanoseconds(call.done - call.sent);
  }

  void RecordFailure(const Call& call, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++progress_.failed;
    LoadError& error = ErrorLike(status);
    ++error.count;
    if (call.due < measured_from_) ++error.in_warmup;
    // Refusals for overload are a finding, not a reason to give up.
    failures_in_a_row_ = error.is_refusal ? 0 : failures_in_a_row_ + 1;
    if (failures_in_a_row_ < kMaxFailuresInARow) return;
    result_.gave_up = true;
    EndNow();
    // Workers that wait for their turn wake up and end.
    clock_.Interrupt();
  }

  LoadError& ErrorLike(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
    const std::string reason = detail ? detail->reason() : "";
    std::vector<LoadError>& errors = result_.errors;
    const auto known = std::find_if(errors.begin(), errors.end(), [&](const LoadError& error) {
      return error.first.code() == status.code() && error.reason == reason;
    });
    if (known != errors.end()) return *known;
    return errors.emplace_back(
        LoadError{.first = status, .reason = reason, .is_refusal = IsOverloadRefusal(status)});
  }

  // False: some still work, and it is time to tell how far they are.
  bool AwaitWorkers() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto have_ended = [](uint32_t* working) { return *working == 0; };
    return mutex_.AwaitWithTimeout(absl::Condition(+have_ended, &working_), kObservePeriod);
  }

  LoadProgress Progress() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    LoadProgress progress = progress_;
    progress.share = std::clamp(
        absl::FDivDuration(clock_.Now() - start_, std::max(end_ - start_, absl::Nanoseconds(1))),
        0.0, 1.0);
    return progress;
  }

  const uint32_t concurrency_;
  const SendRequest& send_;
  LoadClock& clock_;
  const absl::Duration start_;
  const absl::Duration measured_from_;

  absl::Mutex mutex_;
  uint32_t working_ ABSL_GUARDED_BY(mutex_);    // workers
  absl::Duration end_ ABSL_GUARDED_BY(mutex_);  // moves to the present if the load ends early
  std::optional<ArrivalSchedule> schedule_ ABSL_GUARDED_BY(mutex_);
  uint64_t measured_turns_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failures_in_a_row_ ABSL_GUARDED_BY(mutex_) = 0;
  LoadProgress progress_ ABSL_GUARDED_BY(mutex_);
  LoadResult result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

bool IsOverloadRefusal(const absl::Status& status) {
  const Reason reason = ErrorReasonOf(status);
  // Never to be repeated, as the deadline will have passed; with a new one it may succeed.
  if (reason == Reason::kDeadlineInfeasible) return true;
  return RetryPushbackOf(status) != absl::InfiniteDuration() &&
         FactsOf(reason).passing == Passing::kOverload;
}

LoadResult RunLoad(const LoadOptions& options, const SendRequest& send, LoadClock& clock,
                   const std::function<void(const LoadProgress&)>& observe) {
  return Load(options, send, clock).Run(observe);
}

}  // namespace opserve::cli
