#include "server/observability/trace_context.h"

#include <set>

#include "gtest/gtest.h"

namespace opserve::server {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00f067aa0ba902b7";

TEST(TraceContextTest, GoesOnWithAValidTraceParent) {
  for (const char* text : {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
                           "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
                           "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"}) {
    const TraceContext context = BeginSpan(text);
    EXPECT_EQ(context.TraceId(), kTrace) << text;
    EXPECT_EQ(context.ParentId(), kParent) << text;
    EXPECT_NE(context.SpanId(), kParent) << text;
    EXPECT_NE(context.span, 0u) << text;
  }
}

TEST(TraceContextTest, LeadingZerosAreKept) {
  const TraceContext context = BeginSpan("00-000000000000000000000000000000ab-000000000000000c-01");
  EXPECT_EQ(context.TraceId(), "000000000000000000000000000000ab");
  EXPECT_EQ(context.ParentId(), "000000000000000c");
}

TEST(TraceContextTest, BeginsATraceWhereThereIsNoneOrItIsNotValid) {
  const std::optional<absl::string_view> cases[] = {
      std::nullopt,
      "",
      "00",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",    // short
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",  // version 00 ends there
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
      "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
      "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902bz-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0z",
      "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
  };
  for (const auto& text : cases) {
    const TraceContext context = BeginSpan(text);
    EXPECT_NE(context.TraceId(), kTrace) << text.value_or("none");
    EXPECT_EQ(context.parent, 0u) << text.value_or("none");
    EXPECT_NE(context.trace_high | context.trace_low, 0u);
    EXPECT_EQ(context.TraceId().size(), 32u);
  }
}

TEST(TraceContextTest, SpansAndTracesAreNewEachTime) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const TraceContext context = BeginSpan(std::nullopt);
    ids.insert(context.TraceId());
    ids.insert(context.SpanId());
  }
  EXPECT_EQ(ids.size(), 2000u);
}

}  // namespace
}  // namespace opserve::server
