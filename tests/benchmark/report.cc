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

bool Report(const Figure& figure) {
  std::string limit;
  bool is_met = true;
  if (figure.at_least) {
    limit = absl::StrFormat(">= %g", *figure.at_least);
    is_met = figure.ratio >= *figure.at_least;
  }
  if (figure.at_most) {
    limit = absl::StrFormat("<= %g", *figure.at_most);
    is_met = figure.ratio <= *figure.at_most;
  }
  std::printf("%-4s %-62s %10.4g %10.4g %-6s %8.3f %-8s %s\n", figure.target.c_str(),
              figure.what.c_str(), figure.ours, figure.peer, figure.unit.c_str(), figure.ratio,
              limit.c_str(),
              limit.empty() ? ""
              : is_met      ? "met"
                            : "MISSED");
  std::fflush(stdout);
  if (const char* path = std::getenv("OPSERVE_BENCHMARK_JSON")) {
    std::ofstream(path, std::ios::app) << absl::StrFormat(
        R"({"target": "%s", "what": "%s", "ours": %g, "peer": %g, "unit": "%s", "ratio": %.4g, )"
        R"("limit": "%s", "met": %s})"
        "\n",
        figure.target, figure.what, figure.ours, figure.peer, figure.unit, figure.ratio, limit,
        limit.empty() ? "null"
        : is_met      ? "true"
                      : "false");
  }
  return is_met;
}

}  // namespace opserve::benchmark
