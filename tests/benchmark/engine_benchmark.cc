// What the engine is worth, each figure a ratio within one run:
//
//   lanes     throughput with 4 lanes to that with 1, while copies are slow
//   devices   throughput with 4 devices to that with 1, while kernels are slow
//   plan      stage one of a call whose plan is cached to one whose plan is not
//
// Slow copies and kernels are the host CANN's: they wait and take no processor, as a device's do.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/execute_stream.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

constexpr int kRepetitions = 5;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Check(bool is_right) {
  if (is_right) return;
  std::fprintf(stderr, "a call failed\n");
  std::exit(1);
}

Config BenchmarkConfig(const std::vector<int32_t>& devices, uint32_t lanes) {
  Config config = InProcessDaemon::DefaultConfig();
  config.devices = devices;
  config.streams_per_device = lanes;
  return config;
}

// Requests per second with 32 in flight.
double Throughput(const Config& config, const std::string& faults, int64_t count, int requests) {
  InProcessDaemon daemon(config);
  InjectFaults(faults);
  const Request request = OnesRequest(count);
  std::vector<double> rates;
  for (int i = 0; i < kRepetitions; ++i) {
    auto stream = *daemon.client().OpenStream({.window = 32});
    const absl::Time start = absl::Now();
    for (int sent = 0; sent < requests; ++sent) {
      stream->Execute(request, [count](absl::StatusOr<Response> response) {
        Check(IsAllOnes(response, count));
      });
    }
    Check(stream->Finish().ok());
    rates.push_back(requests / absl::ToDoubleSeconds(absl::Now() - start));
  }
  ClearFaults();
  return Median(rates);
}

void BenchmarkLanes() {
  const std::string faults = "copies,rate=64M;kernel=*,slow=2000,count=all";
  const double one = Throughput(BenchmarkConfig({0}, 1), faults, 32 << 10, 40);
  const double four = Throughput(BenchmarkConfig({0}, 4), faults, 32 << 10, 160);
  std::printf("lanes    1: %.0f/s  4: %.0f/s  ratio %.2f of 4\n", one, four, four / one);
}

void BenchmarkDevices() {
  const std::string faults = "kernel=*,slow=5000,count=all";
  const double one = Throughput(BenchmarkConfig({0}, 1), faults, 1 << 10, 60);
  const double four = Throughput(BenchmarkConfig({0, 1, 2, 3}, 1), faults, 1 << 10, 240);
  std::printf("devices  1: %.0f/s  4: %.0f/s  ratio %.2f of 4\n", one, four, four / one);
}

void BenchmarkPlans() {
  InProcessDaemon daemon(BenchmarkConfig({0}, 1));
  std::vector<double> hits;
  std::vector<double> misses;
  for (int64_t count = 1; count <= 400; ++count) {
    for (std::vector<double>* times : {&misses, &hits}) {
      Request request = OnesRequest(count);
      request.want_receipt = true;
      const auto response = daemon.client().Execute(request);
      Check(IsAllOnes(response, count));
      Check((response->receipt->plan_hits() == 1) == (times == &hits));
      times->push_back(static_cast<double>(response->receipt->prepare_ns()) / 1000);
    }
  }
  std::printf("plan     miss: %.1f us  hit: %.1f us  ratio %.2f\n", Median(misses), Median(hits),
              Median(hits) / Median(misses));
}

}  // namespace
}  // namespace opserve::server

int main() {
  setenv("OPSERVE_HOST_DEVICES", "4", 1);
  setenv("OPSERVE_HOST_DEVICE_MEMORY", "512M", 1);
  opserve::server::BenchmarkLanes();
  opserve::server::BenchmarkDevices();
  opserve::server::BenchmarkPlans();
}
