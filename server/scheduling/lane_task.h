// Something that has to run on a lane of a device: a program, or a copy of a resident tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "server/execution/call_state.h"
#include "server/execution/lane_context.h"
#include "server/scheduling/task_demand.h"

namespace opserve::server {

// Either Run (or Start and Finish) and then Answer are called, or Refuse, each once; the task is
// destroyed after it.
class LaneTask {
 public:
  // `device`: the only device the task can run on, if its data is there.
  LaneTask(std::shared_ptr<CallState> call, std::optional<int32_t> device, const TaskDemand& demand)
      : call_(std::move(call)), device_(device), demand_(demand) {}
  virtual ~LaneTask() = default;
  LaneTask(const LaneTask&) = delete;
  LaneTask& operator=(const LaneTask&) = delete;

  // Does the work on a thread of the device and keeps its result; may wait for nothing but the
  // device and its memory. Leaves the lane idle, or its device not ready.
  virtual void Run(LaneContext& lane) = 0;
  // Run in two steps, for tasks that are prompt: small, and known to be over soon. Start waits for
  // nothing; false if that cannot be, and then nothing has happened and the task wants Run. Finish
  // waits for the device unless IsOver, and may be called on another thread.
  virtual bool is_prompt() const { return false; }
  virtual bool Start(LaneContext& /*lane*/) { return false; }
  virtual bool IsOver() const { return false; }
  virtual void Finish() {}

  // Tells whoever waits, when the task has been counted as ended. Must not block.
  virtual void Answer() = 0;
  // Ends the task without running it: it was cancelled while queued, or its device broke and no
  // other can take it. Must not block.
  virtual void Refuse(const absl::Status& status) = 0;

  const std::shared_ptr<CallState>& call() const { return call_; }
  std::optional<int32_t> device() const { return device_; }
  const TaskDemand& demand() const { return demand_; }

 private:
  const std::shared_ptr<CallState> call_;
  const std::optional<int32_t> device_;
  const TaskDemand demand_;
};

}  // namespace opserve::server
