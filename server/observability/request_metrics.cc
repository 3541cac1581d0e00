#include "server/observability/request_metrics.h"

#include <algorithm>

#include "absl/strings/match.h"
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

// Its position in the set; none: the error has no reason, or one of another kind.
std::optional<size_t> ReasonOf(const absl::Status& why) {
  const auto detail = catalog::GetErrorDetail(why);
  if (!detail) return std::nullopt;
  const auto reason = std::find(std::begin(kReasons), std::end(kReasons), detail->reason());
  if (reason == std::end(kReasons)) return std::nullopt;
  return static_cast<size_t>(reason - std::begin(kReasons));
}

bool IsOfSharedMemory(size_t reason) { return absl::StartsWith(kReasons[reason], "shm_"); }

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

RequestMetrics::PerOperator::PerOperator(std::string name) : name(std::move(name)) {
  for (int stage = 0; stage <= kStages; ++stage) {
    stages.push_back(std::make_unique<Histogram>(SecondsBounds()));
  }
}

RequestMetrics::RequestMetrics(std::vector<std::string> operators, std::vector<int32_t> devices)
    : devices_(std::move(devices)) {
  operators.push_back("program");
  operators.push_back("unknown");
  for (std::string& name : operators) {
    operators_.push_back(std::make_unique<PerOperator>(std::move(name)));
  }
}

RequestMetrics::~RequestMetrics() {
  for (std::atomic<PerTenant*>& tenant : tenants_) delete tenant.load();
}

size_t RequestMetrics::OperatorIndex(int op) const {
  if (op == kProgram) return operators_.size() - 2;
  if (op == kUnknown) return operators_.size() - 1;
  return static_cast<size_t>(op);
}

RequestMetrics::PerTenant& RequestMetrics::Of(std::optional<uint32_t> tenant) {
  std::atomic<PerTenant*>& slot = tenants_[tenant ? TenantSlot(*tenant) : kNobody];
  PerTenant* counted = slot.load(std::memory_order_acquire);
  if (counted != nullptr) return *counted;
  auto made =
      std::make_unique<PerTenant>(operators_.size() * (devices_.size() + 1), std::size(kReasons));
  if (slot.compare_exchange_strong(counted, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *counted;  // another thread was faster
}

size_t RequestMetrics::DeviceIndex(std::optional<int32_t> device) const {
  if (!device) return devices_.size();
  return std::find(devices_.begin(), devices_.end(), *device) - devices_.begin();
}

std::string RequestMetrics::DeviceLabel(size_t index) const {
  return index < devices_.size() ? absl::StrCat(devices_[index]) : "none";
}

void RequestMetrics::Record(const Request& request) {
  const size_t op_index = OperatorIndex(request.op);
  PerOperator& op = *operators_[op_index];
  PerTenant& tenant = Of(request.tenant);
  const auto code = std::min<int>(static_cast<int>(request.status.code()), kCodes - 1);
  const size_t cell = op_index * (devices_.size() + 1) + DeviceIndex(request.device);
  tenant.requests[cell][code].fetch_add(1, std::memory_order_relaxed);
  op.request_bytes.Observe(static_cast<double>(request.request_bytes));
  if (request.status.ok()) {
    for (int stage = 0; stage < kStages; ++stage) {
      op.stages[stage]->Observe(Seconds(request.clock->nanoseconds(static_cast<Stage>(stage))));
    }
    op.stages[kStages]->Observe(Seconds(request.clock->total_nanoseconds()));
    op.response_bytes.Observe(static_cast<double>(request.response_bytes));
    return;
  }
  RecordRejection(request.tenant, request.status);
}

void RequestMetrics::RecordRejection(std::optional<uint32_t> tenant, const absl::Status& why) {
  const std::optional<size_t> reason = ReasonOf(why);
  if (!reason) return;
  Of(tenant).rejections[*reason].fetch_add(1, std::memory_order_relaxed);
  if (IsOfSharedMemory(*reason)) RecordSharedMemoryRejection(why);
}

void RequestMetrics::RecordSharedMemoryRejection(const absl::Status& why) {
  static_assert(std::size(kReasons) == kReasonCount);
  if (const std::optional<size_t> reason = ReasonOf(why)) {
    shm_rejections_[*reason].fetch_add(1, std::memory_order_relaxed);
  }
}

void RequestMetrics::RecordCopies(CopyPath path, uint64_t to_device_bytes,
                                  uint64_t from_device_bytes) {
  Copies& copies = copies_[static_cast<size_t>(path)];
  copies.to_device.fetch_add(to_device_bytes, std::memory_order_relaxed);
  copies.from_device.fetch_add(from_device_bytes, std::memory_order_relaxed);
}

std::vector<prometheus::MetricFamily> RequestMetrics::Collect(
    absl::Span<const std::string> tenants) const {
  MetricFamilyBuilder requests("opserve_requests_total", "Requests answered, by outcome.",
                               MetricType::Counter);
  MetricFamilyBuilder durations("opserve_request_duration_seconds",
                                "Time of successful requests by stage; the stages sum to total.",
                                MetricType::Histogram);
  MetricFamilyBuilder request_bytes("opserve_request_bytes", "Size of requests as received.",
                                    MetricType::Histogram);
  MetricFamilyBuilder response_bytes(
      "opserve_response_bytes", "Size of successful responses as sent.", MetricType::Histogram);
  MetricFamilyBuilder rejections("opserve_admission_rejections_total",
                                 "Requests refused, by reason.", MetricType::Counter);
  for (size_t slot = 0; slot < tenants_.size(); ++slot) {
    const PerTenant* tenant = tenants_[slot].load(std::memory_order_acquire);
    if (tenant == nullptr) continue;
    const std::string label = TenantLabel(slot, tenants);
    for (size_t cell = 0; cell < tenant->requests.size(); ++cell) {
      for (int code = 0; code < kCodes; ++code) {
        const uint64_t count = tenant->requests[cell][code].load(std::memory_order_relaxed);
        if (count == 0) continue;
        requests.Add({{"operator", operators_[cell / (devices_.size() + 1)]->name},
                      {"tenant", label},
                      {"device", DeviceLabel(cell % (devices_.size() + 1))},
                      {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}},
                     static_cast<double>(count));
      }
    }
    for (size_t i = 0; i < tenant->rejections.size(); ++i) {
      rejections.Add({{"tenant", label}, {"reason", std::string(kReasons[i])}},
                     static_cast<double>(tenant->rejections[i].load(std::memory_order_relaxed)));
    }
  }
  for (const auto& op : operators_) {
    if (op->request_bytes.count() == 0) continue;
    for (int stage = 0; stage <= kStages; ++stage) {
      const auto name = stage < kStages ? kStageNames[stage] : "total";
      durations.Add({{"operator", op->name}, {"stage", std::string(name)}},
                    op->stages[stage]->Collect());
    }
    request_bytes.Add({{"operator", op->name}}, op->request_bytes.Collect());
    response_bytes.Add({{"operator", op->name}}, op->response_bytes.Collect());
  }

  MetricFamilyBuilder copies("opserve_host_copy_bytes_total",
                             "Tensor bytes copied between host and device.", MetricType::Counter);
  constexpr const char* kPathNames[kCopyPaths] = {"grpc", "shm"};
  for (size_t path = 0; path < kCopyPaths; ++path) {
    copies.Add({{"direction", "h2d"}, {"path", kPathNames[path]}},
               static_cast<double>(copies_[path].to_device.load()));
    copies.Add({{"direction", "d2h"}, {"path", kPathNames[path]}},
               static_cast<double>(copies_[path].from_device.load()));
  }
  MetricFamilyBuilder shm_rejections("opserve_shm_rejections_total",
                                     "Refusals that concern shared memory, by reason.",
                                     MetricType::Counter);
  for (size_t i = 0; i < kReasonCount; ++i) {
    const uint64_t count = shm_rejections_[i].load(std::memory_order_relaxed);
    if (count == 0 && !IsOfSharedMemory(i)) continue;
    shm_rejections.Add({{"reason", std::string(kReasons[i])}}, static_cast<double>(count));
  }
  std::vector<prometheus::MetricFamily> families;
  for (MetricFamilyBuilder* builder : {&requests, &durations, &request_bytes, &response_bytes,
                                       &rejections, &copies, &shm_rejections}) {
    families.push_back(builder->Build());
  }
  return families;
}

}  // namespace opserve::server
