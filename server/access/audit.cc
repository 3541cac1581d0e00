#include "server/access/audit.h"

#include <atomic>

#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

constexpr uint32_t kLinesPerSecond = 10;
constexpr size_t kMaxMethodBytes = 128;

// Lets some events of each second pass and counts the others.
class Sampler {
 public:
  // Whether to write this one; then *suppressed says how many were not since the last.
  bool Take(absl::Time now, uint64_t* suppressed) {
    const int64_t second = absl::ToUnixSeconds(now);
    if (second_.exchange(second, std::memory_order_relaxed) != second) {
      lines_.store(0, std::memory_order_relaxed);
    }
    if (lines_.fetch_add(1, std::memory_order_relaxed) >= kLinesPerSecond) {
      suppressed_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    *suppressed = suppressed_.exchange(0, std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<int64_t> second_ = 0;
  std::atomic<uint32_t> lines_ = 0;
  std::atomic<uint64_t> suppressed_ = 0;
};

nlohmann::json Json(std::optional<uint32_t> uid) {
  return uid ? nlohmann::json(*uid) : nlohmann::json();
}

}  // namespace

void AuditDenied(absl::string_view method, const absl::Status& why, std::optional<uint32_t> uid,
                 const std::vector<std::string>& certificate_names) {
  static Sampler sampler;
  uint64_t suppressed = 0;
  if (!sampler.Take(absl::Now(), &suppressed)) return;
  LogWarning("denied", {{"method", Shortened(method, kMaxMethodBytes)},
                        {"code", absl::StatusCodeToString(why.code())},
                        {"error", Shortened(why.message(), kMaxErrorBytes)},
                        {"uid", Json(uid)},
                        {"certificate_names", certificate_names},
                        {"suppressed", suppressed}});
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
