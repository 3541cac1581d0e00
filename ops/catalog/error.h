// Errors about a call of an operator: an absl::Status whose message names operator, argument,
// expected and actual value, and which carries the same as an ErrorDetail for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "opserve/v1/error.pb.h"

namespace opserve::catalog {

// aclnn's two verdicts on arguments.
inline constexpr int kAclnnParamNullptr = 161001;
inline constexpr int kAclnnParamInvalid = 161002;

// Texts that errors quote may be a client's, of any length. Messages have at most kMaxErrorBytes,
// names in an ErrorDetail kMaxErrorNameBytes, so that no error takes much memory, wherever it goes,
// and all fit into gRPC's trailers (8 KiB).
inline constexpr size_t kMaxErrorBytes = 1024;
inline constexpr size_t kMaxErrorNameBytes = 128;

// At most `limit` bytes of UTF-8 text, not cut inside a character, and "..." if it was cut.
std::string Shortened(absl::string_view text, size_t limit);

// Attaches `detail` to a status that is not OK, replacing one it has.
void SetErrorDetail(const v1::ErrorDetail& detail, absl::Status* status);

// The detail attached to `status`, if any.
std::optional<v1::ErrorDetail> GetErrorDetail(const absl::Status& status);

// kInvalidArgument with reason "invalid", the aclnn status 161002 (or `aclnn_status`) and the
// message "OPERATOR: ARGUMENT: problem" (without what is empty). Both names are cut as above.
absl::Status InvalidCall(absl::string_view operator_name, absl::string_view argument,
                         absl::string_view problem, int aclnn_status = kAclnnParamInvalid);

// A status with an ErrorDetail of that reason (of the closed set that error.proto lists).
absl::Status ErrorWithReason(absl::StatusCode code, absl::string_view reason,
                             absl::string_view message);

// The same, saying when to try again; -1: never.
absl::Status ErrorWithPushback(absl::StatusCode code, absl::string_view reason,
                               absl::string_view message, int64_t pushback_ms);

}  // namespace opserve::catalog
