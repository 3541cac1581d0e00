// A device with one lane, for tests that run programs without a daemon.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/device/device.h"
#include "server/device/stream_lane.h"
#include "server/program/tensor_view.h"
#include "server/run/golden_values.h"
#include "server/run/plan_cache.h"
#include "server/run/program_runner.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {

class LaneFixture : public ::testing::Test {
 protected:
  void SetUp() override { Open({.max_bytes = 0, .decay = absl::Seconds(10)}); }

  void Open(const DeviceMemoryPool::Options& pool) {
    plans_.reset();
    lane_.reset();
    device_.reset();
    device_ = std::make_unique<Device>(acl_, 0, pool);
    ASSERT_TRUE(device_->Open().ok());
    ASSERT_TRUE(device_->Transition(DeviceState::kStarting, DeviceState::kReady));
    lane_ = *StreamLane::Create(*device_, 0);
    plans_ = std::make_unique<PlanCache>(acl_, 8, counters_);
  }

  void TearDown() override {
    ClearFaults();
    plans_.reset();
    lane_.reset();
    EXPECT_EQ(device_->memory().statistics().allocated_bytes, 0u);
    device_.reset();
    pinned_->Close();
    EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), 0);
    EXPECT_EQ(HostCount(OPSERVE_HOST_TENSORS), 0);
  }

  LaneContext context() { return {*lane_, *plans_, *pinned_, limits_, timeout_}; }

  // L1LossBackward of `count` FLOATs from payloads 0 to 2; the result is all ones for Payloads.
  static ProgramCall CallOf(Program program) {
    ProgramCall call;
    call.program = std::make_shared<const Program>(std::move(program));
    return call;
  }

  Program OnesProgram(int64_t count) {
    Program program;
    BoundInvocation& invocation = program.invocations.emplace_back();
    invocation.op = operators_.Find("L1LossBackward");
    for (uint32_t i = 0; i < 3; ++i) {
      BoundInput& input = invocation.inputs.emplace_back();
      ViewWhole({v1::DATA_TYPE_FLOAT, {count}}, &input);
      input.source = PayloadSource{i};
    }
    invocation.attributes = {int64_t{2}};
    invocation.input_ends = {1, 2, 3};
    invocation.outputs.push_back({.spec = {v1::DATA_TYPE_FLOAT, {count}}, .is_result = true});
    invocation.output_ends = {1};
    program.results = {{.source = {0, 0}}};
    program.input_bytes = 3 * count * sizeof(float);
    program.ComputeFacts(std::vector<uint64_t>(3, count * sizeof(float)));
    return program;
  }

  // grad_output 1, self 3, target 2 in every element.
  std::vector<codec::Payload> Payloads(int64_t count) {
    std::vector<codec::Payload> payloads;
    for (float value : {1.0f, 3.0f, 2.0f}) {
      const auto& values =
          *values_.emplace_back(std::make_unique<std::vector<float>>(count, value));
      const auto* bytes = reinterpret_cast<const char*>(values.data());
      payloads.push_back({count * sizeof(float), {{bytes, count * sizeof(float)}}});
    }
    return payloads;
  }

  absl::StatusOr<ProgramResult> RunOnes(int64_t count, const CallState& call) {
    StageClock clock;
    LaneContext lane = context();
    return RunProgram(CallOf(OnesProgram(count)), Payloads(count), call, /*tenant=*/0, lane, clock);
  }
  absl::StatusOr<ProgramResult> RunOnes(int64_t count) {
    const CallState call(absl::Now() + absl::Seconds(60));
    return RunOnes(count, call);
  }

  static bool IsAllOnes(const absl::StatusOr<ProgramResult>& result, size_t count) {
    if (!result.ok() || result->outputs.size() != 1) return false;
    const PinnedBuffer& data = result->outputs[0].data;
    if (data.size() != count * sizeof(float)) return false;
    const auto* values = static_cast<const float*>(data.data());
    return std::all_of(values, values + count, [](float value) { return value == 1.0f; });
  }

  AclLibrary& acl_ = MutableTestAcl();
  const OperatorTable operators_{acl_};
  PlanCacheCounters counters_{operators_.operators().size()};
  const std::shared_ptr<PinnedPool> pinned_ =
      PinnedPool::Create(acl_, 32 << 20, /*allow_host_fallback=*/false);
  WorkspaceLimits limits_;
  absl::Duration timeout_ = absl::Seconds(60);
  std::vector<std::unique_ptr<std::vector<float>>> values_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<StreamLane> lane_;
  std::unique_ptr<PlanCache> plans_;
};

}  // namespace opserve::server
