// One step of an upload or a download, on the device that has the tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/scheduling/lane_task.h"
#include "server/scheduling/retry_pushback.h"

namespace opserve::server {

class TransferTask final : public LaneTask {
 public:
  // Copies, on a thread of the device. Not called if the call was cancelled or its deadline passed.
  using Step = std::function<absl::Status(LaneContext& lane)>;
  // Called once, unless Submit refused the task, on a thread of the device or the one that
  // cancelled; `status` is the step's, or why it was not taken. Must not block.
  using Done = std::function<void(const absl::Status& status)>;

  // `ends_request`: as LaneTask::ends_request.
  TransferTask(std::shared_ptr<CallState> call, int32_t device, const TaskDemand& demand,
               bool ends_request, Step step, Done done)
      : LaneTask(std::move(call), device, demand),
        ends_request_(ends_request),
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
  bool ends_request() const override { return ends_request_; }
  void Answer() override { done_(status_); }
  void Refuse(const absl::Status& status) override { done_(status); }

 private:
  const bool ends_request_;
  const Step step_;
  const Done done_;
  absl::Status status_;
};

}  // namespace opserve::server
