// How far an upload or a download has come, for people.
#pragma once

#include <cstdint>

#include "absl/time/clock.h"
#include "client/cli/text/progress_bar.h"
#include "client/cpp/transfer_options.h"

namespace opserve::cli {

// Shows a transfer on `bar`, which outlives it.
inline TransferProgress ShowOn(ProgressBar& bar) {
  return [&bar](uint64_t done_bytes, uint64_t total_bytes) {
    bar.Update(done_bytes, total_bytes, absl::Now());
  };
}

}  // namespace opserve::cli
