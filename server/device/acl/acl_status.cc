#include "server/device/acl/acl_status.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "aclnn/opdev/op_errno.h"
#include "proto/status/error.h"
#include "server/device/acl/acl_library.h"
#include "server/device/acl/runtime_text.h"

namespace opserve::server {
namespace {

// Codes by the response they need, in ranges; codes in none of them are kInternal.
struct CodeRange {
  int first;
  int last;
  AclFault fault;
};
constexpr CodeRange kRanges[] = {
    {kAclnnParamNullptr, kAclnnParamInvalid, AclFault::kCaller},
    // ACL is initialised already; numbers overflowed, and the caller's results say where.
    {100002, 100002, AclFault::kNone},
    {207003, 207003, AclFault::kNone},
    {207016, 207017, AclFault::kNone},
    // Functions, features, tasks and links that the product or its driver lacks.
    {148050, 148050, AclFault::kUnsupported},
    {200001, 200001, AclFault::kUnsupported},
    {200006, 200007, AclFault::kUnsupported},
    {207000, 207000, AclFault::kUnsupported},
    {207019, 207019, AclFault::kUnsupported},
    {207021, 207021, AclFault::kUnsupported},
    {507009, 507009, AclFault::kUnsupported},
    // Memory, streams, events, host memory and queues that ran out; waits that were too short.
    {107019, 107019, AclFault::kResource},
    {200000, 200000, AclFault::kResource},
    {207001, 207001, AclFault::kResource},
    {207005, 207005, AclFault::kResource},
    {207007, 207014, AclFault::kResource},
    {207018, 207018, AclFault::kResource},
    {207020, 207020, AclFault::kResource},
    {300000, 300000, AclFault::kResource},
    {507002, 507002, AclFault::kResource},
    {507032, 507032, AclFault::kResource},
    // Timeouts, exceptions and traps of AI cores, vector cores and AI CPUs.
    {107020, 107020, AclFault::kKernel},
    {507014, 507018, AclFault::kKernel},
    {507034, 507036, AclFault::kKernel},
    {507042, 507050, AclFault::kKernel},
    {507056, 507057, AclFault::kLink},
    {507904, 507904, AclFault::kLink},
    // The whole device's work is being aborted.
    {107022, 107022, AclFault::kDevice},
    {107035, 107035, AclFault::kDevice},
    // Scheduler, heartbeat, DMA, set-up, channel, memory and driver faults.
    {507001, 507001, AclFault::kDevice},
    {507010, 507010, AclFault::kDevice},
    {507013, 507013, AclFault::kDevice},
    {507033, 507033, AclFault::kDevice},
    {507051, 507055, AclFault::kDevice},
    {507899, 507899, AclFault::kDevice},
    {507901, 507901, AclFault::kDevice},
    {507914, 507916, AclFault::kDevice},
    // Known codes of the same range that are no fault of the device.
    {507000, 507041, AclFault::kInternal},
    {507900, 507913, AclFault::kInternal},
    {507000, 507999, AclFault::kDevice},
};

// Stage one found no kernel for this product, or no package with any.
constexpr int kNoKernelCodes[] = {561003, 561112};

struct Translation {
  absl::StatusCode code;
  Reason reason;
};

Translation Translate(AclFault fault) {
  switch (fault) {
    case AclFault::kCaller:
      return {absl::StatusCode::kInvalidArgument, Reason::kInvalid};
    case AclFault::kResource:
      return {absl::StatusCode::kResourceExhausted, Reason::kDeviceMemory};
    case AclFault::kUnsupported:
      return {absl::StatusCode::kUnimplemented, Reason::kNone};
    case AclFault::kLink:
    case AclFault::kDevice:
      return {absl::StatusCode::kUnavailable, Reason::kDeviceUnavailable};
    case AclFault::kNone:  // of another call than those it is harmless from
    case AclFault::kKernel:
    case AclFault::kInternal:
      return {absl::StatusCode::kInternal, Reason::kNone};
  }
  return {absl::StatusCode::kInternal, Reason::kNone};
}

}  // namespace

AclFault ClassifyAclCode(int code) {
  if (code == 0) return AclFault::kNone;
  // The first range that holds the code counts, so exceptions stand before the ranges around them.
  for (const CodeRange& range : kRanges) {
    if (code >= range.first && code <= range.last) return range.fault;
  }
  return AclFault::kInternal;
}

// Certain and suspected memory errors that cannot be corrected.
bool IsMemoryDamage(int code) { return code >= 507053 && code <= 507055; }

bool IsDeviceLoss(const absl::Status& status) {
  if (status.ok()) return false;
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  return detail && ClassifyAclCode(detail->acl_error()) == AclFault::kDevice;
}

bool SaysUnsupported(const absl::Status& status) {
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  if (!detail) return false;
  const int verdict = detail->aclnn_status();
  return ClassifyAclCode(detail->acl_error()) == AclFault::kUnsupported ||
         verdict == kAclnnParamInvalid ||
         std::find(std::begin(kNoKernelCodes), std::end(kNoKernelCodes), verdict) !=
             std::end(kNoKernelCodes);
}

absl::Status AclCallError(const AclLibrary& acl, absl::string_view call, int code) {
  const char* text = acl.aclGetRecentErrMsg();
  const std::string runtime_message = text == nullptr ? "" : WithoutInternals(text);
  // aclnn's codes have their own range; a runtime code may come out of a stage function too.
  const bool is_aclnn = code / 1000 == 161 || code / 1000 == 361 || code / 1000 == 561;
  int runtime_code = is_aclnn ? 0 : code;
  if (code == ACLNN_ERR_RUNTIME_ERROR && acl.aclrtGetLastError != nullptr) {
    runtime_code = acl.aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  }
  const Translation translation =
      Translate(ClassifyAclCode(runtime_code != 0 ? runtime_code : code));
  absl::Status status(
      translation.code,
      absl::StrCat(call, " returned ", code,
                   is_aclnn && runtime_code != 0 ? absl::StrCat(" (", runtime_code, ")") : "",
                   runtime_message.empty() ? "" : ": ", runtime_message));
  v1::ErrorDetail detail;
  detail.set_reason(std::string(ReasonText(translation.reason)));
  if (is_aclnn) detail.set_aclnn_status(code);
  if (runtime_code != 0) detail.set_acl_error(runtime_code);
  detail.set_runtime_message(runtime_message);
  SetErrorDetail(detail, &status);
  return status;
}

}  // namespace opserve::server
