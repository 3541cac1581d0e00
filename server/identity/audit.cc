#include "server/identity/audit.h"

#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

constexpr size_t kMaxMethodBytes = 128;

nlohmann::json Json(std::optional<uint32_t> uid) {
  return uid ? nlohmann::json(*uid) : nlohmann::json();
}

}  // namespace

void AuditDenied(absl::string_view method, const absl::Status& why, std::optional<uint32_t> uid,
                 const std::vector<std::string>& certificate_names) {
  // Strangers cause these lines, so they are bounded; administrators' are not.
  static LineLimiter lines(LimitedEvent::kDenied);
  if (!lines.Admit(LogSeverity::kWarning, absl::Now())) return;
  lines.Write(LogSeverity::kWarning, "denied",
              // A client chooses the method's name.
              {{"method", Shortened(method, kMaxMethodBytes)},
               {"code", absl::StatusCodeToString(why.code())},
               {"error", Shortened(why.message(), kMaxErrorBytes)},
               {"uid", Json(uid)},
               {"certificate_names", certificate_names}});
}

void AuditAdminCall(absl::string_view method, absl::string_view arguments,
                    std::optional<uint32_t> uid, const absl::Status& outcome) {
  LogInfo("admin_call", {{"method", std::string(method)},
                         {"arguments", Shortened(arguments, kMaxErrorBytes)},
                         {"uid", Json(uid)},
                         {"outcome", absl::StatusCodeToString(outcome.code())},
                         {"error", Shortened(outcome.message(), kMaxErrorBytes)}});
}

}  // namespace opserve::server
