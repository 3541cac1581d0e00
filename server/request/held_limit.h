// How many requests of a session may leave their results in device memory until they have been
// sent: a client that reads slowly must not have all of its tenant's memory so.
#pragma once

#include <atomic>
#include <memory>

namespace opserve::server {

// Thread-safe. Places may outlive it.
class HeldLimit {
 public:
  // Enough for results to follow one another without a pause; those of further requests are copied
  // to host memory when their runs end, where each connection has its share (PinnedZones).
  static constexpr int kMost = 8;

  // A place, free again when its last owner is gone; null: all are taken.
  std::shared_ptr<void> TryTake() {
    if (taken_->fetch_add(1, std::memory_order_relaxed) >= kMost) {
      taken_->fetch_sub(1, std::memory_order_relaxed);
      return nullptr;
    }
    return {taken_.get(),
            [taken = taken_](void*) { taken->fetch_sub(1, std::memory_order_relaxed); }};
  }

 private:
  const std::shared_ptr<std::atomic<int>> taken_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace opserve::server
