// How deposits of resident tensors and prepared programs end, on both sides, and what the receiver
// holds.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "server/observability/metrics.h"

namespace opserve::server {

// Thread-safe.
class DepositMetrics {
 public:
  enum Direction { kIn, kOut };  // other daemons' tensors that come here, and this one's that go
  static constexpr size_t kDirections = 2;
  // How a tensor ended. Of those that go each ends once, when the daemon has done with it.
  enum Result {
    kMoved,        // the receiver has it
    kRefused,      // the receiver may not take it, or has no room
    kLost,         // a batch that broke off (in); no time or no connection (out)
    kUnconfirmed,  // out: it was committed, and no answer came; the receiver has it, or nobody
  };
  static constexpr size_t kResults = 4;
  static const char* ResultName(size_t result);

  void Record(Direction direction, Result result, uint64_t tensors = 1) {
    tensors_[direction][result].fetch_add(tensors, std::memory_order_relaxed);
  }
  // A prepared program; none is kUnconfirmed.
  void RecordProgram(Direction direction, Result result) {
    programs_[direction][result].fetch_add(1, std::memory_order_relaxed);
  }
  // Of tensors that were moved.
  void AddBytes(Direction direction, uint64_t bytes) {
    bytes_[direction].fetch_add(bytes, std::memory_order_relaxed);
  }
  // Bytes of tensors that were accepted and are not committed.
  void Hold(uint64_t bytes) { held_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void LetGo(uint64_t bytes) { held_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  std::array<std::array<std::atomic<uint64_t>, kResults>, kDirections> tensors_ = {};
  std::array<std::array<std::atomic<uint64_t>, kResults>, kDirections> programs_ = {};
  std::array<std::atomic<uint64_t>, kDirections> bytes_ = {};
  std::atomic<uint64_t> held_bytes_ = 0;
};

}  // namespace opserve::server
