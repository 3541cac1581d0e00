// How uploads end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "server/observability/metrics.h"

namespace opserve::server {

// Thread-safe.
class UploadMetrics {
 public:
  void RecordEnd(const absl::Status& status);

  prometheus::MetricFamily Collect() const;

 private:
  enum Result { kComplete, kStalled, kCancelled, kExpired, kRefused, kResults };

  std::array<std::atomic<uint64_t>, kResults> ends_ = {};
};

}  // namespace opserve::server
