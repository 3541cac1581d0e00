// Something that has to run on a lane of a device: a program, or a copy of a resident tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/program/operator_table.h"
#include "server/run/call_state.h"
#include "server/run/lane_context.h"
#include "server/schedule/policy/task_demand.h"

namespace opserve::server {

// Either Queue (until it is true), Finish and Answer are called, or Refuse, each once; the task is
// destroyed after it.
class LaneTask : public QueuedTask {
 public:
  // `device`: the only device the task can run on, if its data is there. A task that learns it or
  // its demand later sets them before it is submitted.
  LaneTask(std::shared_ptr<CallState> call, std::optional<int32_t> device, const TaskDemand& demand)
      : call_(std::move(call)), device_(device), demand_(demand) {}
  LaneTask(const LaneTask&) = delete;
  LaneTask& operator=(const LaneTask&) = delete;

  // An operator of the task that the device does not offer; null: the task may run there.
  virtual const LoadedOperator* MissingOn(int32_t /*device*/) const { return nullptr; }
  // As LoadedOperator::CheckOfferedBy, of the operator that is missing.
  absl::Status CheckOfferedBy(int32_t device) const {
    const LoadedOperator* missing = MissingOn(device);
    return missing == nullptr ? absl::OkStatus() : missing->CheckOfferedBy(device);
  }
  // Whether a thread that has other things to do may take the first half: it is small, and tasks
  // like it were over soon.
  virtual bool is_prompt() const { return false; }
  // The first half of the work: all that the device has to do is queued, on a thread that is bound
  // to it. False: that would have to wait, and must not (LaneContext::may_wait); then nothing has
  // happened, and a thread that may wait calls it again.
  virtual bool Queue(LaneContext& lane) = 0;
  // Whether Finish would not wait for the device.
  virtual bool IsOver() const = 0;
  // The second half, perhaps on another thread that is bound to the device: waits for it and keeps
  // the result. Leaves the lane idle, or its device not ready. The context of Queue is still there.
  virtual void Finish() = 0;

  // Whether it reads or changes resident tensors, so that it is needed even on a device that
  // drains.
  virtual bool uses_residents() const { return false; }
  // Whether a request ends with it. False: more tasks of the same request follow, or the daemon
  // runs it on its own account.
  virtual bool ends_request() const { return true; }

  // After Finish: a task that needs its device memory for longer, since its results stay there
  // (LaneContext::holds_results), calls `keep`, for parts of demand().device_bytes. What that
  // returns keeps a part booked until its last owner is gone, which must be before the queue.
  using Keep = absl::FunctionRef<std::shared_ptr<void>(uint64_t bytes)>;
  virtual void KeepMemory(Keep /*keep*/) {}

  // Gives the caller its answer, when the task has been counted as ended. Must not block.
  virtual void Answer() = 0;
  // Ends the task without running it: it was cancelled while queued, or its device broke and no
  // other can take it. Must not block.
  virtual void Refuse(const absl::Status& status) = 0;

  const std::shared_ptr<CallState>& call() const { return call_; }
  std::optional<int32_t> device() const { return device_; }
  const TaskDemand& demand() const { return demand_; }

 protected:
  void set_call(std::shared_ptr<CallState> call) { call_ = std::move(call); }
  void set_device(std::optional<int32_t> device) { device_ = device; }
  void set_demand(const TaskDemand& demand) { demand_ = demand; }

 private:
  std::shared_ptr<CallState> call_;
  std::optional<int32_t> device_;
  TaskDemand demand_;
};

}  // namespace opserve::server
