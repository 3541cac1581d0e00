#include "client/cli/bench/bench_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two runs, of which the second was refused some requests, failed with others and was interrupted.
BenchReport TwoRuns() {
  BenchReport report = {.operator_name = "Op",
                        .transport = "unary",
                        .warmup = absl::Seconds(1),
                        .duration = absl::Seconds(10)};
  report.inputs.push_back(
      {.name = "grad", .value = Tensor::Owning<float>({}, std::vector<float>(1))});
  report.inputs.push_back(
      {.name = "self", .value = Tensor::Owning<float>({3, 85}, std::vector<float>(255))});
  LoadResult first;
  first.measured = absl::Seconds(10);
  first.answered = 100;
  first.answers_in_time = 101;
  first.received_bytes = 101 * 1020;
  for (int i = 1; i <= 100; ++i) first.latency.Record(absl::Milliseconds(i));
  first.receipts = {.count = 2,
                    .stages_ns = {0, 0, 100'000, 0, 0, 500'000, 0, 0},
                    .total_ns = 600'000,
                    .call_ns = 1'000'000};
  LoadResult second;
  second.measured = absl::Milliseconds(2500);
  second.was_interrupted = true;
  second.errors.push_back({.first = absl::ResourceExhaustedError("try later"),
                           .reason = "queue_full",
                           .is_refusal = true,
                           .count = 7,
                           .in_warmup = 3});
  second.errors.push_back({.first = absl::InternalError("broken"), .count = 1});
  report.runs.push_back({.concurrency = 1, .result = std::move(first)});
  report.runs.push_back({.concurrency = 16, .result = std::move(second)});
  return report;
}

TEST(BenchReportTest, IsTablesForPeople) {
  EXPECT_EQ(FormatBench(TwoRuns(), /*width=*/80),
            "Op of grad FLOAT [], self FLOAT [3, 85]; 1 KiB in a request\n"
            "closed loop, as many requests in flight as the concurrency\n"
            "unary transport, 10s measured after 1s of warm-up\n"
            "\n"
            "CONCURRENCY  REQUESTS/S      SENT/S   RECEIVED/S  ANSWERED  REFUSED  FAILED\n"
            "          1        10.1  10.1 KiB/s  10.06 KiB/s       100        0       0\n"
            "         16         0.0       0 B/s        0 B/s         0        7       1\n"
            "\n"
            "latency\n"
            "CONCURRENCY   MIN       P50       P90       P99     P99.9     MAX\n"
            "          1  1 ms  49.94 ms  89.92 ms  98.83 ms  99.88 ms  100 ms\n"
            "         16     -         -         -         -         -       -\n"
            "\n"
            "share of the time of a call, from 2 receipts\n"
            "CONCURRENCY  READ  VALIDATE  QUEUE   H2D  PREPARE  EXECUTE   D2H  WRITE  OUTSIDE\n"
            "          1  0.0%      0.0%  10.0%  0.0%     0.0%    50.0%  0.0%   0.0%    40.0%\n"
            "         16     -         -      -     -        -        -     -      -        -\n"
            "\n"
            "concurrency 16: interrupted, measured 2.5s\n"
            "concurrency 16: 7 x RESOURCE_EXHAUSTED (queue_full), refused for overload, 3 in\n"
            "the warm-up: try later\n"
            "concurrency 16: 1 x INTERNAL: broken\n");
}

TEST(BenchReportTest, AnOpenLoopTellsWhatCouldNotBeSent) {
  BenchReport report = TwoRuns();
  EXPECT_THAT(FormatBench(report, 80), Not(HasSubstr("UNSENT")));
  report.rate = 250;
  report.runs[0].result.unsent = 12;

  const std::string text = FormatBench(report, 80);

  EXPECT_THAT(text, HasSubstr("open loop, 250 requests due per second at random (Poisson)"));
  EXPECT_THAT(text, HasSubstr("FAILED  UNSENT\n"));
  EXPECT_THAT(text, HasSubstr("concurrency 1: 12 requests were due and never sent"));
}

TEST(BenchReportTest, WithoutReceiptsThereIsNoTableOfThem) {
  BenchReport report = TwoRuns();
  report.runs[0].result.receipts = {};
  EXPECT_THAT(FormatBench(report, 80), Not(HasSubstr("receipts")));
}

TEST(BenchReportTest, IsADocumentForPrograms) {
  BenchReport report = TwoRuns();
  EXPECT_FALSE(BenchToJson(report).contains("rate"));
  report.rate = 250;
  report.runs[0].result.unsent = 12;

  const nlohmann::ordered_json json = BenchToJson(report);

  EXPECT_EQ(json["operator"], "Op");
  EXPECT_EQ(json["rate"], 250);
  EXPECT_EQ(json["request_bytes"], 1024);
  EXPECT_EQ(json["inputs"][1]["shape"].dump(), "[3,85]");
  EXPECT_EQ(json["warmup_seconds"], 1);
  const auto& first = json["runs"][0];
  EXPECT_EQ(first["concurrency"], 1);
  EXPECT_EQ(first["requests_per_second"], 10.1);
  EXPECT_EQ(first["sent_bytes_per_second"], 10.1 * 1024);
  EXPECT_EQ(first["received_bytes_per_second"], 10302.0);
  EXPECT_EQ(first["answered"], 100);
  EXPECT_EQ(first["unsent"], 12);
  EXPECT_EQ(first["latency_ns"]["min"], 1'000'000);
  EXPECT_EQ(first["latency_ns"]["max"], 100'000'000);
  EXPECT_TRUE(first["latency_ns"].contains("p99_9"));
  EXPECT_EQ(first["receipts"]["count"], 2);
  EXPECT_EQ(first["receipts"]["mean_call_ns"], 500'000);
  EXPECT_EQ(first["receipts"]["mean_stages"]["execute_ns"], 250'000);
  const auto& second = json["runs"][1];
  EXPECT_EQ(second["interrupted"], true);
  EXPECT_EQ(second["measured_seconds"], 2.5);
  EXPECT_EQ(second["refused"], 7);
  EXPECT_EQ(second["failed"], 1);
  EXPECT_FALSE(second.contains("latency_ns"));
  EXPECT_FALSE(second.contains("receipts"));
  EXPECT_EQ(second["errors"][0]["code"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(second["errors"][0]["reason"], "queue_full");
  EXPECT_EQ(second["errors"][0]["in_warmup"], 3);
  EXPECT_EQ(second["errors"][1]["first_message"], "broken");
}

}  // namespace
}  // namespace opserve::cli
