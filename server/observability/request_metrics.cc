#include "server/observability/request_metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;

ReasonFacts FactsAt(size_t index) { return FactsOf(static_cast<Reason>(index)); }

uint64_t Bytes(const Histogram& histogram) { return static_cast<uint64_t>(histogram.sum()); }

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

RequestMetrics::PerOperator::PerOperator(std::string name) : name(std::move(name)) {
  for (int stage = 0; stage <= kStages; ++stage) {
    stages.push_back(std::make_unique<Histogram>(SecondsBounds()));
  }
}

RequestMetrics::RequestMetrics(std::vector<std::string> operators, std::vector<int32_t> devices)
    : devices_(std::move(devices)) {
  // In this order, on which OperatorIndex counts.
  operators.push_back("program");
  operators.push_back("unknown");
  for (std::string& name : operators) {
    operators_.push_back(std::make_unique<PerOperator>(std::move(name)));
  }
  for (size_t reason = 0; reason < kReasonCount; ++reason) {
    pushbacks_.push_back(std::make_unique<Histogram>(SecondsBounds()));
  }
}

RequestMetrics::PerTenant::~PerTenant() {
  for (std::atomic<Cells*>& cells : of_operator) delete cells.load();
}

RequestMetrics::~RequestMetrics() {
  for (std::atomic<PerTenant*>& tenant : tenants_) delete tenant.load();
}

size_t RequestMetrics::OperatorIndex(int op) const {
  if (op == kProgram) return operators_.size() - 2;
  if (op == kUnknown) return operators_.size() - 1;
  return static_cast<size_t>(op);
}

namespace {

// The value in `slot`, made by `make` if it is null. Thread-safe: of several threads one makes it.
template <typename T, typename Make>
T& GetOrMake(std::atomic<T*>& slot, const Make& make) {
  T* found = slot.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  std::unique_ptr<T> made = make();
  if (slot.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *found;  // another thread was faster
}

}  // namespace

RequestMetrics::PerTenant& RequestMetrics::Of(std::optional<uint32_t> tenant) {
  // Callers without a tenant share a slot.
  return GetOrMake(tenants_[tenant ? TenantSlot(*tenant) : kNobody],
                   [this] { return std::make_unique<PerTenant>(operators_.size()); });
}

RequestMetrics::PerTenant::Cells& RequestMetrics::CellsOf(PerTenant& tenant, size_t op) const {
  return GetOrMake(tenant.of_operator[op],
                   [this] { return std::make_unique<PerTenant::Cells>(devices_.size() + 1); });
}

size_t RequestMetrics::DeviceIndex(std::optional<int32_t> device) const {
  if (!device) return devices_.size();
  // A device that is not in the list counts as none.
  return std::find(devices_.begin(), devices_.end(), *device) - devices_.begin();
}

std::string RequestMetrics::DeviceLabel(size_t index) const {
  return index < devices_.size() ? absl::StrCat(devices_[index]) : "none";
}

void RequestMetrics::Record(const Request& request) {
  const size_t op_index = OperatorIndex(request.op);
  PerOperator& op = *operators_[op_index];
  PerTenant& tenant = Of(request.tenant);
  // A status may carry any integer; the cells are for gRPC's codes.
  const auto code = std::min<int>(static_cast<int>(request.status.code()), kCodes - 1);
  CellsOf(tenant, op_index)[DeviceIndex(request.device)][code].fetch_add(1,
                                                                         std::memory_order_relaxed);
  op.request_bytes.Observe(static_cast<double>(request.request_bytes));
  // Only a success has gone through all stages, so that they sum to its total.
  if (request.status.ok()) {
    for (int stage = 0; stage < kStages; ++stage) {
      op.stages[stage]->Observe(Seconds(request.clock->nanoseconds(static_cast<Stage>(stage))));
    }
    op.stages[kStages]->Observe(Seconds(request.clock->total_nanoseconds()));
    op.response_bytes.Observe(static_cast<double>(request.response_bytes));
    return;
  }
  // A failure counts at the stage that it reached.
  const auto stage = static_cast<size_t>(request.clock->last_stage());
  // For alerts on the stage at which callers give up or run out of time.
  if (absl::IsCancelled(request.status)) {
    cancelled_[stage].fetch_add(1, std::memory_order_relaxed);
  } else if (absl::IsDeadlineExceeded(request.status)) {
    op.deadline_misses[stage].fetch_add(1, std::memory_order_relaxed);
  }
  RecordRejection(request.tenant, request.status);
}

std::optional<RequestMetrics::Refusal> RequestMetrics::RefusalOf(const absl::Status& why) {
  // An error without a detail is gRPC's own, or of a fault: nothing was refused.
  const auto detail = ErrorDetailOf(why);
  if (!detail) return std::nullopt;
  const Reason reason = ReasonFromText(detail->reason());
  if (!FactsOf(reason).is_rejection) return std::nullopt;
  return Refusal{static_cast<size_t>(reason), detail->retry_pushback_ms()};
}

void RequestMetrics::RecordRejection(std::optional<uint32_t> tenant, const absl::Status& why) {
  const std::optional<Refusal> refusal = RefusalOf(why);
  if (!refusal) return;
  Of(tenant).rejections[refusal->reason].fetch_add(1, std::memory_order_relaxed);
  if (FactsAt(refusal->reason).is_of_shared_memory) {
    shm_rejections_[refusal->reason].fetch_add(1, std::memory_order_relaxed);
  }
  RecordPushback(*refusal);
}

void RequestMetrics::RecordSharedMemoryRejection(const absl::Status& why) {
  const std::optional<Refusal> refusal = RefusalOf(why);
  if (!refusal) return;
  shm_rejections_[refusal->reason].fetch_add(1, std::memory_order_relaxed);
  RecordPushback(*refusal);
}

void RequestMetrics::RecordPushback(const absl::Status& why) {
  if (const std::optional<Refusal> refusal = RefusalOf(why)) RecordPushback(*refusal);
}

void RequestMetrics::RecordPushback(const Refusal& refusal) {
  if (refusal.pushback_ms <= 0) return;  // none, or "never"
  pushbacks_[refusal.reason]->Observe(static_cast<double>(refusal.pushback_ms) * 1e-3);
}

void RequestMetrics::RecordCopies(CopyPath path, uint64_t to_device_bytes,
                                  uint64_t from_device_bytes) {
  Copies& copies = copies_[static_cast<size_t>(path)];
  copies.to_device.fetch_add(to_device_bytes, std::memory_order_relaxed);
  copies.from_device.fetch_add(from_device_bytes, std::memory_order_relaxed);
}

std::vector<std::pair<std::string, RequestTotals>> RequestMetrics::Totals() const {
  std::vector<std::pair<std::string, RequestTotals>> all;
  for (const auto& op : operators_) {
    const Histogram& success = *op->stages[kStages];
    const uint64_t requests = op->request_bytes.count();
    if (requests == 0) continue;  // most operators are never called
    // A request that ends between the two counts must not make the failures negative.
    all.emplace_back(op->name,
                     RequestTotals{.requests = requests,
                                   .failed = requests - std::min(success.count(), requests),
                                   .success_seconds = success.sum(),
                                   .request_bytes = Bytes(op->request_bytes),
                                   .response_bytes = Bytes(op->response_bytes)});
  }
  return all;
}

// A series has one or several slots, and is the sum over them. Cells are there for operators that a
// tenant has called, and samples for outcomes that have happened.
void RequestMetrics::CollectTenants(const TenantSeries& tenants,
                                    std::vector<prometheus::MetricFamily>* families) const {
  MetricFamilyBuilder requests("opserve_requests_total", "Requests answered, by outcome.",
                               MetricType::Counter);
  MetricFamilyBuilder rejections("opserve_admission_rejections_total",
                                 "Requests refused, by reason.", MetricType::Counter);
  const auto count = [](const std::atomic<uint64_t>& value) {
    return value.load(std::memory_order_relaxed);
  };
  for (const TenantSeries::Series& series : tenants.all()) {
    std::vector<const PerTenant*> counted;
    // A series may stand for several slots: those of tenants that are shown together.
    for (size_t slot = series.begin; slot < series.end; ++slot) {
      const PerTenant* tenant = tenants_[slot].load(std::memory_order_acquire);
      if (tenant != nullptr) counted.push_back(tenant);
    }
    for (size_t op = 0; op < operators_.size(); ++op) {
      std::vector<const PerTenant::Cells*> cells;
      for (const PerTenant* tenant : counted) {
        const auto* of_operator = tenant->of_operator[op].load(std::memory_order_acquire);
        if (of_operator != nullptr) cells.push_back(of_operator);
      }
      // A series for each outcome that never was would be thousands.
      for (size_t device = 0; device <= devices_.size() && !cells.empty(); ++device) {
        for (int code = 0; code < kCodes; ++code) {
          uint64_t sum = 0;
          for (const auto* of_operator : cells) sum += count((*of_operator)[device][code]);
          if (sum == 0) continue;
          requests.Add({{"operator", operators_[op]->name},
                        {"tenant", series.label},
                        {"device", DeviceLabel(device)},
                        {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}},
                       static_cast<double>(sum));
        }
      }
    }
    for (size_t reason = 0; reason < kReasonCount; ++reason) {
      // Unlike outcomes, these have a series from the start, since there are only a few of them.
      if (!FactsAt(reason).is_rejection) continue;
      uint64_t sum = 0;
      for (const PerTenant* tenant : counted) sum += count(tenant->rejections[reason]);
      rejections.Add({{"tenant", series.label}, {"reason", std::string(FactsAt(reason).text)}},
                     static_cast<double>(sum));
    }
  }
  families->push_back(requests.Build());
  families->push_back(rejections.Build());
}

void RequestMetrics::CollectOperators(std::vector<prometheus::MetricFamily>* families) const {
  MetricFamilyBuilder durations("opserve_request_duration_seconds",
                                "Time of successful requests by stage; the stages sum to total.",
                                MetricType::Histogram);
  MetricFamilyBuilder request_bytes("opserve_request_bytes", "Size of requests as received.",
                                    MetricType::Histogram);
  MetricFamilyBuilder response_bytes(
      "opserve_response_bytes", "Size of successful responses as sent.", MetricType::Histogram);
  MetricFamilyBuilder deadline_misses(
      "opserve_deadline_misses_total",
      "Requests that ended with DEADLINE_EXCEEDED, by the last stage they had got to.",
      MetricType::Counter);
  MetricFamilyBuilder cancelled(
      "opserve_cancelled_requests_total",
      "Requests that their callers left before the answer, by the last stage they had reached.",
      MetricType::Counter);
  for (const auto& op : operators_) {
    if (op->request_bytes.count() == 0) continue;  // most operators are never called
    for (size_t stage = 0; stage < kStages; ++stage) {
      deadline_misses.Add({{"operator", op->name}, {"stage", std::string(kStageNames[stage])}},
                          static_cast<double>(op->deadline_misses[stage].load()));
    }
    for (int stage = 0; stage <= kStages; ++stage) {
      // The last histogram is the total's.
      const auto name = stage < kStages ? kStageNames[stage] : "total";
      durations.Add({{"operator", op->name}, {"stage", std::string(name)}},
                    op->stages[stage]->Collect());
    }
    request_bytes.Add({{"operator", op->name}}, op->request_bytes.Collect());
    response_bytes.Add({{"operator", op->name}}, op->response_bytes.Collect());
  }
  for (size_t stage = 0; stage < kStages; ++stage) {
    cancelled.Add({{"stage", std::string(kStageNames[stage])}},
                  static_cast<double>(cancelled_[stage].load()));
  }
  for (MetricFamilyBuilder* builder :
       {&durations, &request_bytes, &response_bytes, &deadline_misses, &cancelled}) {
    families->push_back(builder->Build());
  }
}

void RequestMetrics::CollectReasons(std::vector<prometheus::MetricFamily>* families) const {
  MetricFamilyBuilder shm_rejections("opserve_shm_rejections_total",
                                     "Refusals that concern shared memory, by reason.",
                                     MetricType::Counter);
  MetricFamilyBuilder pushbacks("opserve_retry_pushback_seconds",
                                "How long clients were told to wait before they try again, by why "
                                "they were refused. (Those told never to are not in it.)",
                                MetricType::Histogram);
  for (size_t reason = 0; reason < kReasonCount; ++reason) {
    const ReasonFacts facts = FactsAt(reason);
    const std::string name(facts.text);
    const uint64_t refused = shm_rejections_[reason].load(std::memory_order_relaxed);
    // Reasons of shared memory have a series from the start, so that a first refusal shows as an
    // increase.
    if (refused > 0 || facts.is_of_shared_memory) {
      shm_rejections.Add({{"reason", name}}, static_cast<double>(refused));
    }
    // Likewise those that pass with time.
    if (pushbacks_[reason]->count() > 0 || facts.passing != Passing::kNo) {
      pushbacks.Add({{"reason", name}}, pushbacks_[reason]->Collect());
    }
  }
  families->push_back(shm_rejections.Build());
  families->push_back(pushbacks.Build());
}

prometheus::MetricFamily RequestMetrics::CollectCopies() const {
  MetricFamilyBuilder copies("opserve_host_copy_bytes_total",
                             "Tensor bytes copied between host and device.", MetricType::Counter);
  constexpr const char* kPathNames[kCopyPaths] = {"grpc", "shm"};
  for (size_t path = 0; path < kCopyPaths; ++path) {
    copies.Add({{"direction", "h2d"}, {"path", kPathNames[path]}},
               static_cast<double>(copies_[path].to_device.load()));
    copies.Add({{"direction", "d2h"}, {"path", kPathNames[path]}},
               static_cast<double>(copies_[path].from_device.load()));
  }
  return copies.Build();
}

std::vector<prometheus::MetricFamily> RequestMetrics::Collect(const TenantSeries& tenants) const {
  std::vector<prometheus::MetricFamily> families;
  CollectTenants(tenants, &families);
  CollectOperators(&families);
  families.push_back(CollectCopies());
  families.push_back(
      MetricFamilyBuilder("opserve_contiguous_copies_total",
                          "Views copied on a device, for functions that take contiguous tensors "
                          "only.",
                          MetricType::Counter)
          .Add({}, static_cast<double>(contiguous_copies_.load()))
          .Build());
  CollectReasons(&families);
  return families;
}

}  // namespace opserve::server
