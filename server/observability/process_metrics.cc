#include "server/observability/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/observability/metrics.h"

namespace opserve::server {
namespace {

using prometheus::MetricType;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The fields of /proc/self/stat from the third of proc(5) on: those after the program's name, which
// may hold any character.
class StatFields {
 public:
  explicit StatFields(const std::string& stat) {
    const size_t end = stat.rfind(')');
    if (end == std::string::npos) return;
    fields_ = absl::StrSplit(stat.substr(end + 1), ' ', absl::SkipEmpty());
  }

  // `number`: as in proc(5).
  std::optional<double> Get(size_t number) const {
    double value = 0;
    // Fields are numbered from 1, and the list begins with the third.
    if (number - 3 >= fields_.size() || !absl::SimpleAtod(fields_[number - 3], &value)) {
      return std::nullopt;
    }
    return value;
  }

 private:
  std::vector<std::string> fields_;
};

// When the machine started, in Unix time.
std::optional<double> BootTime(const std::string& proc) {
  const std::string stat = Contents(proc + "/stat");
  for (const absl::string_view line : absl::StrSplit(stat, '\n')) {
    double seconds = 0;
    if (absl::StartsWith(line, "btime ") && absl::SimpleAtod(line.substr(6), &seconds)) {
      return seconds;
    }
  }
  return std::nullopt;
}

std::optional<double> OpenDescriptors(const std::string& proc) {
  std::error_code error;
  const std::filesystem::directory_iterator descriptors(proc + "/self/fd", error);
  if (error) return std::nullopt;
  // One of them is the descriptor that reads the directory.
  return static_cast<double>(std::distance(begin(descriptors), end(descriptors)) - 1);
}

std::optional<double> MostDescriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

template <typename Function>
std::optional<double> Apply(std::optional<double> a, std::optional<double> b, Function function) {
  if (!a || !b) return std::nullopt;
  return function(*a, *b);
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectProcessMetrics(const std::string& proc) {
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const char* name, const char* help, MetricType type,
                       std::optional<double> value) {
    // A value that procfs does not tell has no sample, instead of a wrong one.
    if (value) families.push_back(MetricFamilyBuilder(name, help, type).Add({}, *value).Build());
  };
  const StatFields stat(Contents(proc + "/self/stat"));
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  add("process_cpu_seconds_total", "Processor time the process has had, of user and system.",
      MetricType::Counter, Apply(stat.Get(14), stat.Get(15), [&](double user, double system) {
        return (user + system) / ticks;
      }));
  add("process_start_time_seconds", "When the process started, in Unix time.", MetricType::Gauge,
      Apply(BootTime(proc), stat.Get(22),
            [&](double boot, double start) { return boot + start / ticks; }));
  add("process_virtual_memory_bytes", "Address space of the process.", MetricType::Gauge,
      stat.Get(23));
  add("process_resident_memory_bytes", "Memory of the process that is in RAM.", MetricType::Gauge,
      Apply(stat.Get(24), page_bytes, std::multiplies<>()));
  add("process_open_fds", "File descriptors that are open.", MetricType::Gauge,
      OpenDescriptors(proc));
  add("process_max_fds", "File descriptors there may be.", MetricType::Gauge, MostDescriptors());
  return families;
}

}  // namespace opserve::server
