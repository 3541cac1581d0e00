#include "tests/benchmark/report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace opserve::benchmark {

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Report(const Figure& figure) {
  std::string limit;
  std::string json_limit;
  bool is_met = true;
  if (figure.at_least) {
    limit = absl::StrFormat(">= %.2f", *figure.at_least);
    json_limit = absl::StrFormat(R"(, "at_least": %g)", *figure.at_least);
    is_met = figure.ratio >= *figure.at_least;
  }
  if (figure.at_most) {
    limit = absl::StrFormat("<= %.2f", *figure.at_most);
    json_limit = absl::StrFormat(R"(, "at_most": %g)", *figure.at_most);
    is_met = figure.ratio <= *figure.at_most;
  }
  std::printf("%-4s %-52s %10.4g %10.4g %-6s %7.3f %-8s %s\n", figure.target.c_str(),
              figure.what.c_str(), figure.ours, figure.peer, figure.unit.c_str(), figure.ratio,
              limit.c_str(),
              limit.empty() ? ""
              : is_met      ? "met"
                            : "missed");
  std::fflush(stdout);
  if (const char* path = std::getenv("OPSERVE_BENCHMARK_JSON")) {
    std::ofstream(path, std::ios::app) << absl::StrFormat(
        R"({"target": "%s", "what": "%s", "ours": %g, "peer": %g, "unit": "%s", "ratio": %g%s})"
        "\n",
        figure.target, figure.what, figure.ours, figure.peer, figure.unit, figure.ratio,
        json_limit);
  }
}

}  // namespace opserve::benchmark
