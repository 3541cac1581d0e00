// Books device memory for work that follows, in the turn of a task: it waits in the device's queue
// until its tenant may have the memory, and does nothing with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "server/schedule/lanes/lane_task.h"

namespace opserve::server {

class BookingTask final : public LaneTask {
 public:
  // Each to be kept until its part is not needed any more; before the queue goes.
  struct Booked {
    std::shared_ptr<void> first;
    std::shared_ptr<void> second;
  };
  // Called once, unless Submit refused the task: with the bookings, or an error. On a
  // thread of the device or the one that cancelled; must not block.
  using Done = std::function<void(absl::StatusOr<Booked> booked)>;

  struct Parts {
    uint64_t first_bytes = 0;
    uint64_t second_bytes = 0;
  };
  // `uses_residents`: as LaneTask::uses_residents, of the work that follows.
  BookingTask(std::shared_ptr<CallState> call, int32_t device, const Parts& parts,
              TaskDemand demand, bool uses_residents, Done done)
      : LaneTask(std::move(call), device, WithParts(demand, parts)),
        parts_(parts),
        uses_residents_(uses_residents),
        done_(std::move(done)) {}

  bool Queue(LaneContext& /*lane*/) override { return true; }
  bool IsOver() const override { return true; }
  void Finish() override {}
  bool uses_residents() const override { return uses_residents_; }
  bool ends_request() const override { return false; }
  void KeepMemory(Keep keep) override {
    booked_ = {.first = keep(parts_.first_bytes), .second = keep(parts_.second_bytes)};
  }
  void Answer() override { done_(std::move(booked_)); }
  void Refuse(const absl::Status& status) override { done_(status); }

 private:
  static TaskDemand WithParts(TaskDemand demand, const Parts& parts) {
    demand.must_hold = true;
    demand.device_bytes = parts.first_bytes + parts.second_bytes;
    return demand;
  }

  const Parts parts_;
  const bool uses_residents_;
  const Done done_;
  Booked booked_;
};

}  // namespace opserve::server
