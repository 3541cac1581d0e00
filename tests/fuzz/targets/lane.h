// A lane of the host CANN on which targets run programs, and what they may expect of refusals.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "server/device/device.h"
#include "server/device/stream_lane.h"
#include "server/program/program.h"
#include "server/run/plan_cache.h"
#include "server/run/program_runner.h"
#include "tests/fuzz/targets/check.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {

using fuzz::Check;

// A device with one lane; made once, never ended.
class Lane {
 public:
  static Lane& Get() {
    static Lane* const lane = new Lane;
    return *lane;
  }

  const OperatorTable& operators() const { return operators_; }

  absl::StatusOr<ProgramResult> Run(const ProgramCall& program,
                                    absl::Span<const codec::Payload> payloads) {
    const CallState call(absl::InfiniteFuture());
    StageClock clock;
    LaneContext context = {*lane_, *plans_, *pinned_, limits_, absl::Minutes(10)};
    return RunProgram(program, payloads, call, /*tenant=*/0, context, clock);
  }

  void CheckNothingStaysBehind() const {
    Check(device_->memory().statistics().allocated_bytes == 0, "device memory is back");
    Check(device_->state() == DeviceState::kReady, "the device is as it was");
  }

 private:
  Lane() {
    Check(device_->Open().ok(), "the device opens");
    device_->Transition(DeviceState::kStarting, DeviceState::kReady);
    lane_ = *StreamLane::Create(*device_, 0);
    plans_ = std::make_unique<PlanCache>(acl_, /*capacity=*/64, counters_);
  }

  const AclLibrary& acl_ = TestAcl();
  const OperatorTable operators_{acl_};
  PlanCacheCounters counters_{operators_.operators().size()};
  const std::shared_ptr<PinnedPool> pinned_ =
      PinnedPool::Create(acl_, 32 << 20, /*allow_host_fallback=*/false);
  const WorkspaceLimits limits_;
  const std::unique_ptr<Device> device_ = std::make_unique<Device>(
      acl_, 0, DeviceMemoryPool::Options{.max_bytes = 0, .decay = absl::Seconds(10)});
  std::unique_ptr<StreamLane> lane_;
  std::unique_ptr<PlanCache> plans_;
};

inline void CheckIsRefusal(const absl::Status& status) {
  Check(status.code() == absl::StatusCode::kInvalidArgument ||
            status.code() == absl::StatusCode::kFailedPrecondition ||
            status.code() == absl::StatusCode::kNotFound,
        "a refusal is about the request");
  Check(!status.message().empty(), "a refusal says why");
  Check(ErrorDetailOf(status).has_value(), "a refusal has a detail");
}

}  // namespace opserve::server
