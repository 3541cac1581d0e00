#include "server/observability/request_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/catalog/error.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;

constexpr absl::string_view kReasons[] = {"too_large",
                                          "invalid",
                                          "unauthenticated",
                                          "forbidden",
                                          "rate_limited",
                                          "queue_full",
                                          "tenant_queue_full",
                                          "tenant_memory",
                                          "device_memory",
                                          "amplification",
                                          "deadline_infeasible",
                                          "deadline_expired",
                                          "draining",
                                          "device_unavailable",
                                          "shm_disabled",
                                          "shm_invalid"};
constexpr char kTenant[] = "default";

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

RequestMetrics::PerOperator::PerOperator(std::string name, size_t devices)
    : name(std::move(name)), requests(devices + 1) {
  for (int stage = 0; stage <= kStages; ++stage) {
    stages.push_back(std::make_unique<Histogram>(SecondsBounds()));
  }
}

RequestMetrics::RequestMetrics(std::vector<std::string> operators, std::vector<int32_t> devices)
    : devices_(std::move(devices)), rejections_(std::size(kReasons)) {
  operators.push_back("program");
  operators.push_back("unknown");
  for (std::string& name : operators) {
    operators_.push_back(std::make_unique<PerOperator>(std::move(name), devices_.size()));
  }
}

RequestMetrics::PerOperator& RequestMetrics::Of(int op) {
  if (op == kProgram) return *operators_[operators_.size() - 2];
  if (op == kUnknown) return *operators_.back();
  return *operators_[op];
}

size_t RequestMetrics::DeviceIndex(std::optional<int32_t> device) const {
  if (!device) return devices_.size();
  return std::find(devices_.begin(), devices_.end(), *device) - devices_.begin();
}

std::string RequestMetrics::DeviceLabel(size_t index) const {
  return index < devices_.size() ? absl::StrCat(devices_[index]) : "none";
}

void RequestMetrics::Record(const Request& request) {
  PerOperator& op = Of(request.op);
  const auto code = std::min<int>(static_cast<int>(request.status.code()), kCodes - 1);
  op.requests[DeviceIndex(request.device)][code].fetch_add(1, std::memory_order_relaxed);
  op.request_bytes.Observe(static_cast<double>(request.request_bytes));
  if (request.status.ok()) {
    for (int stage = 0; stage < kStages; ++stage) {
      op.stages[stage]->Observe(Seconds(request.clock->nanoseconds(static_cast<Stage>(stage))));
    }
    op.stages[kStages]->Observe(Seconds(request.clock->total_nanoseconds()));
    op.response_bytes.Observe(static_cast<double>(request.response_bytes));
    return;
  }
  if (const auto detail = catalog::GetErrorDetail(request.status)) {
    const auto reason = std::find(std::begin(kReasons), std::end(kReasons), detail->reason());
    if (reason != std::end(kReasons)) {
      rejections_[reason - std::begin(kReasons)].fetch_add(1, std::memory_order_relaxed);
    }
  }
}

void RequestMetrics::RecordCopies(uint64_t to_device_bytes, uint64_t from_device_bytes) {
  bytes_to_device_.fetch_add(to_device_bytes, std::memory_order_relaxed);
  bytes_from_device_.fetch_add(from_device_bytes, std::memory_order_relaxed);
}

std::vector<prometheus::MetricFamily> RequestMetrics::Collect() const {
  MetricFamilyBuilder requests("opserve_requests_total", "Requests answered, by outcome.",
                               MetricType::Counter);
  MetricFamilyBuilder durations("opserve_request_duration_seconds",
                                "Time of successful requests by stage; the stages sum to total.",
                                MetricType::Histogram);
  MetricFamilyBuilder request_bytes("opserve_request_bytes", "Size of requests as received.",
                                    MetricType::Histogram);
  MetricFamilyBuilder response_bytes(
      "opserve_response_bytes", "Size of successful responses as sent.", MetricType::Histogram);
  for (const auto& op : operators_) {
    for (size_t device = 0; device < op->requests.size(); ++device) {
      for (int code = 0; code < kCodes; ++code) {
        const uint64_t count = op->requests[device][code].load(std::memory_order_relaxed);
        if (count == 0) continue;
        requests.Add({{"operator", op->name},
                      {"tenant", kTenant},
                      {"device", DeviceLabel(device)},
                      {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}},
                     static_cast<double>(count));
      }
    }
    if (op->request_bytes.count() == 0) continue;
    for (int stage = 0; stage <= kStages; ++stage) {
      const auto name = stage < kStages ? kStageNames[stage] : "total";
      durations.Add({{"operator", op->name}, {"stage", std::string(name)}},
                    op->stages[stage]->Collect());
    }
    request_bytes.Add({{"operator", op->name}}, op->request_bytes.Collect());
    response_bytes.Add({{"operator", op->name}}, op->response_bytes.Collect());
  }

  MetricFamilyBuilder rejections("opserve_admission_rejections_total",
                                 "Requests refused, by reason.", MetricType::Counter);
  for (size_t i = 0; i < rejections_.size(); ++i) {
    rejections.Add({{"tenant", kTenant}, {"reason", std::string(kReasons[i])}},
                   static_cast<double>(rejections_[i].load(std::memory_order_relaxed)));
  }
  MetricFamilyBuilder copies("opserve_host_copy_bytes_total",
                             "Tensor bytes copied between host and device.", MetricType::Counter);
  copies.Add({{"direction", "h2d"}, {"path", "grpc"}},
             static_cast<double>(bytes_to_device_.load()));
  copies.Add({{"direction", "d2h"}, {"path", "grpc"}},
             static_cast<double>(bytes_from_device_.load()));
  std::vector<prometheus::MetricFamily> families;
  for (MetricFamilyBuilder* builder :
       {&requests, &durations, &request_bytes, &response_bytes, &rejections, &copies}) {
    families.push_back(builder->Build());
  }
  return families;
}

}  // namespace opserve::server
