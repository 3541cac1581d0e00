// How many requests of a session may leave their results in device memory until they have been
// sent: a client that reads slowly must not have all of its tenant's memory so.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace opserve::server {

// Thread-safe.
class HeldLimit {
  using Taken = std::shared_ptr<std::atomic<int>>;

 public:
  // Enough for results to follow one another without a pause; those of further requests are copied
  // to host memory when their runs end, where each connection has its share (PinnedZones).
  static constexpr int kMost = 8;

  // One of the places, free again with its end. May outlive the limit.
  class Place {
   public:
    explicit Place(Taken taken) : taken_(std::move(taken)) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { taken_->fetch_sub(1, std::memory_order_relaxed); }

   private:
    const Taken taken_;
  };

  // Null: all are taken.
  std::unique_ptr<Place> TryTake() {
    if (taken_->fetch_add(1, std::memory_order_relaxed) < kMost) {
      return std::make_unique<Place>(taken_);
    }
    taken_->fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }

 private:
  const Taken taken_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace opserve::server
