#include "client/cli/bench/bench_report.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/bench/bench_arguments.h"
#include "client/cli/text/output.h"

namespace opserve::cli {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

struct ShownPercentile {
  const char* title;
  const char* key;
  double percent;
};

// Titles of the table's columns, and keys in JSON, where a dot would be awkward to select.
constexpr std::array kShownPercentiles = {
    ShownPercentile{"P50", "p50", 50}, ShownPercentile{"P90", "p90", 90},
    ShownPercentile{"P99", "p99", 99}, ShownPercentile{"P99.9", "p99_9", 99.9}};

// Of tensors alone, without the message around them.
uint64_t RequestBytes(const BenchReport& report) {
  uint64_t bytes = 0;
  for (const BenchTensor& input : TensorsOf(report.inputs)) bytes += input.tensor.storage().size();
  return bytes;
}

double PerSecond(uint64_t amount, absl::Duration time) {
  // 0 seconds: the load ended before anything was measured.
  const double seconds = absl::ToDoubleSeconds(time);
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

// Of requests that were answered in the measured time.
struct Throughput {
  double requests;
  double sent_bytes;
  double received_bytes;
};

Throughput ThroughputOf(const BenchReport& report, const LoadResult& result) {
  const double requests = PerSecond(result.answers_in_time, result.measured);
  return {.requests = requests,
          .sent_bytes = requests * static_cast<double>(RequestBytes(report)),
          .received_bytes = PerSecond(result.received_bytes, result.measured)};
}

// Of the warm-up too.
uint64_t CountErrors(const LoadResult& result, bool is_refusal) {
  uint64_t count = 0;
  for (const LoadError& error : result.errors) {
    if (error.is_refusal == is_refusal) count += error.count;
  }
  return count;
}

// Four digits in the largest unit below the value: "31.42 ms".
std::string FormatLatency(absl::Duration latency) {
  if (latency < absl::Milliseconds(1)) {
    return absl::StrFormat("%.4g us", absl::ToDoubleMicroseconds(latency));
  }
  if (latency < absl::Seconds(1)) {
    return absl::StrFormat("%.4g ms", absl::ToDoubleMilliseconds(latency));
  }
  return absl::StrFormat("%.4g s", absl::ToDoubleSeconds(latency));
}

std::string FormatRate(double per_second) {
  return absl::StrFormat("%.*f", per_second < 1000 ? 1 : 0, per_second);
}

std::string FormatByteRate(double bytes_per_second) {
  return absl::StrCat(FormatBytes(static_cast<uint64_t>(bytes_per_second)), "/s");
}

// "FLOAT [256, 1024]"
std::string DescribeTensor(const Tensor& tensor) {
  return absl::StrCat(std::string(DataTypeName(tensor.dtype())), " [",
                      absl::StrJoin(tensor.shape(), ", "), "]");
}

std::string DescribeLoad(const BenchReport& report) {
  std::string text = absl::StrCat(report.operator_name, " of ");
  absl::StrAppend(
      &text,
      absl::StrJoin(TensorsOf(report.inputs), ", ", [](std::string* out, const BenchTensor& input) {
        absl::StrAppend(out, input.name, " ", DescribeTensor(input.tensor));
      }));
  absl::StrAppend(&text, "; ", FormatBytes(RequestBytes(report)), " in a request\n");
  if (report.rate) {
    absl::StrAppend(&text, "open loop, ", *report.rate,
                    " requests due per second at random (Poisson), latency from when each was due");
  } else {
    absl::StrAppend(&text, "closed loop, as many requests in flight as the concurrency");
  }
  absl::StrAppend(&text, "\n", report.transport, " transport, ",
                  report.prepared ? "prepared, " : "", absl::FormatDuration(report.duration),
                  " measured after ", absl::FormatDuration(report.warmup), " of warm-up\n");
  return text;
}

std::string ThroughputTable(const BenchReport& report) {
  Rows rows = {
      {"CONCURRENCY", "REQUESTS/S", "SENT/S", "RECEIVED/S", "ANSWERED", "REFUSED", "FAILED"}};
  if (report.rate) rows[0].push_back("UNSENT");
  for (const auto& [concurrency, result] : report.runs) {
    const Throughput throughput = ThroughputOf(report, result);
    rows.push_back({absl::StrCat(concurrency), FormatRate(throughput.requests),
                    FormatByteRate(throughput.sent_bytes),
                    FormatByteRate(throughput.received_bytes), absl::StrCat(result.answered),
                    absl::StrCat(CountErrors(result, /*is_refusal=*/true)),
                    absl::StrCat(CountErrors(result, /*is_refusal=*/false))});
    if (report.rate) rows.back().push_back(absl::StrCat(result.unsent));
  }
  return FormatTable(rows);
}

std::string LatencyTable(const BenchReport& report) {
  Rows rows = {{"CONCURRENCY", "MIN"}};
  for (const ShownPercentile& shown : kShownPercentiles) rows[0].push_back(shown.title);
  rows[0].push_back("MAX");
  for (const auto& [concurrency, result] : report.runs) {
    const LatencyHistogram& latency = result.latency;
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(absl::StrCat(concurrency));
    const auto add = [&](absl::Duration time) {
      // Without latencies min and max are 0, which would read as very fast.
      row.push_back(latency.count() == 0 ? "-" : FormatLatency(time));
    };
    add(latency.min());
    for (const ShownPercentile& shown : kShownPercentiles) add(latency.Percentile(shown.percent));
    add(latency.max());
  }
  return FormatTable(rows);
}

// Sums over receipts, not means of shares: a slow call weighs as much as the time that it took.
std::string StageTable(const BenchReport& report) {
  Rows rows = {{"CONCURRENCY"}};
  for (const ReceiptStage& stage : kReceiptStages) {
    rows[0].push_back(absl::AsciiStrToUpper(std::string(stage.name)));
  }
  rows[0].push_back("OUTSIDE");
  for (const auto& [concurrency, result] : report.runs) {
    const ReceiptSums& sums = result.receipts;
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(absl::StrCat(concurrency));
    // Clocks of two processes: the daemon's may have run a little faster.
    const int64_t whole_ns = std::max(sums.call_ns, sums.total_ns);
    const auto add = [&](int64_t time_ns) {
      row.push_back(whole_ns == 0 ? "-" : absl::StrFormat("%.1f%%", 100.0 * time_ns / whole_ns));
    };
    for (const int64_t stage_ns : sums.stages_ns) add(stage_ns);
    add(whole_ns - sums.total_ns);
  }
  return FormatTable(rows);
}

// Further facts about a run, a line for each: those that make its numbers mean less than they seem
// to.
std::string Remarks(const BenchRun& run) {
  std::string remarks;
  const auto add = [&](const auto&... parts) {
    absl::StrAppend(&remarks, "concurrency ", run.concurrency, ": ", parts..., "\n");
  };
  const LoadResult& result = run.result;
  // Nanoseconds would suggest more than a clock tells.
  const std::string measured =
      absl::FormatDuration(absl::Trunc(result.measured, absl::Milliseconds(1)));
  if (result.was_interrupted) add("interrupted, measured ", measured);
  if (result.gave_up) add("given up, as nothing but failures came; measured ", measured);
  if (result.unsent > 0) {
    add(result.unsent,
        " requests were due and never sent; they count with their waits until the end, and "
        "would have waited longer");
  }
  for (const LoadError& error : result.errors) {
    add(error.count, " x ", absl::StatusCodeToString(error.first.code()),
        error.reason.empty() ? "" : absl::StrCat(" (", error.reason, ")"),
        error.is_refusal ? ", refused for overload" : "",
        error.in_warmup > 0 ? absl::StrCat(", ", error.in_warmup, " in the warm-up") : "", ": ",
        std::string(error.first.message()));
  }
  return remarks;
}

Json LatencyToJson(const LatencyHistogram& latency) {
  Json json = {{"min", absl::ToInt64Nanoseconds(latency.min())}};
  for (const ShownPercentile& shown : kShownPercentiles) {
    json[shown.key] = absl::ToInt64Nanoseconds(latency.Percentile(shown.percent));
  }
  json["max"] = absl::ToInt64Nanoseconds(latency.max());
  return json;
}

Json ReceiptsToJson(const ReceiptSums& sums) {
  // Called only with receipts, so that the count is not 0.
  const auto mean = [&](int64_t sum_ns) { return sum_ns / static_cast<int64_t>(sums.count); };
  Json stages = Json::object();
  for (size_t i = 0; i < kReceiptStages.size(); ++i) {
    stages[absl::StrCat(std::string(kReceiptStages[i].name), "_ns")] = mean(sums.stages_ns[i]);
  }
  // Means in whole nanoseconds; fractions are below the clocks' resolution.
  return {{"count", sums.count},
          {"mean_call_ns", mean(sums.call_ns)},
          {"mean_total_ns", mean(sums.total_ns)},
          {"mean_stages", std::move(stages)}};
}

Json ErrorsToJson(const std::vector<LoadError>& errors) {
  Json list = Json::array();
  for (const LoadError& error : errors) {
    list.push_back({{"code", absl::StatusCodeToString(error.first.code())},
                    {"reason", error.reason},
                    {"is_refusal", error.is_refusal},
                    {"count", error.count},
                    {"in_warmup", error.in_warmup},
                    {"first_message", std::string(error.first.message())}});
  }
  return list;
}

Json RunToJson(const BenchReport& report, const BenchRun& run) {
  const LoadResult& result = run.result;
  const Throughput throughput = ThroughputOf(report, result);
  Json json = {{"concurrency", run.concurrency},
               {"measured_seconds", absl::ToDoubleSeconds(result.measured)},
               {"interrupted", result.was_interrupted},
               {"gave_up", result.gave_up},
               {"requests_per_second", throughput.requests},
               {"sent_bytes_per_second", throughput.sent_bytes},
               {"received_bytes_per_second", throughput.received_bytes},
               {"answered", result.answered},
               {"refused", CountErrors(result, /*is_refusal=*/true)},
               {"failed", CountErrors(result, /*is_refusal=*/false)},
               {"unsent", result.unsent}};
  // Left out rather than 0 when nothing was answered.
  if (result.latency.count() > 0) json["latency_ns"] = LatencyToJson(result.latency);
  if (result.receipts.count > 0) json["receipts"] = ReceiptsToJson(result.receipts);
  json["errors"] = ErrorsToJson(result.errors);
  return json;
}

}  // namespace

std::string FormatBench(const BenchReport& report, size_t width) {
  std::string text = absl::StrCat(Wrap(DescribeLoad(report), width, /*indent=*/0), "\n",
                                  ThroughputTable(report), "\nlatency\n", LatencyTable(report));
  uint64_t receipts = 0;
  std::string remarks;
  for (const BenchRun& run : report.runs) {
    receipts += run.result.receipts.count;
    absl::StrAppend(&remarks, Remarks(run));
  }
  if (receipts > 0) {
    absl::StrAppend(&text, "\nshare of the time of a call, from ", receipts, " receipts\n",
                    StageTable(report));
  }
  return absl::StrCat(text, remarks.empty() ? "" : "\n", Wrap(remarks, width, /*indent=*/0));
}

Json BenchToJson(const BenchReport& report) {
  Json inputs = Json::array();
  for (const auto& [name, tensor] : TensorsOf(report.inputs)) {
    inputs.push_back({{"name", name},
                      {"dtype", std::string(DataTypeName(tensor.dtype()))},
                      {"shape", tensor.shape()}});
  }
  Json json = {{"operator", report.operator_name},
               {"inputs", std::move(inputs)},
               {"request_bytes", RequestBytes(report)},
               {"transport", report.transport},
               {"prepared", report.prepared}};
  if (report.rate) json["rate"] = *report.rate;
  json["warmup_seconds"] = absl::ToDoubleSeconds(report.warmup);
  json["duration_seconds"] = absl::ToDoubleSeconds(report.duration);
  Json& runs = json["runs"] = Json::array();
  for (const BenchRun& run : report.runs) runs.push_back(RunToJson(report, run));
  return json;
}

}  // namespace opserve::cli
