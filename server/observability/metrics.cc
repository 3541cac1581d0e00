#include "server/observability/metrics.h"

#include <limits>

namespace opserve::server {

MetricFamilyBuilder::MetricFamilyBuilder(std::string name, std::string help,
                                         prometheus::MetricType type) {
  family_.name = std::move(name);
  family_.help = std::move(help);
  family_.type = type;
}

MetricFamilyBuilder& MetricFamilyBuilder::Add(const MetricLabels& labels, double value) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  if (family_.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return *this;
}

MetricFamilyBuilder& MetricFamilyBuilder::Add(const MetricLabels& labels,
                                              prometheus::ClientMetric::Histogram value) {
  prometheus::ClientMetric& metric = family_.metric.emplace_back();
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  metric.histogram = std::move(value);
  return *this;
}

void Histogram::Observe(double value) {
  // One by one: most values are small, and in one of the first buckets.
  // This loop beats a binary search there.
  size_t bucket = 0;
  while (bucket < bounds_.size() && bounds_[bucket] < value) ++bucket;
  buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

uint64_t Histogram::count() const {
  uint64_t count = 0;
  for (const auto& bucket : buckets_) count += bucket.load(std::memory_order_relaxed);
  return count;
}

prometheus::ClientMetric::Histogram Histogram::Collect() const {
  prometheus::ClientMetric::Histogram histogram;
  uint64_t cumulative = 0;
  // Prometheus's buckets are cumulative.
  for (size_t i = 0; i <= bounds_.size(); ++i) {
    cumulative += buckets_[i].load(std::memory_order_relaxed);
    const double bound = i < bounds_.size() ? bounds_[i] : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({.cumulative_count = cumulative, .upper_bound = bound});
  }
  // From the same reads as the buckets, so that both agree while requests end.
  histogram.sample_count = cumulative;
  histogram.sample_sum = sum_.load(std::memory_order_relaxed);
  return histogram;
}

// The contract's span, in steps that follow 1, 2.5, 5.
absl::Span<const double> SecondsBounds() {
  static constexpr double kBounds[] = {10e-6,  25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3,
                                       2.5e-3, 5e-3,  10e-3, 25e-3,  50e-3,  100e-3, 250e-3,
                                       500e-3, 1,     2.5,   5,      10,     30,     60};
  return kBounds;
}

absl::Span<const double> BytesBounds() {
  static constexpr double kBounds[] = {0x1p8,  0x1p10, 0x1p12, 0x1p14, 0x1p16, 0x1p18, 0x1p20,
                                       0x1p22, 0x1p24, 0x1p26, 0x1p28, 0x1p30, 0x1p32};
  return kBounds;
}

}  // namespace opserve::server
