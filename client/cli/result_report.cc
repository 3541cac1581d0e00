#include "client/cli/result_report.h"

#include "absl/strings/str_join.h"
#include "client/cli/array_text.h"

namespace opserve::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json ResultToJson(const Result& result, const std::string* path) {
  const ValueSummary summary = Summarize(result);
  Json json = {
      {"output", result.source().output}, {"dtype", std::string(DataTypeName(result.dtype()))},
      {"shape", result.shape()},          {"num_elements", summary.num_elements},
      {"num_finite", summary.num_finite}, {"num_nan", summary.num_nan}};
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

}  // namespace opserve::cli
