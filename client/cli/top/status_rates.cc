#include "client/cli/top/status_rates.h"

#include <algorithm>

#include "client/cpp/time_message.h"

namespace opserve::cli {
namespace {

const v1::DeviceStatus& DeviceIn(const v1::AdminStatus& status, uint32_t id) {
  for (const v1::DeviceStatus& device : status.devices()) {
    if (device.device() == id) return device;
  }
  // Zeros: a new device has counted from 0.
  return v1::DeviceStatus::default_instance();
}

const v1::TenantStatus& TenantIn(const v1::AdminStatus& status, const std::string& name) {
  for (const v1::TenantStatus& tenant : status.tenants()) {
    if (tenant.name() == name) return tenant;
  }
  return v1::TenantStatus::default_instance();
}

const v1::OperatorStatus& OperatorIn(const v1::AdminStatus& status, const std::string& name) {
  for (const v1::OperatorStatus& op : status.operators()) {
    if (op.name() == name) return op;
  }
  return v1::OperatorStatus::default_instance();
}

double LaneSeconds(const v1::TenantStatus& tenant) {
  double seconds = 0;
  for (const v1::TenantOnDevice& device : tenant.devices()) seconds += device.lane_seconds();
  return seconds;
}

// Counters that ran backwards began anew: a tenant was taken out of the configuration and came
// back.
template <typename Count>
double Growth(Count before, Count now) {
  // The new count is all since the new beginning.
  return now < before ? static_cast<double>(now) : static_cast<double>(now - before);
}

template <typename Message>
uint64_t Successes(const Message& status) {
  // Two counters are read one after the other; more failures than requests can be seen for a
  // moment.
  return status.requests() - std::min(status.requests(), status.failed_requests());
}

// From one sample of a TenantStatus or an OperatorStatus to the next.
template <typename Message>
RequestRates RequestRatesOf(const Message& before, const Message& now, double seconds) {
  const auto per_second = [seconds](double growth) { return seconds == 0 ? 0 : growth / seconds; };
  RequestRates rates = {
      .requests_per_second = per_second(Growth(before.requests(), now.requests())),
      .failures_per_second = per_second(Growth(before.failed_requests(), now.failed_requests())),
      .bytes_per_second = per_second(Growth(before.request_bytes(), now.request_bytes()) +
                                     Growth(before.response_bytes(), now.response_bytes()))};
  const double successes = Growth(Successes(before), Successes(now));
  const double took = Growth(before.success_seconds(), now.success_seconds());
  // A daemon of before does not tell the time.
  if (successes > 0 && took > 0) rates.latency = absl::Seconds(took / successes);
  return rates;
}

TenantRates SumOverDevices(const v1::TenantStatus& tenant) {
  TenantRates rates{.name = tenant.name(),
                    .weight = tenant.weight(),
                    .pending_requests = tenant.pending_requests(),
                    .resident_bytes = tenant.resident_bytes(),
                    .prepared_programs = tenant.prepared_programs()};
  for (int i = 0; i < tenant.devices_size(); ++i) {
    const v1::TenantOnDevice& device = tenant.devices(i);
    rates.queued_requests += device.queued_requests();
    rates.device_bytes += device.device_bytes();
    // The device where the tenant waits most tells more than a mean.
    rates.lag_seconds =
        i == 0 ? device.lag_seconds() : std::max(rates.lag_seconds, device.lag_seconds());
  }
  return rates;
}

}  // namespace

StatusRates RatesOf(const v1::AdminStatus* earlier, const v1::AdminStatus& status) {
  StatusRates rates;
  const absl::Time start = DecodeTime(status.start_time());
  // A daemon that was started anew has counted from 0.
  rates.is_since_start = earlier == nullptr || DecodeTime(earlier->start_time()) != start;
  const v1::AdminStatus& from =
      rates.is_since_start ? v1::AdminStatus::default_instance() : *earlier;
  rates.interval =
      DecodeTime(status.time()) - (rates.is_since_start ? start : DecodeTime(from.time()));
  // The daemon's clock may have been set back.
  rates.interval = std::max(rates.interval, absl::ZeroDuration());
  const double seconds = absl::ToDoubleSeconds(rates.interval);
  const auto per_second = [seconds](double growth) { return seconds == 0 ? 0 : growth / seconds; };

  for (const v1::DeviceStatus& device : status.devices()) {
    const v1::DeviceStatus& before = DeviceIn(from, device.device());
    rates.device_requests_per_second.push_back(
        per_second(Growth(before.completed_requests(), device.completed_requests())));
  }
  double all_lane_seconds = 0;
  for (const v1::TenantStatus& tenant : status.tenants()) {
    const v1::TenantStatus& before = TenantIn(from, tenant.name());
    TenantRates& to = rates.tenants.emplace_back(SumOverDevices(tenant));
    to.requests = RequestRatesOf(before, tenant, seconds);
    to.lane_share = Growth(LaneSeconds(before), LaneSeconds(tenant));
    all_lane_seconds += to.lane_share;
  }
  if (all_lane_seconds > 0) {
    for (TenantRates& tenant : rates.tenants) tenant.lane_share /= all_lane_seconds;
  }
  for (const v1::OperatorStatus& op : status.operators()) {
    rates.operators.push_back(
        {.name = op.name(), .requests = RequestRatesOf(OperatorIn(from, op.name()), op, seconds)});
  }
  return rates;
}

}  // namespace opserve::cli
