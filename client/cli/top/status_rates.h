// Rates of the daemon's work, from two samples of its status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "opserve/v1/admin_service.pb.h"

namespace opserve::cli {

// Requests of a tenant or an operator.
struct RequestRates {
  double requests_per_second = 0;
  double failures_per_second = 0;
  double bytes_per_second = 0;  // received and sent
  // Mean from receipt to answer of those with success; none: there were none.
  std::optional<absl::Duration> latency = std::nullopt;
};

// A tenant over all devices.
struct TenantRates {
  std::string name = {};
  uint32_t weight = 0;
  uint32_t pending_requests = 0;
  uint32_t queued_requests = 0;
  uint64_t device_bytes = 0;
  uint64_t resident_bytes = 0;     // of these, of resident tensors
  uint32_t prepared_programs = 0;  // handles
  RequestRates requests = {};
  double lane_share = 0;   // of the lane time that all tenants had, 0 to 1; 0 if they had none
  double lag_seconds = 0;  // on the device where it is furthest behind; negative: ahead
};

struct OperatorRates {
  std::string name = {};
  RequestRates requests = {};
};

struct StatusRates {
  absl::Duration interval = absl::ZeroDuration();  // the rates are means over this time
  bool is_since_start = false;
  std::vector<double> device_requests_per_second = {};  // as status.devices()
  std::vector<TenantRates> tenants = {};                // as status.tenants()
  std::vector<OperatorRates> operators = {};            // as status.operators()
};

// The rates from `earlier` to `status`. With earlier == nullptr, or if the daemon was restarted
// between them, from the daemon's start. Counters missing in `earlier` were zero then.
StatusRates RatesOf(const v1::AdminStatus* earlier, const v1::AdminStatus& status);

}  // namespace opserve::cli
