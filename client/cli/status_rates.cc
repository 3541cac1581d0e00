#include "client/cli/status_rates.h"

#include <algorithm>

#include "client/cpp/time_message.h"

namespace opserve::cli {
namespace {

const v1::DeviceStatus& DeviceIn(const v1::AdminStatus& status, uint32_t id) {
  for (const v1::DeviceStatus& device : status.devices()) {
    if (device.device() == id) return device;
  }
  return v1::DeviceStatus::default_instance();
}

const v1::TenantStatus& TenantIn(const v1::AdminStatus& status, const std::string& name) {
  for (const v1::TenantStatus& tenant : status.tenants()) {
    if (tenant.name() == name) return tenant;
  }
  return v1::TenantStatus::default_instance();
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
  return now < before ? static_cast<double>(now) : static_cast<double>(now - before);
}

TenantRates SumOverDevices(const v1::TenantStatus& tenant) {
  TenantRates rates{.name = tenant.name(),
                    .weight = tenant.weight(),
                    .pending_requests = tenant.pending_requests()};
  for (int i = 0; i < tenant.devices_size(); ++i) {
    const v1::TenantOnDevice& device = tenant.devices(i);
    rates.queued_requests += device.queued_requests();
    rates.device_bytes += device.device_bytes();
    rates.lag_seconds =
        i == 0 ? device.lag_seconds() : std::max(rates.lag_seconds, device.lag_seconds());
  }
  return rates;
}

}  // namespace

StatusRates RatesOf(const v1::AdminStatus* earlier, const v1::AdminStatus& status) {
  StatusRates rates;
  const absl::Time start = DecodeTime(status.start_time());
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
    to.requests_per_second = per_second(Growth(before.requests(), tenant.requests()));
    to.failures_per_second = per_second(Growth(before.failed_requests(), tenant.failed_requests()));
    to.lane_share = Growth(LaneSeconds(before), LaneSeconds(tenant));
    all_lane_seconds += to.lane_share;
  }
  if (all_lane_seconds > 0) {
    for (TenantRates& tenant : rates.tenants) tenant.lane_share /= all_lane_seconds;
  }
  return rates;
}

}  // namespace opserve::cli
