#include "proto/status/reason.h"

#include <iterator>

namespace opserve {
namespace {

using absl::StatusCode;

// Columns as in ReasonFacts. Codes are the contract's; the place of an error may set another.
constexpr ReasonFacts kFacts[] = {
    {Reason::kTooLarge, "too_large", StatusCode::kInvalidArgument, Passing::kNo, true, false, ""},
    {Reason::kInvalid, "invalid", StatusCode::kInvalidArgument, Passing::kNo, true, false, ""},
    {Reason::kUnauthenticated, "unauthenticated", StatusCode::kUnauthenticated, Passing::kNo, true,
     false, ""},
    {Reason::kForbidden, "forbidden", StatusCode::kPermissionDenied, Passing::kNo, true, false, ""},
    {Reason::kRateLimited, "rate_limited", StatusCode::kResourceExhausted, Passing::kOverload, true,
     false, ""},
    {Reason::kQueueFull, "queue_full", StatusCode::kResourceExhausted, Passing::kOverload, true,
     false, ""},
    {Reason::kTenantQueueFull, "tenant_queue_full", StatusCode::kResourceExhausted,
     Passing::kOverload, true, false, ""},
    {Reason::kTenantMemory, "tenant_memory", StatusCode::kResourceExhausted, Passing::kOverload,
     true, false, ""},
    {Reason::kDeviceMemory, "device_memory", StatusCode::kResourceExhausted, Passing::kOverload,
     true, false, ""},
    {Reason::kAmplification, "amplification", StatusCode::kFailedPrecondition, Passing::kNo, true,
     false, ""},
    {Reason::kDeadlineInfeasible, "deadline_infeasible", StatusCode::kDeadlineExceeded,
     Passing::kNo, true, false, ""},
    {Reason::kDeadlineExpired, "deadline_expired", StatusCode::kDeadlineExceeded, Passing::kNo,
     true, false, ""},
    {Reason::kDraining, "draining", StatusCode::kUnavailable, Passing::kRestart, true, false, ""},
    {Reason::kDeviceUnavailable, "device_unavailable", StatusCode::kUnavailable, Passing::kNo, true,
     false, ""},
    {Reason::kShmDisabled, "shm_disabled", StatusCode::kUnimplemented, Passing::kNo, true, true,
     ""},
    {Reason::kShmInvalid, "shm_invalid", StatusCode::kInvalidArgument, Passing::kNo, true, true,
     ""},
    {Reason::kWorkLimit, "work_limit", StatusCode::kResourceExhausted, Passing::kOverload, true,
     false, ""},
    {Reason::kTensorUnknown, "tensor_unknown", StatusCode::kNotFound, Passing::kNo, false, false,
     "its lease may have ended, or the handle is not yours; upload the tensor again"},
    {Reason::kTensorLost, "tensor_lost", StatusCode::kFailedPrecondition, Passing::kNo, false,
     false, "the daemon or the device was restarted since; upload the tensor again"},
    {Reason::kTensorVersion, "tensor_version", StatusCode::kFailedPrecondition, Passing::kNo, false,
     false, "another request replaced the tensor since; read it again"},
    {Reason::kUploadStalled, "upload_stalled", StatusCode::kDeadlineExceeded, Passing::kNo, false,
     false, ""},
    {Reason::kOperatorUnavailable, "operator_unavailable", StatusCode::kUnavailable, Passing::kNo,
     true, false,
     "the devices that may run the request compute the operator wrong; try another daemon, or, if "
     "the request uses resident tensors, upload them to another device"},
    {Reason::kProgramUnknown, "program_unknown", StatusCode::kNotFound, Passing::kNo, false, false,
     "its lease may have ended, or the daemon was restarted; prepare the program again"},
    {Reason::kTensorMoved, "tensor_moved", StatusCode::kUnavailable, Passing::kNo, false, false,
     "another daemon has the tensor now, under the same handle; connect there"},
    {Reason::kTensorArriving, "tensor_arriving", StatusCode::kUnavailable, Passing::kRestart, false,
     false, ""},
    {Reason::kNone, "", StatusCode::kInternal, Passing::kNo, false, false, ""},
};

// FactsOf finds a row by its number.
constexpr bool AreInOrder() {
  for (size_t i = 0; i < std::size(kFacts); ++i) {
    if (static_cast<size_t>(kFacts[i].reason) != i) return false;
  }
  return std::size(kFacts) == kReasonCount + 1;
}
static_assert(AreInOrder());

}  // namespace

const ReasonFacts& FactsOf(Reason reason) { return kFacts[static_cast<size_t>(reason)]; }

Reason ReasonFromText(absl::string_view text) {
  for (const ReasonFacts& facts : kFacts) {
    if (facts.text == text) return facts.reason;
  }
  return Reason::kNone;
}

}  // namespace opserve
