#include "ops/host_cann/runtime/options.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The vendor's timer counts whole intervals, 1 to 254.
constexpr uint64_t kMaxIntervals = 254;
// Where 254 intervals are the largest limit and an interval is finer than this, that limit is none.
constexpr uint64_t kCoarseIntervalUs = 100000;
// Differs from 0, which the ABI uses for the largest limit.
constexpr uint64_t kNotSet = UINT64_MAX;

std::atomic<uint64_t> event_wait_limit_us{0};
std::atomic<uint64_t> execution_intervals{kNotSet};  // 0: the largest limit
std::array<std::atomic<int64_t>, kNumSysParamOpts> process_options{};

uint64_t LargestLimitUs() {
  const Settings& settings = Runtime::Get().settings();
  // Products with a largest limit of their own do not derive it from the interval.
  const uint64_t fixed = settings.soc.generation->max_execution_us;
  if (fixed != 0) return fixed;
  const uint64_t interval_us = settings.timeout_interval_us;
  return interval_us < kCoarseIntervalUs ? kNoLimit : kMaxIntervals * interval_us;
}

void SetExecutionLimit(uint64_t timeout_us) {
  const uint64_t interval_us = Runtime::Get().settings().timeout_interval_us;
  // Rounded up without an addition, which could overflow near UINT64_MAX.
  const uint64_t rounded_up = timeout_us / interval_us + (timeout_us % interval_us != 0 ? 1 : 0);
  execution_intervals = std::min(rounded_up, kMaxIntervals);
}

aclError CheckOption(aclSysParamOpt opt, bool process_scope) {
  // The last option exists for the process only.
  const int last = process_scope ? ACL_OPT_ENABLE_KERNEL_EARLY_START : ACL_OPT_STRONG_CONSISTENCY;
  if (opt >= ACL_OPT_DETERMINISTIC && opt <= last) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
              Concat("opt is ", static_cast<int>(opt), ", must be 0 to ", last));
}

aclError CheckOptionValue(aclSysParamOpt opt, int64_t value) {
  // Deterministic computing has levels up to 3; the others are on or off.
  const int64_t largest = opt == ACL_OPT_DETERMINISTIC ? 3 : 1;
  if (value >= 0 && value <= largest) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("value is ", value, ", must be 0 to ", largest));
}

}  // namespace

uint64_t ExecutionLimitUs() {
  const Settings& settings = Runtime::Get().settings();
  const uint64_t intervals = execution_intervals;
  const uint64_t unset = settings.soc.generation->default_execution_us;
  // Before the first call some products have a default below their largest limit.
  if (intervals == kNotSet && unset != 0) return unset;
  if (intervals == kNotSet || intervals == 0) return LargestLimitUs();
  // The product is 254 intervals at most and cannot overflow: settings bound the interval.
  return std::min(intervals * settings.timeout_interval_us, LargestLimitUs());
}

uint64_t EventWaitLimitUs() { return event_wait_limit_us; }

}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckOption(opt, /*process_scope=*/false));
  RETURN_IF_FAILED(CheckOptionValue(opt, value));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  context->SetOption(opt, value);
  return ACL_SUCCESS;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckOption(opt, /*process_scope=*/false));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  const std::optional<int64_t> option = context->option(opt);
  if (!option.has_value()) {
    return Fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, kCallOrder,
                Concat("option ", static_cast<int>(opt), " was never set in this context"));
  }
  *value = *option;
  return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckOption(opt, /*process_scope=*/true));
  RETURN_IF_FAILED(CheckOptionValue(opt, value));
  process_options[opt] = value;
  return ACL_SUCCESS;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckOption(opt, /*process_scope=*/true));
  RETURN_IF_FAILED(RequireNotNull(value, "value"));
  *value = process_options[opt];
  return ACL_SUCCESS;
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  event_wait_limit_us = uint64_t{timeout} * 1000000;
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  SetExecutionLimit(uint64_t{timeout} * 1000000);
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  SetExecutionLimit(uint64_t{timeout} * 1000);
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  SetExecutionLimit(timeout);
  if (actualTimeout != nullptr) *actualTimeout = ExecutionLimitUs();
  return ACL_SUCCESS;
}

aclError aclrtGetOpTimeOutInterval(uint64_t* interval) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(interval, "interval"));
  *interval = Runtime::Get().settings().timeout_interval_us;
  return ACL_SUCCESS;
}

aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(timeoutMs, "timeoutMs"));
  const uint64_t limit_us = ExecutionLimitUs();
  // UINT32_MAX milliseconds stand for no limit; nothing else is as long.
  *timeoutMs = limit_us == kNoLimit
                   ? UINT32_MAX
                   : static_cast<uint32_t>(std::min<uint64_t>(limit_us / 1000, UINT32_MAX));
  return ACL_SUCCESS;
}
