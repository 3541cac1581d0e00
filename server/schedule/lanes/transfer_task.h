// One step of an upload, a download or a move, on the device that has the tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/schedule/lanes/lane_task.h"
#include "server/schedule/policy/retry_pushback.h"

namespace opserve::server {

class TransferTask final : public LaneTask {
 public:
  // Copies, on a thread of the device. Not called if the call was cancelled or its deadline passed.
  using Step = std::function<absl::Status(LaneContext& lane)>;
  // Called once, unless Submit refused the task, on a thread of the device or the one that
  // cancelled; `status` is the step's, or why it was not taken. Must not block.
  using Done = std::function<void(const absl::Status& status)>;

  struct Kind {
    bool uses_residents = false;  // as LaneTask::uses_residents
    bool ends_request = false;    // as LaneTask::ends_request
  };
  TransferTask(std::shared_ptr<CallState> call, int32_t device, const TaskDemand& demand, Kind kind,
               Step step, Done done)
      : LaneTask(std::move(call), device, demand),
        kind_(kind),
        step_(std::move(step)),
        done_(std::move(done)) {}

  // Copies are over when they return.
  bool Queue(LaneContext& lane) override {
    status_ = call()->Check();
    if (status_.ok()) status_ = WithPushback(step_(lane), lane.drain_time);
    return true;
  }
  bool IsOver() const override { return true; }
  void Finish() override {}
  bool uses_residents() const override { return kind_.uses_residents; }
  bool ends_request() const override { return kind_.ends_request; }
  void Answer() override { done_(status_); }
  void Refuse(const absl::Status& status) override { done_(status); }

 private:
  const Kind kind_;
  const Step step_;
  const Done done_;
  absl::Status status_;
};

}  // namespace opserve::server
