#include "server/observability/request_log.h"

#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "proto/status/error.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

double InSeconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

// Whether the daemon or a device failed, and not the caller, its deadline or a limit.
bool IsFault(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

nlohmann::ordered_json StagesOf(const StageClock& clock) {
  nlohmann::ordered_json stages;
  for (int stage = 0; stage < kStages; ++stage) {
    stages[std::string(kStageNames[stage])] =
        InSeconds(clock.nanoseconds(static_cast<Stage>(stage)));
  }
  stages["total"] = InSeconds(clock.total_nanoseconds());
  return stages;
}

void AddError(const absl::Status& status, nlohmann::ordered_json* line) {
  (*line)["error"] = Shortened(status.message(), kMaxErrorBytes);
  const auto detail = ErrorDetailOf(status);
  if (!detail) return;
  if (!detail->reason().empty()) (*line)["reason"] = detail->reason();
  if (detail->aclnn_status() != 0) (*line)["aclnn_status"] = detail->aclnn_status();
}

void AddDetails(const RequestDetails& details, nlohmann::ordered_json* line) {
  (*line)["program"] = details.program;
  // A request that failed has no lane to tell.
  if (!details.lane) return;
  (*line)["lane"] = *details.lane;
  (*line)["plan_misses"] = details.plan_misses;
  (*line)["device_memory_bytes"] = details.device_memory_bytes;
  (*line)["pool_outcome"] = details.pool_outcome;
}

nlohmann::ordered_json LineOf(const LoggedRequest& request) {
  nlohmann::ordered_json line = {{"trace_id", request.trace.TraceId()},
                                 {"span_id", request.trace.SpanId()}};
  if (request.trace.parent != 0) line["parent_span_id"] = request.trace.ParentId();
  if (request.tenant) line["tenant"] = std::string(request.tenant_name);
  if (!request.op.empty()) line["operator"] = std::string(request.op);
  if (request.device) line["device"] = *request.device;
  line["code"] = absl::StatusCodeToString(request.status.code());
  if (!request.status.ok()) AddError(request.status, &line);
  if (request.details != nullptr) AddDetails(*request.details, &line);
  line["request_bytes"] = request.request_bytes;
  line["response_bytes"] = request.response_bytes;
  line["seconds"] = StagesOf(request.clock);
  return line;
}

}  // namespace

void RequestLog::SetOptions(const RequestLogOptions& options) {
  slow_ns_.store(absl::ToInt64Nanoseconds(options.slow), std::memory_order_relaxed);
  sample_one_in_.store(options.sample_one_in, std::memory_order_relaxed);
  lines_per_second_.store(options.lines_per_second, std::memory_order_relaxed);
}

RequestLog::Kind RequestLog::KindOf(const TraceContext& trace, const absl::Status& status,
                                    const StageClock& clock) const {
  if (!status.ok()) return IsFault(status.code()) ? Kind::kFault : Kind::kRefusal;
  const int64_t slow_ns = slow_ns_.load(std::memory_order_relaxed);
  if (slow_ns > 0 && clock.total_nanoseconds() >= slow_ns) return Kind::kSlow;
  // By the trace, so that all daemons on its way choose the same ones; its low half is random.
  const uint32_t one_in = sample_one_in_.load(std::memory_order_relaxed);
  return one_in > 0 && trace.trace_low % one_in == 0 ? Kind::kSample : Kind::kUnwanted;
}

bool RequestLog::Wants(const TraceContext& trace, const absl::Status& status,
                       const StageClock& clock) const {
  return KindOf(trace, status, clock) != Kind::kUnwanted;
}

void RequestLog::Record(const LoggedRequest& request, absl::Time now) {
  const Kind kind = KindOf(request.trace, request.status, request.clock);
  if (kind == Kind::kUnwanted) return;
  const LogSeverity level = kind == Kind::kFault  ? LogSeverity::kError
                            : kind == Kind::kSlow ? LogSeverity::kWarning
                                                  : LogSeverity::kInfo;
  // Requests without a known tenant share limits, so that they crowd out no tenant's.
  Limits& limits = limits_[request.tenant ? TenantSlot(*request.tenant) : kNobody];
  // Clients can cause refusals at will. Faults have limits of their own, so that refusals cannot
  // displace them.
  LineLimiter& limiter = kind == Kind::kFault ? limits.faults : limits.others;
  const absl::Duration interval =
      absl::Seconds(1) / lines_per_second_.load(std::memory_order_relaxed);
  if (!limiter.Admit(level, now, interval)) return;
  limiter.Write(level,
                kind == Kind::kSlow     ? "request_slow"
                : kind == Kind::kSample ? "request_sampled"
                                        : "request_failed",
                LineOf(request), interval);
}

}  // namespace opserve::server
