// The counters of requests.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/status/reason.h"
#include "server/observability/metrics.h"
#include "server/observability/request_totals.h"
#include "server/observability/stage_clock.h"
#include "server/observability/tenant_series.h"
#include "server/observability/tenant_slot.h"

namespace opserve::server {

// The way tensors' bytes come and go.
enum class CopyPath { kGrpc, kShm };
inline constexpr size_t kCopyPaths = 2;

// Thread-safe.
class RequestMetrics {
 public:
  // `operators`: the catalogue's names. `devices`: the ids that may occur.
  RequestMetrics(std::vector<std::string> operators, std::vector<int32_t> devices);
  ~RequestMetrics();

  // Where a request belongs: an operator's position in the list; kProgram for several invocations;
  // kUnknown if it was refused before that was known.
  static constexpr int kProgram = -1;
  static constexpr int kUnknown = -2;

  struct Request {
    std::optional<uint32_t> tenant = std::nullopt;  // its id; none: its tenant is unknown
    int op = kUnknown;
    std::optional<int32_t> device = std::nullopt;  // none: it did not get to one
    absl::Status status = {};
    const StageClock* clock = nullptr;
    uint64_t request_bytes = 0;   // as received
    uint64_t response_bytes = 0;  // as sent; 0 on failure
  };
  void Record(const Request& request);

  // A call that was refused before it could be recorded as a request; counted if `why` has one of
  // the reasons there are. `tenant`: as in Request.
  void RecordRejection(std::optional<uint32_t> tenant, const absl::Status& why);

  // A client that was refused something else than a request was told to wait, if `why` says so.
  void RecordPushback(const absl::Status& why);

  // A refusal on a connection for shared memory, which is no request; those of requests for a
  // reason of shared memory are counted with them. No effect without a reason there is.
  void RecordSharedMemoryRejection(const absl::Status& why);

  // Host bytes copied on behalf of requests. Shared memory that a device uses in place is not.
  void RecordCopies(CopyPath path, uint64_t to_device_bytes, uint64_t from_device_bytes);

  // Views that were copied on a device, for functions that take contiguous tensors only.
  void RecordContiguousCopies(uint32_t copies) {
    contiguous_copies_.fetch_add(copies, std::memory_order_relaxed);
  }

  std::vector<prometheus::MetricFamily> Collect(const TenantSeries& tenants) const;

  // By operator, in the order of the catalogue, of those that were called; then "program" and
  // "unknown".
  std::vector<std::pair<std::string, RequestTotals>> Totals() const;

 private:
  static constexpr int kCodes = 17;

  struct Copies {
    std::atomic<uint64_t> to_device = 0;
    std::atomic<uint64_t> from_device = 0;
  };

  struct PerOperator {
    explicit PerOperator(std::string name);
    std::string name;
    std::vector<std::unique_ptr<Histogram>> stages;  // kStages of them, then the total
    Histogram request_bytes{BytesBounds()};
    Histogram response_bytes{BytesBounds()};
    std::array<std::atomic<uint64_t>, kStages> deadline_misses = {};
  };

  // The counters of one tenant (or of those that share a slot).
  struct PerTenant {
    // Requests of one operator by device (the last: none) and code.
    using Cells = std::vector<std::array<std::atomic<uint64_t>, kCodes>>;

    explicit PerTenant(size_t operators) : of_operator(operators) {}
    ~PerTenant();
    // By operator; made when first needed, because most tenants call few.
    std::vector<std::atomic<Cells*>> of_operator;
    std::array<std::atomic<uint64_t>, kReasonCount> rejections = {};
  };

  // A refusal's own details.
  struct Refusal {
    size_t reason;  // a Reason but kNone
    int64_t pushback_ms;
  };
  static std::optional<Refusal> RefusalOf(const absl::Status& why);

  void RecordPushback(const Refusal& refusal);
  void CollectTenants(const TenantSeries& tenants,
                      std::vector<prometheus::MetricFamily>* families) const;
  void CollectOperators(std::vector<prometheus::MetricFamily>* families) const;
  void CollectReasons(std::vector<prometheus::MetricFamily>* families) const;
  prometheus::MetricFamily CollectCopies() const;

  PerTenant& Of(std::optional<uint32_t> tenant);
  PerTenant::Cells& CellsOf(PerTenant& tenant, size_t op) const;
  size_t OperatorIndex(int op) const;
  size_t DeviceIndex(std::optional<int32_t> device) const;
  std::string DeviceLabel(size_t index) const;

  const std::vector<int32_t> devices_;
  std::vector<std::unique_ptr<PerOperator>> operators_;  // then "program" and "unknown"
  // By TenantSlot; made when first needed, because most daemons have few.
  std::array<std::atomic<PerTenant*>, kTenantSlots> tenants_ = {};
  std::array<std::atomic<uint64_t>, kStages> cancelled_ = {};
  std::array<std::atomic<uint64_t>, kReasonCount> shm_rejections_ = {};  // by reason
  std::vector<std::unique_ptr<Histogram>> pushbacks_;                    // likewise
  std::array<Copies, kCopyPaths> copies_ = {};
  std::atomic<uint64_t> contiguous_copies_ = 0;
};

}  // namespace opserve::server
