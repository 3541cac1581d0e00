// W3C Trace Context: finds a request again in the logs of every program that it passed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace opserve::server {

// The metadata key that callers send theirs in.
inline constexpr char kTraceParentKey[] = "traceparent";

// The place of one request in its trace.
struct TraceContext {
  uint64_t trace_high = 0;  // the trace, whole: 128 bits
  uint64_t trace_low = 0;
  uint64_t span = 0;    // this request
  uint64_t parent = 0;  // the span of the caller that made it; 0: the trace begins here

  // 32 and 16 lower-case hexadecimal digits.
  std::string TraceId() const;
  std::string SpanId() const;
  std::string ParentId() const;
};

// The context of a request that came with `traceparent` (of version 00, or a later one as far as
// that is compatible), with a new span. Without one, or with one that is not valid, a trace begins:
// the standard wants such a value ignored. Thread-safe; takes no lock.
TraceContext BeginSpan(std::optional<absl::string_view> traceparent);

}  // namespace opserve::server
