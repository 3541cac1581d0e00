// How benchmarks say what they measured: a line of a table for people and, if the environment
// variable OPSERVE_BENCHMARK_JSON names a file, a line of JSON for tests/benchmark/run.sh.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace opserve::benchmark {

double Median(std::vector<double> values);

// A figure: a ratio of two measurements of one run, beside what it should be.
struct Figure {
  std::string target;  // "T1"; empty: measured beside the targets
  std::string what;    // what was done
  double ours = 0;
  double peer = 0;
  std::string unit;  // of both
  double ratio = 0;
  std::optional<double> at_least = std::nullopt;
  std::optional<double> at_most = std::nullopt;
};

// Whether the limit is met, if there is one.
bool Report(const Figure& figure);

}  // namespace opserve::benchmark
