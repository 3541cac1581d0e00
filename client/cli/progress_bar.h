// How far a transfer has come, for people.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/cli/output.h"

namespace opserve::cli {

// A line on standard error that is written over as the transfer proceeds, and erased at its end.
// Shown only if standard error is a terminal, and only of transfers that take more than a second.
class ProgressBar {
 public:
  // `what` is what goes on ("upload"), since `start`. `terminal` outlives the bar.
  ProgressBar(Terminal& terminal, std::string what, absl::Time start);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Tells that at `now` `done_bytes` of `total_bytes` are moved. Most calls write nothing: what
  // changes faster than ten times a second, nobody reads.
  void Update(uint64_t done_bytes, uint64_t total_bytes, absl::Time now);

 private:
  std::string Line(uint64_t done_bytes, uint64_t total_bytes, absl::Time now) const;

  Terminal& terminal_;
  const std::string what_;
  const absl::Time start_;
  absl::Time next_;  // when the line is due
  bool is_shown_ = false;
};

}  // namespace opserve::cli
