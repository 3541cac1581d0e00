#include "client/cli/text/result_report.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/cli/arrays/array_text.h"
#include "client/cli/text/output.h"

namespace opserve::cli {
namespace {

using Json = nlohmann::ordered_json;

// Where the pool found the memory.
absl::string_view DescribeOutcome(v1::Receipt::PoolOutcome outcome) {
  switch (outcome) {
    case v1::Receipt::POOL_OUTCOME_HIT:
      return "a block this lane used before";
    case v1::Receipt::POOL_OUTCOME_SPLIT:
      return "part of a larger block";
    case v1::Receipt::POOL_OUTCOME_CROSS_STREAM:
      return "a block another lane used before";
    case v1::Receipt::POOL_OUTCOME_GROW:
      return "new from the device";
    case v1::Receipt::POOL_OUTCOME_RETRY:
      return "new from the device, after idle memory was given back";
    default:
      return "";
  }
}

std::string DescribeMemory(const v1::Receipt& receipt) {
  const absl::string_view outcome = DescribeOutcome(receipt.pool_outcome());
  return absl::StrCat("device memory ", FormatBytes(receipt.device_memory_bytes()),
                      outcome.empty() ? "" : ", ", outcome);
}

// A total of 0 is that of a receipt without times.
std::string FormatShare(int64_t time_ns, int64_t total_ns) {
  if (total_ns <= 0) return "-";
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(time_ns) / total_ns);
}

// Daemons that know no traces name none.
std::string DescribeTrace(const v1::Receipt& receipt) {
  if (receipt.trace_id().empty()) return "";
  return absl::StrCat("trace ", receipt.trace_id(), ", span ", receipt.span_id(), "\n");
}

constexpr absl::string_view kNotRemembered =
    "not remembered: the daemon has no room for the answer under its idempotency key\n";

}  // namespace

Json ResultToJson(const Result& result, const std::string* path) {
  const ValueSummary summary = Summarize(result);
  Json json = {
      {"output", result.source().output}, {"dtype", std::string(DataTypeName(result.dtype()))},
      {"shape", result.shape()},          {"num_elements", summary.num_elements},
      {"num_finite", summary.num_finite}, {"num_nan", summary.num_nan}};
  // Without finite values there is no smallest one.
  if (summary.num_finite > 0) {
    json["min"] = ElementToJson(result, summary.minimum_at);
    json["max"] = ElementToJson(result, summary.maximum_at);
    json["mean"] = summary.mean;
  }
  if (path != nullptr) {
    json["file"] = *path;
  } else {
    json["values"] = ValuesToJson(result);
  }
  return json;
}

void WriteResult(const Result& result, const std::string* path, Terminal& terminal) {
  const ValueSummary summary = Summarize(result);
  terminal.out << result.source().output << "  " << DataTypeName(result.dtype()) << " ["
               << absl::StrJoin(result.shape(), ", ") << "]  " << FormatBytes(result.num_bytes())
               << "\n";
  if (summary.num_finite > 0) {
    terminal.out << "min " << FormatElement(result, summary.minimum_at) << "  max "
                 << FormatElement(result, summary.maximum_at) << "  mean "
                 << FormatValue(result.dtype(), summary.mean) << "\n";
  }
  // Integers are always finite; the line would say nothing.
  if (!IsInteger(result.dtype())) {
    terminal.out << summary.num_finite << " of " << summary.num_elements << " finite, "
                 << summary.num_nan << " nan\n";
  }
  if (path != nullptr) {
    terminal.out << "written to " << *path << "\n";
  } else {
    terminal.out << FormatValues(result, terminal.width) << "\n";
  }
}

// "2 views copied to be contiguous; "; nothing if there were none.
std::string DescribeCopies(const v1::Receipt& receipt) {
  const uint32_t copies = receipt.contiguous_copies();
  if (copies == 0) return "";
  return absl::StrCat(copies, copies == 1 ? " view" : " views", " copied to be contiguous; ");
}

// The stages sum to the total, so their shares to 100 %.
std::string FormatReceipt(const v1::Receipt& receipt) {
  std::vector<std::vector<std::string>> rows = {{"stage", "time", "share"}};
  const auto add_row = [&](absl::string_view name, int64_t time_ns) {
    rows.push_back({std::string(name), absl::StrFormat("%.1f us", time_ns / 1e3),
                    FormatShare(time_ns, receipt.total_ns())});
  };
  for (const ReceiptStage& stage : kReceiptStages) add_row(stage.name, (receipt.*stage.time_ns)());
  add_row("total", receipt.total_ns());
  return absl::StrCat(FormatTable(rows), "device ", receipt.device(), ", lane ", receipt.lane(),
                      "; workspace ", FormatBytes(receipt.workspace_bytes()), "; copied ",
                      FormatBytes(receipt.copied_to_device_bytes()), " to the device and ",
                      FormatBytes(receipt.copied_from_device_bytes()), " back\n",
                      "plan cache: ", receipt.plan_hits(), " hits, ", receipt.plan_misses(),
                      " misses; ", receipt.replayed() ? "replayed as one launch; " : "",
                      DescribeCopies(receipt), DescribeMemory(receipt), "\n",
                      DescribeTrace(receipt), receipt.not_remembered() ? kNotRemembered : "");
}

}  // namespace opserve::cli
