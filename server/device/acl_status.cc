#include "server/device/acl_status.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ops/catalog/error.h"
#include "server/device/acl_library.h"
#include "server/device/runtime_text.h"

namespace opserve::server {
namespace {

template <size_t N>
bool Contains(const int (&codes)[N], int code) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

constexpr int kCallerCodes[] = {catalog::kAclnnParamNullptr, catalog::kAclnnParamInvalid};
// Memory, streams, events, host memory and queues that ran out.
constexpr int kResourceCodes[] = {200000, 207001, 207005, 207007, 207008, 207012, 207018, 507002};
// Timeouts, exceptions and traps of AI cores and vector cores.
constexpr int kKernelCodes[] = {507014, 507015, 507016, 507017, 507018, 507034, 507035, 507036,
                                507042, 507043, 507044, 507045, 507048, 507049, 507050};
// Scheduler, heartbeat, DMA, set-up, channel, memory and driver faults.
constexpr int kDeviceCodes[] = {507001, 507010, 507013, 507033, 507051, 507052, 507053, 507054,
                                507055, 507056, 507057, 507899, 507901, 507914, 507915, 507916};

// Of these: memory errors that cannot be corrected, certain and suspected.
constexpr int kMemoryDamageCodes[] = {507053, 507054, 507055};

struct Translation {
  absl::StatusCode code;
  absl::string_view reason;
};

Translation Translate(AclFault fault) {
  switch (fault) {
    case AclFault::kNone:
      return {absl::StatusCode::kOk, ""};
    case AclFault::kCaller:
      return {absl::StatusCode::kInvalidArgument, "invalid"};
    case AclFault::kResource:
      return {absl::StatusCode::kResourceExhausted, "device_memory"};
    case AclFault::kDevice:
      return {absl::StatusCode::kUnavailable, "device_unavailable"};
    case AclFault::kKernel:
    case AclFault::kInternal:
      return {absl::StatusCode::kInternal, ""};
  }
  return {absl::StatusCode::kInternal, ""};
}

}  // namespace

AclFault ClassifyAclCode(int code) {
  if (code == 0) return AclFault::kNone;
  if (Contains(kCallerCodes, code)) return AclFault::kCaller;
  if (Contains(kResourceCodes, code)) return AclFault::kResource;
  if (Contains(kKernelCodes, code)) return AclFault::kKernel;
  if (Contains(kDeviceCodes, code)) return AclFault::kDevice;
  return AclFault::kInternal;
}

bool IsMemoryDamage(int code) { return Contains(kMemoryDamageCodes, code); }

absl::Status AclCallStatus(const AclLibrary& acl, absl::string_view call, int code) {
  if (code == 0) return absl::OkStatus();
  const char* text = acl.aclGetRecentErrMsg();
  const std::string runtime_message = text == nullptr ? "" : WithoutInternals(text);
  const AclFault fault = ClassifyAclCode(code);
  const Translation translation = Translate(fault);
  absl::Status status(
      translation.code,
      absl::StrCat(call, " returned ", code, runtime_message.empty() ? "" : ": ", runtime_message));
  v1::ErrorDetail detail;
  detail.set_reason(std::string(translation.reason));
  // aclnn's codes have their own range; a runtime code may come out of a stage function too.
  const bool is_aclnn = code / 1000 == 161 || code / 1000 == 361 || code / 1000 == 561;
  if (is_aclnn) {
    detail.set_aclnn_status(code);
  } else {
    detail.set_acl_error(code);
  }
  detail.set_runtime_message(runtime_message);
  catalog::SetErrorDetail(detail, &status);
  return status;
}

}  // namespace opserve::server
