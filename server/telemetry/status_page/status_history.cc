#include "server/telemetry/status_page/status_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "server/telemetry/status_page/status_page.h"

namespace opserve::server {
namespace {

// No label's value of the daemon's metrics has it; one that had it would only be shown as two.
constexpr char kSeparator = '\x1f';
// Of a node in the map, beside its contents.
constexpr size_t kNodeBytes = 32;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Sample = absl::flat_hash_map<std::string, double>;

const std::string* Find(const prometheus::ClientMetric& metric, absl::string_view label) {
  for (const auto& [name, value] : metric.label) {
    if (name == label) return &value;
  }
  return nullptr;
}

std::string BoundText(double bound) { return std::isinf(bound) ? "+Inf" : absl::StrCat(bound); }

// Adds a metric's values to the sums of `figure`.
void AddTo(Sample& sample, const Figure& figure, prometheus::MetricType type,
           const prometheus::ClientMetric& metric) {
  if (figure.where_label != nullptr) {
    const std::string* const value = Find(metric, figure.where_label);
    if (value == nullptr || *value != figure.where_value) return;
  }
  std::string name = figure.key;
  for (const char* label : figure.labels) {
    // The bounds of buckets come below.
    if (label == nullptr || label == absl::string_view("le")) continue;
    const std::string* const value = Find(metric, label);
    if (value == nullptr) return;
    absl::StrAppend(&name, std::string(1, kSeparator), *value);
  }
  if (type == prometheus::MetricType::Histogram) {
    for (const prometheus::ClientMetric::Bucket& bucket : metric.histogram.bucket) {
      sample[absl::StrCat(name, std::string(1, kSeparator), BoundText(bucket.upper_bound))] +=
          static_cast<double>(bucket.cumulative_count);
    }
    return;
  }
  const double value =
      type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  // Of states and the like one label's value is 1 and the others are 0, which goes without saying.
  if (figure.labels[1] != nullptr && value == 0) return;
  sample[name] += value;
}

Sample FiguresOf(absl::Span<const prometheus::MetricFamily> families) {
  Sample sample;
  for (const prometheus::MetricFamily& family : families) {
    for (const Figure& figure : Figures()) {
      if (family.name != figure.metric) continue;
      for (const prometheus::ClientMetric& metric : family.metric) {
        AddTo(sample, figure, family.type, metric);
      }
    }
  }
  return sample;
}

std::string NumberText(double value) {
  if (!std::isfinite(value)) return "null";
  // Whole numbers stay exact, since counters are compared with later ones.
  if (value == std::floor(value) && std::abs(value) < 0x1p53) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  return absl::StrFormat("%.12g", value);
}

std::string JsonText(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// One number if all are equal, else a list.
std::string ValuesText(absl::Span<const double> values) {
  const auto is_first = [&](double value) {
    return value == values[0] || (std::isnan(value) && std::isnan(values[0]));
  };
  if (std::all_of(values.begin(), values.end(), is_first)) return NumberText(values[0]);
  std::string text = "[";
  for (const double value : values) {
    absl::StrAppend(&text, text.size() == 1 ? "" : ",", NumberText(value));
  }
  return text + "]";
}

}  // namespace

void StatusHistory::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
  }
  thread_.join();
}

void StatusHistory::Start(std::function<std::vector<prometheus::MetricFamily>()> collect) {
  thread_ = std::thread([this, collect = std::move(collect)] {
    // After a time in which the thread did not run, as when the machine was suspended, periods that
    // have passed get no samples.
    for (absl::Time next = absl::Now();; next = std::max(next + kPeriod, absl::Now())) {
      {
        absl::MutexLock lock(&mutex_);
        if (mutex_.AwaitWithDeadline(absl::Condition(&is_ending_), next)) return;
      }
      // Without the lock, so that pages are answered meanwhile.
      Add(collect(), absl::Now());
    }
  });
}

size_t StatusHistory::Cost(const Name& name) {
  return sizeof(std::pair<const Name, Series>) + name.capacity() + kNodeBytes;
}

void StatusHistory::Add(absl::Span<const prometheus::MetricFamily> families, absl::Time now) {
  const Sample sample = FiguresOf(families);
  absl::MutexLock lock(&mutex_);
  const uint64_t number = samples_++;
  const size_t place = number % kSamples;
  times_[place] = now;
  for (auto series = series_.begin(); series != series_.end();) {
    // The place had the oldest sample. A series without a value in the whole ring goes.
    series->second.values[place] = kNone;
    if (number - series->second.last < kSamples) {
      ++series;
      continue;
    }
    bytes_ -= Cost(series->first);
    series = series_.erase(series);
  }
  left_out_ = 0;
  for (const auto& [name, value] : sample) {
    auto series = series_.find(name);
    if (series == series_.end()) {
      // New series are left out; those that are there go on.
      if (bytes_ + Cost(name) > kMaxBytes) {
        ++left_out_;
        continue;
      }
      series = series_.emplace(name, Series()).first;
      series->second.values.fill(kNone);
      bytes_ += Cost(series->first);
    }
    series->second.values[place] = value;
    series->second.last = number;
  }
}

std::string StatusHistory::ToJson(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  std::string text = absl::StrCat("{\"now\":", absl::ToUnixMillis(now), ",\"times\":[");
  std::vector<size_t> places;  // the oldest first
  for (uint64_t i = samples_ - std::min<uint64_t>(samples_, kSamples); i < samples_; ++i) {
    places.push_back(i % kSamples);
    absl::StrAppend(&text, places.size() == 1 ? "" : ",",
                    absl::ToUnixMillis(times_[places.back()]));
  }
  absl::StrAppend(&text, "],\"series\":[");
  bool is_first = true;
  std::vector<double> values(places.size());
  for (const auto& [name, series] : series_) {
    for (size_t i = 0; i < places.size(); ++i) values[i] = series.values[places[i]];
    // A series is a list: its key, the values of its labels, its numbers.
    absl::StrAppend(&text, std::exchange(is_first, false) ? "[" : ",[");
    for (const absl::string_view part : absl::StrSplit(name, kSeparator)) {
      absl::StrAppend(&text, JsonText(part), ",");
    }
    absl::StrAppend(&text, ValuesText(values), "]");
  }
  return text + "]}\n";
}

size_t StatusHistory::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

size_t StatusHistory::left_out_series() const {
  absl::MutexLock lock(&mutex_);
  return left_out_;
}

}  // namespace opserve::server
