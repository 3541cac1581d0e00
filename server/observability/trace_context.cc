#include "server/observability/trace_context.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace opserve::server {
namespace {

// VERSION "-" TRACE "-" PARENT "-" FLAGS
constexpr size_t kTraceAt = 3;
constexpr size_t kParentAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kBytes = 55;

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// At most 16 digits.
uint64_t HexValue(absl::string_view digits) {
  uint64_t value = 0;
  (void)absl::SimpleHexAtoi(digits, &value);
  return value;
}

// Without a span of its own; none: not valid.
std::optional<TraceContext> Parse(absl::string_view text) {
  // The standard fixes all places of version 00.
  if (text.size() < kBytes || text[kTraceAt - 1] != '-' || text[kParentAt - 1] != '-' ||
      text[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const absl::string_view version = text.substr(0, 2);
  const absl::string_view trace = text.substr(kTraceAt, 32);
  const absl::string_view parent = text.substr(kParentAt, 16);
  for (absl::string_view digits : {version, trace, parent, text.substr(kFlagsAt, 2)}) {
    if (!IsLowerHex(digits)) return std::nullopt;
  }
  // Later versions may say more, behind another dash; ff will never be one.
  if (version == "ff" || (text.size() > kBytes && (version == "00" || text[kBytes] != '-'))) {
    return std::nullopt;
  }
  const TraceContext context = {.trace_high = HexValue(trace.substr(0, 16)),
                                .trace_low = HexValue(trace.substr(16)),
                                .parent = HexValue(parent)};
  const bool has_trace = (context.trace_high | context.trace_low) != 0;
  return has_trace && context.parent != 0 ? std::optional(context) : std::nullopt;
}

uint64_t RandomId() {
  // Ids need not be hard to guess, and each request takes up to three.
  thread_local absl::InsecureBitGen generator;
  while (true) {
    if (const uint64_t id = generator(); id != 0) return id;
  }
}

std::string Hex(uint64_t id) { return absl::StrCat(absl::Hex(id, absl::kZeroPad16)); }

}  // namespace

std::string TraceContext::TraceId() const { return Hex(trace_high) + Hex(trace_low); }
std::string TraceContext::SpanId() const { return Hex(span); }
std::string TraceContext::ParentId() const { return Hex(parent); }

TraceContext BeginSpan(std::optional<absl::string_view> traceparent) {
  std::optional<TraceContext> context;
  if (traceparent) context = Parse(*traceparent);
  if (!context) context = TraceContext{.trace_high = RandomId(), .trace_low = RandomId()};
  context->span = RandomId();
  return *context;
}

}  // namespace opserve::server
