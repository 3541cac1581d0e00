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
  // The reason in the ErrorDetail of an upload whose client sent too slowly.
  static constexpr char kStalledReason[] = "upload_stalled";

  void RecordEnd(const absl::Status& status);

  prometheus::MetricFamily Collect() const;

 private:
  enum Result { kComplete, kStalled, kCancelled, kExpired, kRefused, kResults };

  std::array<std::atomic<uint64_t>, kResults> ends_ = {};
};

}  // namespace opserve::server
