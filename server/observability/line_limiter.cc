#include "server/observability/line_limiter.h"

#include <array>
#include <iterator>
#include <utility>

#include "nlohmann/json.hpp"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

std::array<std::atomic<uint64_t>, std::size(kLimitedEvents)> left_out_lines = {};

}  // namespace

uint64_t LeftOutLogLines(LimitedEvent event) {
  return left_out_lines[static_cast<size_t>(event)].load(std::memory_order_relaxed);
}

bool LineLimiter::Admit(LogSeverity severity, absl::Time now, absl::Duration interval, int burst) {
  if (!IsLogged(severity)) return false;
  const int64_t now_ns = absl::ToUnixNanos(now);
  const int64_t interval_ns = absl::ToInt64Nanoseconds(interval);
  int64_t due = due_ns_.load(std::memory_order_relaxed);
  // Due so far ahead means that the burst is used up.
  while (due <= now_ns + (burst - 1) * interval_ns) {
    const int64_t next = std::max(due, now_ns) + interval_ns;
    if (due_ns_.compare_exchange_weak(due, next, std::memory_order_relaxed)) return true;
  }
  AddLeftOut(1);
  return false;
}

size_t LineLimiter::Write(LogSeverity severity, absl::string_view event,
                          nlohmann::ordered_json fields, absl::Duration interval) {
  // The lines that were left out are told once, by the next one that is written.
  if (const uint64_t left_out = left_out_.exchange(0, std::memory_order_relaxed)) {
    fields["left_out"] = left_out;
  }
  const size_t bytes = Log(severity, event, fields);
  Charge(bytes, interval);
  return bytes;
}

void LineLimiter::Charge(size_t bytes, absl::Duration interval) {
  // Admit has charged for the first.
  const int64_t more = bytes == 0 ? 0 : static_cast<int64_t>((bytes - 1) / kBytes);
  due_ns_.fetch_add(more * absl::ToInt64Nanoseconds(interval), std::memory_order_relaxed);
}

void LineLimiter::AddLeftOut(uint64_t lines) {
  left_out_.fetch_add(lines, std::memory_order_relaxed);
  left_out_lines[static_cast<size_t>(event_)].fetch_add(lines, std::memory_order_relaxed);
}

}  // namespace opserve::server
