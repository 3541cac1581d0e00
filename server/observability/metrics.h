// Metrics in Prometheus's model, recorded without locks.
//
// Values are atomics at fixed places, so that recording costs a few nanoseconds and a scrape never
// takes a lock that a request holds. Labels are bounded: operators come from the catalogue, codes
// and reasons from closed sets. Names and labels are a contract with dashboards and alerts.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "prometheus/metric_family.h"
#include "server/observability/stage_clock.h"

namespace opserve::server {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// A family being collected: name, help and samples.
class MetricFamilyBuilder {
 public:
  MetricFamilyBuilder(std::string name, std::string help, prometheus::MetricType type);

  // Adds a counter's or gauge's value, as the family's type says.
  MetricFamilyBuilder& Add(const MetricLabels& labels, double value);
  MetricFamilyBuilder& Add(const MetricLabels& labels, prometheus::ClientMetric::Histogram value);

  prometheus::MetricFamily Build() { return std::move(family_); }

 private:
  prometheus::MetricFamily family_;
};

// A histogram with fixed upper bounds. Thread-safe.
class Histogram {
 public:
  // `bounds`: ascending, at most kMaxBounds of them; must outlive the histogram.
  explicit Histogram(absl::Span<const double> bounds) : bounds_(bounds) {}

  void Observe(double value);
  uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  prometheus::ClientMetric::Histogram Collect() const;

 private:
  static constexpr int kMaxBounds = 24;
  const absl::Span<const double> bounds_;
  std::array<std::atomic<uint64_t>, kMaxBounds + 1> buckets_ = {};  // the last is unbounded
  std::atomic<double> sum_ = 0;
};

// 10 us to 60 s.
absl::Span<const double> SecondsBounds();
// 256 bytes to 4 GiB.
absl::Span<const double> BytesBounds();

}  // namespace opserve::server
