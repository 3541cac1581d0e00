// Sessions that are open, what travels in them, and how they end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/observability/metrics.h"

namespace opserve::server {

// Thread-safe.
class SessionMetrics {
 public:
  void RecordBegin() { open_.fetch_add(1, std::memory_order_relaxed); }
  // Once for each that began. kCancelled: it broke.
  void RecordEnd(const absl::Status& status);
  void RecordMessage(uint64_t frames) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    frames_.fetch_add(frames, std::memory_order_relaxed);
  }

  // The payloads of an announced request begin to arrive; OK: all have arrived, or why not. A
  // request that is wrong never begins; one for which there is no memory has failed.
  void RecordArrivalBegin() { arriving_.fetch_add(1, std::memory_order_relaxed); }
  void RecordArrivalEnd(const absl::Status& status);
  // Results begin to leave from device memory; OK: all have been copied, or why not.
  void RecordDepartureBegin() { departing_.fetch_add(1, std::memory_order_relaxed); }
  void RecordDepartureEnd(const absl::Status& status);

  int64_t open() const { return open_.load(std::memory_order_relaxed); }
  int64_t arriving() const { return arriving_.load(std::memory_order_relaxed); }
  int64_t departing() const { return departing_.load(std::memory_order_relaxed); }

  void Collect(std::vector<prometheus::MetricFamily>* families) const;

 private:
  enum Arrival { kArrived, kStalled, kCancelled, kExpired, kFailed, kArrivals };
  enum Departure { kSent, kDropped, kLate, kBrokenOff, kDepartures };
  enum Result { kClosed, kBroken, kProtocol, kDraining, kResults };

  std::atomic<int64_t> open_ = 0;
  std::atomic<uint64_t> messages_ = 0;
  std::atomic<uint64_t> frames_ = 0;
  std::array<std::atomic<uint64_t>, kResults> ends_ = {};
  std::atomic<int64_t> arriving_ = 0;
  std::array<std::atomic<uint64_t>, kArrivals> arrivals_ = {};
  std::atomic<int64_t> departing_ = 0;
  std::array<std::atomic<uint64_t>, kDepartures> departures_ = {};
};

}  // namespace opserve::server
