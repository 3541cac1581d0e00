// A task of a simulation in the daemon's queues, which only its simulation runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "server/schedule/lanes/lane_task.h"

namespace opserve::simulation {

class SimulatedTask final : public server::LaneTask {
 public:
  // `number`: the simulation's, of its own account.
  SimulatedTask(uint64_t number, std::shared_ptr<server::CallState> call,
                std::optional<int32_t> device, const server::TaskDemand& demand)
      : LaneTask(std::move(call), device, demand), number_(number) {}

  uint64_t number() const { return number_; }

  bool Queue(server::LaneContext&) override { return true; }
  bool IsOver() const override { return true; }
  void Finish() override {}
  void Answer() override {}
  void Refuse(const absl::Status&) override {}

 private:
  const uint64_t number_;
};

inline uint64_t NumberOf(const std::unique_ptr<server::LaneTask>& task) {
  return static_cast<const SimulatedTask&>(*task).number();
}

}  // namespace opserve::simulation
