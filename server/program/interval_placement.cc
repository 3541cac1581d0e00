#include "server/program/interval_placement.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/inlined_vector.h"

namespace opserve::server {
namespace {

constexpr size_t kMostBySize = 2048;

// An interval with its place.
struct Placed {
  uint32_t first = 0;
  uint32_t last = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};
// Small programs are planned without asking for memory.
using PlacedInOrder = absl::InlinedVector<Placed, 8>;  // of their offsets

// The lowest offset at which `interval` collides with none of `placed`.
uint64_t LowestFit(const Interval& interval, const PlacedInOrder& placed) {
  uint64_t offset = 0;
  for (const Placed& other : placed) {
    // Used at other steps: both may have the same bytes.
    if (other.last < interval.first || interval.last < other.first) continue;
    // A gap below `other` is large enough. `placed` is in the order of offsets, so it is the
    // lowest.
    if (offset + interval.bytes <= other.begin) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

// Largest first: small intervals fit into the gaps that are left.
uint64_t PlaceBySize(absl::Span<const Interval> intervals, absl::Span<uint64_t> offsets) {
  absl::InlinedVector<uint32_t, 8> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    // By index among equals, so that the same program is always placed alike.
    return std::pair(intervals[b].bytes, a) < std::pair(intervals[a].bytes, b);
  });
  uint64_t total = 0;
  PlacedInOrder placed;
  for (const uint32_t index : order) {
    const Interval& interval = intervals[index];
    const uint64_t offset = LowestFit(interval, placed);
    const Placed here{interval.first, interval.last, offset, offset + interval.bytes};
    offsets[index] = offset;
    total = std::max(total, here.end);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), here,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        here);
  }
  return total;
}

// Memory without an end, of which parts are taken and given back.
class Gaps {
 public:
  Gaps() { Add(0, kEndless); }

  // The start of the smallest gap that holds `bytes`, of equal ones the lowest.
  uint64_t Take(uint64_t bytes) {
    const auto [gap, offset] = *by_size_.lower_bound({bytes, 0});
    Remove(by_offset_.find(offset));
    if (gap > bytes) Add(offset + bytes, gap == kEndless ? kEndless : gap - bytes);
    return offset;
  }

  // Gives [offset, offset + bytes) back; neighbouring gaps become one.
  void Return(uint64_t offset, uint64_t bytes) {
    // The gap behind becomes part of this one.
    const auto next = by_offset_.find(offset + bytes);
    if (next != by_offset_.end()) {
      bytes = next->second == kEndless ? kEndless : bytes + next->second;
      Remove(next);
    }
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        if (bytes != kEndless) bytes += before->second;
        Remove(before);
      }
    }
    Add(offset, bytes);
  }

 private:
  static constexpr uint64_t kEndless = UINT64_MAX;
  using ByOffset = absl::btree_map<uint64_t, uint64_t>;  // bytes

  void Add(uint64_t offset, uint64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void Remove(ByOffset::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    by_offset_.erase(gap);
  }

  ByOffset by_offset_;
  absl::btree_set<std::pair<uint64_t, uint64_t>> by_size_;  // bytes, offset
};

// In the order of the steps at which the intervals begin or, backwards, end.
uint64_t PlaceByStep(absl::Span<const Interval> intervals, bool is_backwards,
                     absl::Span<uint64_t> offsets) {
  // Times run forwards either way. At one step begins are placed before ends free their bytes.
  struct Event {
    int64_t time = 0;
    bool is_end = false;
    uint64_t bytes = 0;
    uint32_t index = 0;
  };
  std::vector<Event> events;
  events.reserve(2 * intervals.size());
  for (uint32_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    const int64_t begin = is_backwards ? -int64_t{interval.last} : int64_t{interval.first};
    const int64_t end = is_backwards ? -int64_t{interval.first} : int64_t{interval.last};
    events.push_back({begin, false, interval.bytes, i});
    events.push_back({end, true, interval.bytes, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.is_end != b.is_end) return b.is_end;
    // The larger of two that begin together goes first, and leaves gaps for the smaller.
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.index < b.index;
  });
  uint64_t total = 0;
  Gaps gaps;
  for (const Event& event : events) {
    if (event.is_end) {
      gaps.Return(offsets[event.index], event.bytes);
    } else {
      offsets[event.index] = gaps.Take(event.bytes);
      total = std::max(total, offsets[event.index] + event.bytes);
    }
  }
  return total;
}

}  // namespace

uint64_t PlaceIntervals(absl::Span<const Interval> intervals, absl::Span<uint64_t> offsets) {
  if (intervals.size() <= kMostBySize) return PlaceBySize(intervals, offsets);
  const uint64_t forwards = PlaceByStep(intervals, /*is_backwards=*/false, offsets);
  std::vector<uint64_t> others(intervals.size());
  const uint64_t backwards = PlaceByStep(intervals, /*is_backwards=*/true, absl::MakeSpan(others));
  if (forwards <= backwards) return forwards;
  std::copy(others.begin(), others.end(), offsets.begin());
  return backwards;
}

}  // namespace opserve::server
