// Puts a load on a daemon, and measures it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bench/load_clock.h"
#include "client/cli/text/latency_histogram.h"
#include "client/cli/text/result_report.h"
#include "client/cpp/request.h"

namespace opserve::cli {

// One of so many measured requests asks for its receipt.
inline constexpr uint64_t kReceiptEvery = 16;

struct LoadOptions {
  // Requests in flight, at least 1: with a rate at most so many, without always.
  uint32_t concurrency = 1;

  // Requests that are due in a second, above 0. Nothing: each request is due when one has ended.
  std::optional<double> rate = std::nullopt;

  absl::Duration warmup = absl::Seconds(1);     // before anything is measured
  absl::Duration duration = absl::Seconds(10);  // of the measurement
};

// Makes a request and waits for its outcome. Thread-safe.
using SendRequest = std::function<absl::StatusOr<Response>(bool want_receipt)>;

// Requests that failed with the same code for the same reason, in the warm-up and after it.
struct LoadError {
  absl::Status first = {};  // the first of them
  std::string reason = {};  // ErrorDetail::reason
  bool is_refusal = false;  // see IsOverloadRefusal
  uint64_t count = 0;       // all
  uint64_t in_warmup = 0;   // of those
};

// Means are these sums, in nanoseconds, divided by `count`.
struct ReceiptSums {
  uint64_t count = 0;
  std::array<int64_t, kReceiptStages.size()> stages_ns = {};
  int64_t total_ns = 0;  // of all stages
  int64_t call_ns = 0;   // from sending the request to having its answer
};

struct LoadResult {
  absl::Duration measured;       // how long; less than options.duration if the load ended early
  bool was_interrupted = false;  // by the user
  bool gave_up = false;          // nothing but failures

  // Requests that were due in the measured time and succeeded, whenever that was. Those that failed
  // are in `errors`.
  uint64_t answered = 0;

  // Requests that were due in the measured time and never sent: as many as may be were in flight,
  // or the load ended early. Only with a rate.
  uint64_t unsent = 0;

  // Answers that came in the measured time, no matter when their requests were sent.
  uint64_t answers_in_time = 0;
  uint64_t received_bytes = 0;  // tensors of those answers

  // From when a request was due, sent then or later, to its answer; of the unsent ones, to the end
  // of the measured time, which they would have exceeded. Failures are not in it.
  LatencyHistogram latency;

  ReceiptSums receipts;
  std::vector<LoadError> errors;  // in the order in which they were first seen
};

struct LoadProgress {
  double share = 0;  // of the time, warm-up included: 0 to 1
  uint64_t answered = 0;
  uint64_t failed = 0;  // refused ones included
};

// Whether the daemon refused the request only because it had too much to do, so that the same one
// can succeed later: for rate_limited, queue_full, tenant_queue_full, tenant_memory, device_memory,
// work_limit or deadline_infeasible.
bool IsOverloadRefusal(const absl::Status& status);

// Loads the daemon from as many threads as there may be requests in flight, and waits for the
// answer to everything that was sent. Ends early when `clock` says so, and when 100 requests in a
// row have failed that were not refused for overload: the daemon is gone, or takes none of them;
// `clock` is then interrupted.
// `observe`, which may be empty, is called from this thread a few times a second.
LoadResult RunLoad(const LoadOptions& options, const SendRequest& send, LoadClock& clock,
                   const std::function<void(const LoadProgress&)>& observe);

}  // namespace opserve::cli
