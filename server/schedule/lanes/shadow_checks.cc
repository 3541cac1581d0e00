#include "server/schedule/lanes/shadow_checks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/tenant_slot.h"
#include "server/run/program_runner.h"
#include "server/schedule/lanes/transfer_task.h"

namespace opserve::server {
namespace {

constexpr const char* kResultNames[] = {"match", "mismatch", "skipped"};
// For a lane that was free a moment ago, and then for memory and the copies to the device.
constexpr absl::Duration kQueuePatience = absl::Seconds(1);
constexpr absl::Duration kMemoryPatience = absl::Seconds(1);

// False if its memory, on a device or of the client, may have changed since the first run.
bool CanBeRepeated(const ProgramCall& call) {
  return call.residents.empty() && call.apart.empty() && call.windows.empty() &&
         !call.program->has_effects();
}

}  // namespace

struct ShadowChecks::Repetition {
  codec::PayloadMessage message;
  ProgramCall program;
  size_t op;
  int32_t first_device;
  int32_t device;
  std::vector<std::string> expected;
  bool is_equal = false;

  // On a lane of the other device.
  absl::Status Run(LaneContext& lane) {
    // It may have come out since that the device computes an operator wrong: no news then.
    if (const LoadedOperator* missing = program.program->MissingOn(device)) {
      return missing->CheckOfferedBy(device);
    }
    const CallState call(absl::Now() + kMemoryPatience);
    StageClock clock;
    OPSERVE_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(program, message.payloads(),
                                                                    call, kNobodysId, lane, clock));
    is_equal =
        std::equal(result.outputs.begin(), result.outputs.end(), expected.begin(), expected.end(),
                   [](const ProgramResult::Output& output, const std::string& bytes) {
                     return output.data.size() == bytes.size() &&
                            std::memcmp(output.data.data(), bytes.data(), bytes.size()) == 0;
                   });
    return absl::OkStatus();
  }
};

ShadowChecks::ShadowChecks(Scheduler& scheduler, std::vector<std::string> operators, double ratio)
    : scheduler_(scheduler),
      ratio_(ratio),
      operators_([&] {
        operators.push_back("program");
        return std::move(operators);
      }()),
      counts_(operators_.size()) {}

bool ShadowChecks::Draw() const {
  if (ratio_ <= 0) return false;
  // Of each thread, so that no lock is needed.
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_real_distribution<double>()(random) < ratio_;
}

size_t ShadowChecks::OperatorOf(const Program& program) const {
  return static_cast<size_t>(
      program.operator_index().value_or(static_cast<int>(operators_.size()) - 1));
}

void ShadowChecks::Check(Answered request) {
  const Program& program = *request.program.program;
  const size_t op = OperatorOf(program);
  absl::MutexLock lock(&mutex_);
  if (is_stopped_) return;
  const DeviceService* other =
      CanBeRepeated(request.program) ? scheduler_.IdleDevice(request.device, program) : nullptr;
  // One check at a time: the exchange comes last, so that a refusal does not hold it.
  if (other == nullptr || is_checking_.exchange(true)) {
    Count(op, Result::kSkipped);
    return;
  }
  // On no tenant's account, and behind all requests.
  const TaskDemand demand{.tenant = kNobodysId,
                          .priority = Priority::kLow,
                          .cost = request.demand.cost,
                          .device_bytes = request.demand.device_bytes,
                          .pinned_bytes = request.demand.pinned_bytes};
  const auto repetition = std::make_shared<Repetition>(
      Repetition{.message = std::move(request.message),
                 .program = std::move(request.program),
                 .op = op,
                 .first_device = request.device,
                 .device = other->device().id(),
                 .expected = {request.results.begin(), request.results.end()}});
  std::unique_ptr<LaneTask> task = std::make_unique<TransferTask>(
      std::make_shared<CallState>(absl::Now() + kQueuePatience), repetition->device, demand,
      TransferTask::Kind(), [repetition](LaneContext& lane) { return repetition->Run(lane); },
      [this, repetition](const absl::Status& status) { End(*repetition, status); });
  // A task that was not taken reports no end.
  if (absl::Status status = scheduler_.Submit(&task); !status.ok()) End(*repetition, status);
}

void ShadowChecks::End(const Repetition& repetition, const absl::Status& status) {
  const Result result = !status.ok()          ? Result::kSkipped
                        : repetition.is_equal ? Result::kMatch
                                              : Result::kMismatch;
  if (result == Result::kMismatch) {
    static LineLimiter lines(LimitedEvent::kShadowMismatch);
    if (lines.Admit(LogSeverity::kError, absl::Now())) {
      lines.Write(LogSeverity::kError, "shadow_mismatch",
                  {{"operator", operators_[repetition.op]},
                   {"device", repetition.first_device},
                   {"other_device", repetition.device}});
    }
  }
  is_checking_.store(false);
  Count(repetition.op, result);
}

void ShadowChecks::Stop() {
  absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
}

prometheus::MetricFamily ShadowChecks::Collect() const {
  MetricFamilyBuilder family(
      "opserve_shadow_checks_total",
      "Requests that were run again on another device (--shadow_check_ratio): the results were the "
      "same bit for bit, or not, so that one of the devices computes wrong; or it was not possible "
      "without being in the way.",
      prometheus::MetricType::Counter);
  for (size_t op = 0; op < operators_.size(); ++op) {
    // Without checks one series tells that there are none. With them each operator has its own from
    // the start: the alert looks at increases.
    if (ratio_ <= 0 && op + 1 < operators_.size()) continue;
    for (size_t result = 0; result < kResults; ++result) {
      family.Add({{"operator", operators_[op]}, {"result", kResultNames[result]}},
                 static_cast<double>(counts_[op][result].load(std::memory_order_relaxed)));
    }
  }
  return family.Build();
}

}  // namespace opserve::server
