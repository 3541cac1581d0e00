#include "server/observability/process_metrics.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

std::map<std::string, double> Values(const std::string& proc) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : CollectProcessMetrics(proc)) {
    const bool is_counter = family.type == prometheus::MetricType::Counter;
    const prometheus::ClientMetric& metric = family.metric.at(0);
    values[family.name] = is_counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

TEST(ProcessMetricsTest, ReadsWhatTheSystemWrites) {
  const fs::path proc = fs::path(testing::TempDir()) / "proc";
  fs::create_directories(proc / "self/fd");
  for (const char* number : {"0", "1", "2", "3", "9"}) std::ofstream(proc / "self/fd" / number);
  std::ofstream(proc / "stat") << "cpu  1 2 3\nbtime 1700000000\nprocesses 7\n";
  // Fields 14, 15, 22, 23 and 24 are 250, 50, 1200, 123456 and 3; the name looks like some of them.
  std::ofstream(proc / "self/stat") << "42 (a) S 1) R 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 "
                                       "0 9 0 1200 123456 3 18446744\n";

  const auto values = Values(proc);

  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(values.at("process_cpu_seconds_total"), 300 / ticks);
  EXPECT_EQ(values.at("process_start_time_seconds"), 1700000000 + 1200 / ticks);
  EXPECT_EQ(values.at("process_virtual_memory_bytes"), 123456);
  EXPECT_EQ(values.at("process_resident_memory_bytes"),
            3 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(values.at("process_open_fds"), 4);  // the fifth would be what reads the directory
  EXPECT_GT(values.at("process_max_fds"), 0);
}

TEST(ProcessMetricsTest, LeavesOutWhatTheSystemDoesNotTell) {
  const auto values = Values("/nonexistent");
  EXPECT_THAT(values, Not(Contains(Key("process_resident_memory_bytes"))));
  EXPECT_THAT(values, Not(Contains(Key("process_start_time_seconds"))));
  EXPECT_THAT(values, Not(Contains(Key("process_open_fds"))));
}

TEST(ProcessMetricsTest, AreThoseOfThisProcess) {
  const auto before = Values("/proc");
  const int descriptor = dup(0);
  ASSERT_GE(descriptor, 0);
  const auto after = Values("/proc");
  close(descriptor);

  EXPECT_EQ(after.at("process_open_fds"), before.at("process_open_fds") + 1);
  EXPECT_GT(after.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(after.at("process_virtual_memory_bytes"), after.at("process_resident_memory_bytes"));
  EXPECT_GE(after.at("process_cpu_seconds_total"), before.at("process_cpu_seconds_total"));
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_LE(after.at("process_start_time_seconds"), now + 1);
  EXPECT_GT(after.at("process_start_time_seconds"), now - 86400);
}

}  // namespace
}  // namespace opserve::server
