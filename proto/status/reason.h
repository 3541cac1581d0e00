// The closed set of reasons why calls fail. A reason is ErrorDetail.reason on the wire, the trailer
// `opserve-reason` and a metric label; each fact about a reason stands in its row here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opserve {

// In the order of the metrics' series; new ones go to the end.
enum class Reason : uint8_t {
  kTooLarge,
  kInvalid,
  kUnauthenticated,
  kForbidden,
  kRateLimited,
  kQueueFull,
  kTenantQueueFull,
  kTenantMemory,
  kDeviceMemory,
  kAmplification,
  kDeadlineInfeasible,
  kDeadlineExpired,
  kDraining,
  kDeviceUnavailable,
  kShmDisabled,
  kShmInvalid,
  kWorkLimit,
  kTensorUnknown,
  kTensorLost,
  kTensorVersion,
  kUploadStalled,
  kOperatorUnavailable,
  kProgramUnknown,
  kTensorMoved,
  kTensorArriving,
  kNone,  // a fault of the device or of the daemon
};

// All but kNone.
inline constexpr size_t kReasonCount = static_cast<size_t>(Reason::kNone);

// Why the same call may succeed later, so that its error says when to try again.
enum class Passing : uint8_t {
  kNo,        // or not within a time that the daemon knows
  kOverload,  // the load may fall
  kRestart,   // another daemon or device takes over
};

struct ReasonFacts {
  Reason reason;
  absl::string_view text;  // on the wire and as metric label
  absl::StatusCode
      code;  // of errors with this reason, unless the place of the error says otherwise
  Passing passing;
  bool is_rejection;         // counted in opserve_admission_rejections_total
  bool is_of_shared_memory;  // counted in opserve_shm_rejections_total, too
  absl::string_view advice;  // to the caller, after the message; empty where the message is enough
};

// Thread-safe, as are the functions below. kNone has an empty text and kInternal.
const ReasonFacts& FactsOf(Reason reason);

inline absl::string_view ReasonText(Reason reason) { return FactsOf(reason).text; }

// The reason with this text; kNone: there is none, or it is of a newer release.
Reason ReasonFromText(absl::string_view text);

}  // namespace opserve
