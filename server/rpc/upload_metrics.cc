#include "server/rpc/upload_metrics.h"

#include "proto/status/error.h"

namespace opserve::server {

void UploadMetrics::RecordEnd(const absl::Status& status) {
  Result result = kRefused;
  if (status.ok()) {
    result = kComplete;
  } else if (ErrorReasonOf(status) == Reason::kUploadStalled) {
    result = kStalled;
  } else if (absl::IsCancelled(status)) {
    result = kCancelled;
  } else if (absl::IsDeadlineExceeded(status)) {
    result = kExpired;
  }
  ends_[result].fetch_add(1, std::memory_order_relaxed);
}

prometheus::MetricFamily UploadMetrics::Collect() const {
  constexpr const char* kNames[kResults] = {"complete", "stalled", "cancelled", "expired",
                                            "refused"};
  MetricFamilyBuilder family(
      "opserve_uploads_total",
      "Uploads of resident tensors that have ended: with a tensor (complete), because the client "
      "sent too slowly (stalled), cancelled by the client, at their deadline (expired), or with "
      "any other error (refused).",
      prometheus::MetricType::Counter);
  for (int i = 0; i < kResults; ++i) {
    family.Add({{"result", kNames[i]}},
               static_cast<double>(ends_[i].load(std::memory_order_relaxed)));
  }
  return family.Build();
}

}  // namespace opserve::server
