#include "server/deposit/deposit_metrics.h"

namespace opserve::server {

const char* DepositMetrics::ResultName(size_t result) {
  // In the order of Result.
  static constexpr const char* kNames[kResults] = {"moved", "refused", "lost", "unconfirmed"};
  return kNames[result];
}

std::vector<prometheus::MetricFamily> DepositMetrics::Collect() const {
  // In the order of Direction.
  constexpr const char* kDirectionNames[kDirections] = {"in", "out"};
  MetricFamilyBuilder tensors(
      "opserve_deposits_total",
      "Resident tensors of daemons that end: of others that came here (in), and of this one (out). "
      "They have moved, were refused by the receiver, were lost (in: their batch broke off; out: "
      "there was no time or no connection), or were sent without an answer (unconfirmed).",
      prometheus::MetricType::Counter);
  MetricFamilyBuilder programs(
      "opserve_deposited_programs_total",
      "Prepared programs of daemons that end: of others that came here (in), and of this one "
      "(out). "
      "Their callers prepare those anew that were refused by the receiver or were not sent (lost).",
      prometheus::MetricType::Counter);
  MetricFamilyBuilder bytes("opserve_deposited_bytes_total",
                            "Bytes of resident tensors that moved between daemons.",
                            prometheus::MetricType::Counter);
  for (size_t direction = 0; direction < kDirections; ++direction) {
    for (size_t result = 0; result < kResults; ++result) {
      tensors.Add({{"direction", kDirectionNames[direction]}, {"result", ResultName(result)}},
                  static_cast<double>(tensors_[direction][result].load(std::memory_order_relaxed)));
    }
    for (const Result result : {kMoved, kRefused, kLost}) {
      programs.Add(
          {{"direction", kDirectionNames[direction]}, {"result", ResultName(result)}},
          static_cast<double>(programs_[direction][result].load(std::memory_order_relaxed)));
    }
    bytes.Add({{"direction", kDirectionNames[direction]}},
              static_cast<double>(bytes_[direction].load(std::memory_order_relaxed)));
  }
  MetricFamilyBuilder held(
      "opserve_deposit_held_bytes",
      "Device memory of other daemons' tensors that were accepted and are not complete.",
      prometheus::MetricType::Gauge);
  held.Add({}, static_cast<double>(held_bytes_.load(std::memory_order_relaxed)));
  return {tensors.Build(), programs.Build(), bytes.Build(), held.Build()};
}

}  // namespace opserve::server
