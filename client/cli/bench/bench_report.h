// The findings of `opserve bench`, for people and for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/bench/bench_load.h"
#include "client/cpp/request.h"
#include "nlohmann/json.hpp"

namespace opserve::cli {

struct BenchRun {
  uint32_t concurrency = 1;
  LoadResult result;
};

struct BenchReport {
  std::string operator_name = {};
  std::vector<NamedInput> inputs = {};  // tensors
  std::string transport = {};           // as --transport names it
  bool prepared = false;                // as BenchArguments::prepare
  std::optional<double> rate = std::nullopt;
  absl::Duration warmup;
  absl::Duration duration;
  std::vector<BenchRun> runs = {};
};

// Tables: throughput, latency and time by stage, with a row for each run; then every kind of error.
// Sentences are broken to lines of `width` columns.
std::string FormatBench(const BenchReport& report, size_t width);

nlohmann::ordered_json BenchToJson(const BenchReport& report);

}  // namespace opserve::cli
