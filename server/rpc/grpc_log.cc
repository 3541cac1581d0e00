#include "server/rpc/grpc_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpc/support/log.h"
#include "server/observability/log.h"
#include "server/observability/rate_limiter.h"

namespace opserve::server {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(1);

// Thread-safe.
void LogMessage(gpr_log_func_args* args) {
  static RateLimiter limiter;
  // An error of gRPC's is mostly a client's: a handshake that failed, a connection that broke.
  const LogSeverity severity =
      args->severity == GPR_LOG_SEVERITY_ERROR ? LogSeverity::kWarning : LogSeverity::kInfo;
  if (!IsLogged(severity) || !limiter.Admit(absl::Now(), kInterval)) return;
  absl::string_view file = args->file;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  nlohmann::ordered_json line = {{"message", args->message},
                                 {"source", absl::StrCat(file, ":", args->line)}};
  if (const uint64_t left_out = limiter.TakeRefused()) line["left_out"] = left_out;
  Log(severity, "grpc", line);
}

}  // namespace

void LogGrpcMessages() { gpr_set_log_function(&LogMessage); }

}  // namespace opserve::server
