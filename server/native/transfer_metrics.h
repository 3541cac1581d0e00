// How uploads and downloads of resident tensors end, and what downloads hold.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/observability/metrics.h"

namespace opserve::server {

// Thread-safe.
class TransferMetrics {
 public:
  void RecordUpload(const absl::Status& end) { Record(end, &uploads_); }
  void RecordDownload(const absl::Status& end) { Record(end, &downloads_); }

  // Bytes of contents that a download keeps until they are copied.
  void Hold(uint64_t bytes) { held_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void LetGo(uint64_t bytes) { held_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  enum Result { kComplete, kStalled, kCancelled, kExpired, kRefused, kResults };
  using Ends = std::array<std::atomic<uint64_t>, kResults>;

  static void Record(const absl::Status& end, Ends* ends);
  static prometheus::MetricFamily Count(const char* name, const char* help, const Ends& ends);

  Ends uploads_ = {};
  Ends downloads_ = {};
  std::atomic<uint64_t> held_bytes_ = 0;
};

}  // namespace opserve::server
