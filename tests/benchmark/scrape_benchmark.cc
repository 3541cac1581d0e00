// What a scrape costs of a daemon with as many series as there can be: 200 tenants that have each
// called four operators on eight devices.

#include <openssl/sha.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "prometheus/text_serializer.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

constexpr int kTenants = 200;
constexpr int kDevices = 8;

TenantConfig TenantWithToken(const std::string& token) {
  TenantConfig tenant;
  tenant.name = token;
  TokenDigest& digest = tenant.token_digests.emplace_back();
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return tenant;
}

std::unique_ptr<InProcessDaemon> DaemonWithManySeries() {
  setenv("OPSERVE_HOST_DEVICES", absl::StrCat(kDevices).c_str(), 1);
  Config config = InProcessDaemon::DefaultConfig();
  config.streams_per_device = 1;
  config.tenants = {};
  for (int i = 0; i < kTenants; ++i) {
    config.tenants.tenants.push_back(TenantWithToken(absl::StrCat("tenant", i)));
  }
  auto daemon = std::make_unique<InProcessDaemon>(config);
  for (int i = 0; i < kTenants; ++i) {
    const auto client = *Client::Connect(daemon->target(), {.token = absl::StrCat("tenant", i)});
    for (const char* op :
         {"L1LossBackward", "MseLossBackward", "KlDivBackward", "KlDivTargetBackward"}) {
      Request request = OnesRequest(10);
      request.invocations[0].operator_name = op;
      // Devices that are equally idle get requests in turn.
      for (int device = 0; device < kDevices; ++device) {
        if (client->Execute(request).ok()) continue;
        std::fprintf(stderr, "a call failed\n");
        std::exit(1);
      }
    }
  }
  return daemon;
}

void BM_Scrape(benchmark::State& state) {
  static InProcessDaemon& daemon = *DaemonWithManySeries().release();
  size_t lines = 0;
  for (auto _ : state) {
    const std::string text =
        prometheus::TextSerializer().Serialize(daemon.daemon().CollectMetrics());
    lines = std::count(text.begin(), text.end(), '\n');
  }
  state.counters["lines"] = static_cast<double>(lines);
}
BENCHMARK(BM_Scrape)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace opserve::server

BENCHMARK_MAIN();
