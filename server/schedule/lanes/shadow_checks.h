// Runs a part of the requests a second time, on another device, and compares the results bit for
// bit: a device that computes wrong without knowing it gives itself away.
//
// A check delays no request. It begins after the answer was sent, on a device where nothing waits
// and a lane is free, one check at a time; it hardly waits for memory; it is on no tenant's
// account. Where that cannot be, it is skipped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/metric_family.h"
#include "proto/codec/payloads.h"
#include "server/program/program.h"
#include "server/schedule/lanes/scheduler.h"
#include "server/schedule/policy/task_demand.h"

namespace opserve::server {

// Thread-safe.
class ShadowChecks {
 public:
  // `operators`: the catalogue's names. `ratio`: of the requests that are checked, from 0 to 1.
  // Outlives the scheduler's devices, but for Stop.
  ShadowChecks(Scheduler& scheduler, std::vector<std::string> operators, double ratio);

  // Whether a request is to be checked: drawn at random.
  bool Draw() const;

  // A request that has been answered.
  struct Answered {
    codec::PayloadMessage message;
    ProgramCall program;
    TaskDemand demand;  // which it had
    int32_t device = 0;
    std::vector<absl::string_view>
        results;  // their bytes, in the program's order; until Check ends
  };
  // Never waits for the check. One that differs is logged.
  void Check(Answered request) ABSL_LOCKS_EXCLUDED(mutex_);

  // No check begins any more; the scheduler may go.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes no lock.
  prometheus::MetricFamily Collect() const;

 private:
  enum class Result { kMatch, kMismatch, kSkipped };
  static constexpr size_t kResults = 3;
  struct Repetition;

  size_t OperatorOf(const Program& program) const;
  void Count(size_t op, Result result) {
    counts_[op][static_cast<size_t>(result)].fetch_add(1, std::memory_order_relaxed);
  }
  void End(const Repetition& repetition, const absl::Status& status);

  Scheduler& scheduler_;
  const double ratio_;
  const std::vector<std::string> operators_;                         // then "program"
  std::vector<std::array<std::atomic<uint64_t>, kResults>> counts_;  // by operator
  std::atomic<bool> is_checking_ = false;
  absl::Mutex mutex_;  // held while a check is begun, so that Stop waits for that
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opserve::server
