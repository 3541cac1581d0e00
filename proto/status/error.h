// Errors of calls: an absl::Status with a message for people and, for programs, an ErrorDetail
// (error.proto). The detail is encoded where the error arises. Places further up add the operator,
// argument or invocation that they know; only the end of a call decodes the detail.
//
// All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "opserve/v1/error.pb.h"
#include "proto/status/reason.h"

namespace opserve {

// aclnn's two verdicts on arguments.
inline constexpr int kAclnnParamNullptr = 161001;
inline constexpr int kAclnnParamInvalid = 161002;

// Texts that errors quote may come from clients and have any length. Messages have at most
// kMaxErrorBytes, names in an ErrorDetail kMaxErrorNameBytes, so that no error takes much memory,
// and all fit into gRPC's trailers (8 KiB).
inline constexpr size_t kMaxErrorBytes = 1024;
inline constexpr size_t kMaxErrorNameBytes = 128;

// The pushback of an error that no repetition can mend.
inline constexpr int64_t kNeverRetry = -1;

// At most `limit` bytes of UTF-8 text, not cut inside a character, and "..." if it was cut.
std::string Shortened(absl::string_view text, size_t limit);

// An error with `reason` and its usual code. `pushback_ms`: when to try again, in milliseconds; 0:
// the daemon has no opinion; kNeverRetry.
absl::Status MakeError(Reason reason, absl::string_view message, int64_t pushback_ms = 0);

// The same with another code.
absl::Status MakeError(Reason reason, absl::StatusCode code, absl::string_view message,
                       int64_t pushback_ms = 0);

// kFailedPrecondition and kNeverRetry: the call asks for more than there can ever be.
absl::Status NeverFits(Reason reason, absl::string_view message);

// The same error about a size that exceeds `limit_bytes`.
absl::Status WithLimit(uint64_t limit_bytes, absl::Status error);

// The same error with the address of the daemon that has the caller's tensors (moved_to).
absl::Status WithMovedTo(absl::string_view address, absl::Status error);

// The part of a request that an error is about. Names are cut to kMaxErrorNameBytes.
struct ErrorPlace {
  absl::string_view operator_name = {};
  absl::string_view argument = {};
  std::optional<uint32_t> invocation = std::nullopt;
};

// An error with `reason`, its usual code and the message "OPERATOR: ARGUMENT: problem" (without
// names that are empty). `aclnn_status`: the operator's verdict; 0: it has none.
absl::Status CallError(Reason reason, const ErrorPlace& place, absl::string_view problem,
                       int aclnn_status = 0);

// The same for a call that the operator itself would refuse.
absl::Status InvalidCall(absl::string_view operator_name, absl::string_view argument,
                         absl::string_view problem, int aclnn_status = kAclnnParamInvalid);

// Adds the names and the invocation that `place` has to the detail of an error, replacing older
// ones; an error without a detail gets one. The message stays.
absl::Status AtPlace(const ErrorPlace& place, absl::Status error);

// The same error, details included, with another message.
absl::Status WithMessage(absl::string_view message, const absl::Status& error);

// Attaches `detail` to an error, replacing one it has.
void SetErrorDetail(const v1::ErrorDetail& detail, absl::Status* error);

// The detail of an error. Nothing: it has none. On the client's side this means that the error did
// not come from the daemon (it was not reached, or the deadline passed on the way).
std::optional<v1::ErrorDetail> ErrorDetailOf(const absl::Status& status);

// The reason in the detail; kNone without one.
Reason ErrorReasonOf(const absl::Status& status);

}  // namespace opserve
