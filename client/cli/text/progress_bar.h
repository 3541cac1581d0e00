// How far something has come, for people.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/text/output.h"

namespace opserve::cli {

// A line on standard error that is written over as a transfer or a measurement proceeds, and erased
// at its end. Shown only if standard error is a terminal, and only for operations of more than a
// second.
class ProgressBar {
 public:
  // `what`: names the operation ("upload"), under way since `start`. `terminal` outlives the bar.
  ProgressBar(Terminal& terminal, std::string what, absl::Time start);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Tells that at `now` `done_bytes` of `total_bytes` are moved. Most calls write nothing: more
  // than ten updates a second cannot be read.
  void Update(uint64_t done_bytes, uint64_t total_bytes, absl::Time now);

  // The same for an operation of which `share`, 0 to 1, is done; `facts` are shown beside it.
  void Update(double share, absl::string_view facts, absl::Time now);

 private:
  bool IsDue(absl::Time now) const { return terminal_.err_is_terminal && now >= next_; }
  std::string Line(double share, absl::string_view facts) const;

  Terminal& terminal_;
  const std::string what_;
  const absl::Time start_;
  absl::Time next_;  // when the line is due
  bool is_shown_ = false;
};

}  // namespace opserve::cli
