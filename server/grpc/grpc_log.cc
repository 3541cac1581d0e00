#include "server/grpc/grpc_log.h"

#include <array>
#include <cstring>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpc/support/log.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Of one place in gRPC's sources: less than that of all, so a place that clients keep busy leaves
// room for the others.
constexpr absl::Duration kPlaceInterval = absl::Seconds(10);
constexpr int kPlaceBurst = 3;
constexpr size_t kMaxPlaces = 64;

// The limiters of the places that had a message; beyond kMaxPlaces they share one. Thread-safe.
class Places {
 public:
  // `file` is kept: a constant of gRPC's.
  LineLimiter& At(const char* file, int line) {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < count_; ++i) {
      if (places_[i].line == line && std::strcmp(places_[i].file, file) == 0) {
        return places_[i].limiter;
      }
    }
    if (count_ == kMaxPlaces) return others_;
    places_[count_].file = file;
    places_[count_].line = line;
    return places_[count_++].limiter;
  }

 private:
  struct Place {
    const char* file = nullptr;
    int line = 0;
    LineLimiter limiter{LimitedEvent::kGrpc};
  };

  absl::Mutex mutex_;
  std::array<Place, kMaxPlaces> places_ ABSL_GUARDED_BY(mutex_);
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  LineLimiter others_{LimitedEvent::kGrpc};
};

// Thread-safe.
void LogMessage(gpr_log_func_args* args) {
  // Never destroyed: gRPC's threads may have messages while the process ends.
  static auto* const places = new Places;
  static LineLimiter all(LimitedEvent::kGrpc);
  // An error of gRPC's is mostly a client's: a handshake that failed, a connection that broke.
  const LogSeverity severity =
      args->severity == GPR_LOG_SEVERITY_ERROR ? LogSeverity::kWarning : LogSeverity::kInfo;
  LineLimiter& place = places->At(args->file, args->line);
  const absl::Time now = absl::Now();
  if (!place.Admit(severity, now, kPlaceInterval, kPlaceBurst) || !all.Admit(severity, now)) return;
  absl::string_view file = args->file;
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  const size_t bytes =
      place.Write(severity, "grpc",
                  {{"message", args->message}, {"source", absl::StrCat(file, ":", args->line)}},
                  kPlaceInterval);
  all.Charge(bytes);
}

}  // namespace

void LogGrpcMessages() { gpr_set_log_function(&LogMessage); }

}  // namespace opserve::server
