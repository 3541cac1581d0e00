// The audit log: calls refused because of their caller's identity, and calls of administrators, as
// lines of the daemon's log with the event "denied" or "admin_call".
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

// Logs every call. `arguments`: the call's subject, without secrets. Thread-safe.
void AuditAdminCall(absl::string_view method, absl::string_view arguments,
                    std::optional<uint32_t> uid, const absl::Status& outcome);

}  // namespace opserve::server
