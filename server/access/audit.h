// The audit log: calls that were refused for who made them, and calls of administrators. Lines of
// the daemon's log whose event is "denied" or "admin_call".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opserve::server {

// A line a second on average and ten at once, so that strangers cannot fill the disk; the next one
// that is written says how many were left out. Thread-safe.
void AuditDenied(absl::string_view method, const absl::Status& why, std::optional<uint32_t> uid,
                 const std::vector<std::string>& certificate_names);

// Every call. `arguments`: what it was about, without secrets. Thread-safe.
void AuditAdminCall(absl::string_view method, absl::string_view arguments,
                    std::optional<uint32_t> uid, const absl::Status& outcome);

}  // namespace opserve::server
