#include "server/native/transfer_metrics.h"

#include "proto/status/error.h"

namespace opserve::server {

void TransferMetrics::Record(const absl::Status& end, Ends* ends) {
  Result result = kRefused;
  if (end.ok()) {
    result = kComplete;
  } else if (ErrorReasonOf(end) == Reason::kUploadStalled) {
    // Before the code is looked at, which a deadline has, too.
    result = kStalled;
  } else if (absl::IsCancelled(end)) {
    result = kCancelled;
  } else if (absl::IsDeadlineExceeded(end)) {
    result = kExpired;
  }
  (*ends)[result].fetch_add(1, std::memory_order_relaxed);
}

std::vector<prometheus::MetricFamily> TransferMetrics::Collect() const {
  MetricFamilyBuilder held(
      "opserve_download_held_bytes",
      "Device memory of tensors' contents that downloads have not copied yet. A tensor that is "
      "replaced or released meanwhile keeps its old memory until then.",
      prometheus::MetricType::Gauge);
  held.Add({}, static_cast<double>(held_bytes_.load(std::memory_order_relaxed)));
  return {Count("opserve_uploads_total",
                "Uploads of resident tensors that have ended: with a tensor (complete), because "
                "the client sent too slowly (stalled), cancelled by the client, at their deadline "
                "(expired), or with any other error (refused).",
                uploads_),
          Count("opserve_downloads_total",
                "Downloads of resident tensors that have ended: with all elements (complete), "
                "because the client left or read too slowly (cancelled), at their deadline "
                "(expired), or with any other error (refused). None is stalled.",
                downloads_),
          held.Build()};
}

prometheus::MetricFamily TransferMetrics::Count(const char* name, const char* help,
                                                const Ends& ends) {
  // In the order of Result.
  constexpr const char* kNames[kResults] = {"complete", "stalled", "cancelled", "expired",
                                            "refused"};
  MetricFamilyBuilder family(name, help, prometheus::MetricType::Counter);
  for (int i = 0; i < kResults; ++i) {
    family.Add({{"result", kNames[i]}},
               static_cast<double>(ends[i].load(std::memory_order_relaxed)));
  }
  return family.Build();
}

}  // namespace opserve::server
