#include "client/cli/text/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace opserve::cli {
namespace {

constexpr int kBucketBits = 7;
constexpr size_t kBucketsPerDoubling = size_t{1} << kBucketBits;
// Below this, a bucket holds a single number: the doubling from 128 to 256 has 128 numbers.
constexpr uint64_t kExactBelow = 2 * kBucketsPerDoubling;
constexpr size_t kDoublings = 63 - (kBucketBits + 1);  // up to the largest int64_t
constexpr size_t kBuckets = kExactBelow + kDoublings * kBucketsPerDoubling;

// How many low bits the bucket of `value` does not tell apart.
int DroppedBits(uint64_t value) {
  return std::max(static_cast<int>(std::bit_width(value)) - (kBucketBits + 1), 0);
}

size_t BucketOf(uint64_t value) {
  const int dropped = DroppedBits(value);
  // A bucket's index is its doubling's offset plus the leading 8 bits of the value.
  return dropped * kBucketsPerDoubling + (value >> dropped);
}

// The middle of a bucket.
int64_t ValueOf(size_t bucket) {
  if (bucket < kExactBelow) return static_cast<int64_t>(bucket);
  const size_t dropped = bucket / kBucketsPerDoubling - 1;
  const uint64_t kept = bucket - dropped * kBucketsPerDoubling;
  return static_cast<int64_t>((kept << dropped) + (uint64_t{1} << dropped) / 2);
}

}  // namespace

LatencyHistogram::LatencyHistogram() : counts_(kBuckets) {}

void LatencyHistogram::Record(absl::Duration latency) {
  const int64_t ns = std::max<int64_t>(absl::ToInt64Nanoseconds(latency), 0);
  ++counts_[BucketOf(static_cast<uint64_t>(ns))];
  ++count_;
  min_ns_ = std::min(min_ns_, ns);
  max_ns_ = std::max(max_ns_, ns);
}

absl::Duration LatencyHistogram::min() const {
  return count_ == 0 ? absl::ZeroDuration() : absl::Nanoseconds(min_ns_);
}

absl::Duration LatencyHistogram::Percentile(double percent) const {
  if (count_ == 0) return absl::ZeroDuration();
  // The smallest rank that covers the share; between 1 and the count for 0 and 100.
  const auto wanted = static_cast<uint64_t>(std::ceil(percent * static_cast<double>(count_) / 100));
  const uint64_t rank = std::clamp<uint64_t>(wanted, 1, count_);
  size_t bucket = 0;
  for (uint64_t below = counts_[0]; below < rank; below += counts_[bucket]) ++bucket;
  // The middle of a bucket may lie outside of all values that were recorded.
  return absl::Nanoseconds(std::clamp(ValueOf(bucket), min_ns_, max_ns_));
}

}  // namespace opserve::cli
