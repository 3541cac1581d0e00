// How the daemon behaves when it is asked for more than it can do. Each figure is a ratio within
// one run, beside the target it is meant to meet:
//
//   overload    three times the load it can take, offered whether it answers or not: work that
//               still gets done, how long what is accepted takes, memory
//   refusals    what it costs the daemon to refuse a request, and what is left of 100,000 refusals
//   shares      two tenants of weights 1 and 3 that both want everything, one with requests 100
//               times as large, either way, on one device and on two: device time over every 10
//               seconds, and by how much of its share a tenant was farthest from it
//   quiet       a tenant that asks for 1 % of the device, beside one that wants everything
//
// usage: overload_benchmark [--seconds=N] [SECTION...]: N (default 15, at least 12) is how long
// each load lasts. The daemon is a process of its own; kernels are slow in the host CANN's way,
// which waits and takes no processor, so that the device is what limits.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cpp/admin_client.h"
#include "client/cpp/execute_stream.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/requests.h"
#include "tests/process_memory.h"

namespace opserve::server {
namespace {

constexpr int64_t kSmall = 1 << 10;  // elements
constexpr int64_t kLargeElements = 128 << 10;

absl::Duration g_load_time = absl::Seconds(15);

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "overload_benchmark: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Required(absl::StatusOr<T> value) {
  Require(value.status());
  return *std::move(value);
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const size_t index = std::min(values.size() - 1, static_cast<size_t>(values.size() * share));
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[index];
}

// Devices with four lanes together, in a process of its own. `tenants`: none, or their
// configuration.
class SlowDaemon {
 public:
  SlowDaemon(const std::string& faults, const std::string& tenants, int devices = 1) {
    std::string pattern = "/tmp/opserve-overload-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    setenv("OPSERVE_HOST_DEVICES", absl::StrCat(devices).c_str(), 1);
    setenv("OPSERVE_HOST_FAULTS", faults.c_str(), 1);
    std::vector<std::string> arguments = {"--listen=" + target(),
                                          "--admin_listen=" + AdminTarget(),
                                          "--metrics_listen=none",
                                          absl::StrCat("--streams_per_device=", 4 / devices),
                                          "--max_streams_per_connection=10000",
                                          "--drain_delay=0s",
                                          "--log_level=off"};
    if (!tenants.empty()) {  // a file without settings is refused
      std::ofstream(directory_ + "/config") << tenants;
      arguments.push_back("--config=" + directory_ + "/config");
    }
    process_.emplace(arguments);
    admin_ = Required(AdminClient::Connect(AdminTarget(), {.wait_for_ready = absl::Seconds(30)}));
  }
  ~SlowDaemon() {
    process_->End(SIGTERM);
    for (const char* name : {"config", "socket", "admin"}) {
      unlink((directory_ + "/" + name).c_str());
    }
    rmdir(directory_.c_str());
  }

  std::unique_ptr<Client> Connect(const std::string& token = "") const {
    return Required(Client::Connect(
        target(),
        {.wait_for_ready = absl::Seconds(30), .token = token, .retry = {.max_attempts = 1}}));
  }
  v1::AdminStatus Status() const { return Required(admin_->GetStatus()); }
  uint64_t PoolBytes() const { return Required(admin_->GetPoolSnapshot(0)).allocated_bytes(); }

  int64_t ResidentBytes() const { return ResidentBytesOf(process_->pid()); }
  // User and system time of all its threads.
  double ProcessorSeconds() const {
    std::string line;
    std::getline(std::ifstream(absl::StrCat("/proc/", process_->pid(), "/stat")), line);
    const std::vector<std::string> fields = absl::StrSplit(line.substr(line.rfind(')') + 2), ' ');
    int64_t user = 0;
    int64_t system = 0;
    if (!absl::SimpleAtoi(fields[11], &user) || !absl::SimpleAtoi(fields[12], &system)) {
      std::abort();
    }
    return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  std::string target() const { return "unix:" + directory_ + "/socket"; }
  std::string AdminTarget() const { return "unix:" + directory_ + "/admin"; }

  std::string directory_;
  std::optional<DaemonProcess> process_;
  std::unique_ptr<AdminClient> admin_;
};

// Requests that are sent at their time, whether earlier ones were answered or not.
struct OpenLoop {
  double answers_per_second = 0;  // while they were sent
  std::vector<double> seconds;    // from the request to its answer, of those that succeeded
  int refused = 0;                // at once
  int late = 0;                   // deadline, passed or not to be met
};

OpenLoop Offer(Client& client, double per_second, absl::Duration timeout) {
  Request request = OnesRequest(kSmall);
  request.timeout = timeout;
  OpenLoop outcome;
  absl::Mutex mutex;  // guards outcome and pending
  int pending = 0;
  int answered = 0;
  const absl::Time start = absl::Now();
  const absl::Time end = start + g_load_time;
  const int count = static_cast<int>(per_second * absl::ToDoubleSeconds(g_load_time));
  for (int i = 0; i < count; ++i) {
    const absl::Time due = start + absl::Seconds(i / per_second);
    if (const absl::Duration wait = due - absl::Now(); wait > absl::ZeroDuration()) {
      absl::SleepFor(wait);
    }
    {
      absl::MutexLock lock(&mutex);
      ++pending;
    }
    client.ExecuteAsync(request, [&, due](absl::StatusOr<Response> response) {
      absl::MutexLock lock(&mutex);
      --pending;
      if (IsAllOnes(response, kSmall)) {
        const absl::Time now = absl::Now();
        outcome.seconds.push_back(absl::ToDoubleSeconds(now - due));
        // Those that waited are answered after the load's end, as fast as the device can.
        if (now < end) ++answered;
      } else if (absl::IsResourceExhausted(response.status())) {
        ++outcome.refused;
      } else if (absl::IsDeadlineExceeded(response.status())) {
        ++outcome.late;
      } else {
        Require(response.ok() ? absl::InternalError("wrong answer") : response.status());
      }
    });
  }
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(
      +[](int* pending) { return *pending == 0; }, &pending));
  outcome.answers_per_second = answered / absl::ToDoubleSeconds(g_load_time);
  return outcome;
}

void MeasureOverload() {
  const SlowDaemon daemon("kernel=*,slow=10000,count=all", "");
  const auto client = daemon.Connect();
  // What four lanes can do, less what the daemon adds.
  constexpr double kLanesPerSecond = 4 / 0.010;
  const OpenLoop saturated = Offer(*client, 1.5 * kLanesPerSecond, absl::Seconds(60));
  const double capacity = saturated.answers_per_second;
  const OpenLoop below = Offer(*client, 0.9 * capacity, absl::Seconds(60));
  const OpenLoop peak = Offer(*client, capacity, absl::Seconds(60));
  const double p99 = Percentile(below.seconds, 0.99);
  std::printf("overload   capacity %.0f/s of %.0f/s; at 0.9 of it p50 %.1f ms, p99 %.1f ms\n",
              capacity, kLanesPerSecond, 1e3 * Percentile(below.seconds, 0.5), 1e3 * p99);
  const int64_t resident = daemon.ResidentBytes();
  const struct {
    const char* name;
    absl::Duration timeout;
  } kLoads[] = {{"without deadlines", absl::Seconds(60)},
                {"deadlines of twice that p99", absl::Seconds(2 * p99)}};
  for (const auto& load : kLoads) {
    const OpenLoop outcome = Offer(*client, 3 * capacity, load.timeout);
    std::printf(
        "           at 3, %s: answers %.2f of peak (0.95), p99 %.2f of that at 0.9 (2); "
        "%d refused, %d too late\n",
        load.name, outcome.answers_per_second / peak.answers_per_second,
        Percentile(outcome.seconds, 0.99) / p99, outcome.refused, outcome.late);
  }
  std::printf("           resident memory %.1f MiB before, %.1f MiB after\n", resident / 1048576.0,
              daemon.ResidentBytes() / 1048576.0);
}

void MeasureRefusals() {
  const SlowDaemon daemon("", R"(
      tenant { name: "refused" requests_per_second: 1
               token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
      tenant { name: "served"
               token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" })");
  const auto call = [](Client& client, int count) {
    const Request request = OnesRequest(kSmall);
    absl::Mutex mutex;  // guards pending
    int pending = 0;
    const auto has_room = [&] { return pending < 64; };
    const auto is_over = [&] { return pending == 0; };
    for (int i = 0; i < count; ++i) {
      {
        absl::MutexLock lock(&mutex, absl::Condition(&has_room));
        ++pending;
      }
      client.ExecuteAsync(request, [&](const absl::StatusOr<Response>&) {
        absl::MutexLock lock(&mutex);
        --pending;
      });
    }
    absl::MutexLock lock(&mutex, absl::Condition(&is_over));
  };
  const auto measure = [&](Client& client, int count) {
    const double before = daemon.ProcessorSeconds();
    call(client, count);
    return (daemon.ProcessorSeconds() - before) / count;
  };
  const auto refused = daemon.Connect("a");
  const auto served = daemon.Connect("b");
  call(*refused, 5000);  // so that all that is kept is there
  call(*served, 5000);
  const int64_t resident = daemon.ResidentBytes();
  const uint64_t pool = daemon.PoolBytes();
  const double refusal = measure(*refused, 100'000);
  const int64_t resident_after = daemon.ResidentBytes();
  const double service = measure(*served, 20'000);
  std::printf(
      "refusals   %.1f us of processor each (50), %.2f of a call that is served; after 100,000: "
      "memory %+.1f MiB, pool %+lld bytes\n",
      1e6 * refusal, refusal / service, (resident_after - resident) / 1048576.0,
      static_cast<long long>(daemon.PoolBytes() - pool));
}

constexpr char kTwoTenants[] = R"(
  tenant { name: "a" weight: 1
           token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
  tenant { name: "b" weight: 3
           token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" })";

// Keeps `waiting` requests of `count` elements in flight until it ends.
class Flood {
 public:
  Flood(const SlowDaemon& daemon, const std::string& token, int64_t count, uint32_t waiting)
      : client_(daemon.Connect(token)), thread_([this, count, waiting] {
          Request request = OnesRequest(count);
          request.want_receipt = true;
          auto stream = Required(client_->OpenStream({.window = waiting}));
          std::deque<std::future<absl::StatusOr<Response>>> answers;
          while (!is_over_ || !answers.empty()) {
            if (!is_over_) answers.push_back(stream->Execute(request));
            if (answers.size() < waiting && !is_over_) continue;
            const auto response = answers.front().get();
            Require(response.status());
            if (!IsAllOnes(response, count)) Require(absl::InternalError("wrong answer"));
            longest_execution_ = std::max(longest_execution_, ExecutionSeconds(*response->receipt));
            answers.pop_front();
          }
        }) {}
  ~Flood() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Ends the flood; gives the longest time one of its requests had a lane.
  double End() {
    is_over_ = true;
    thread_.join();
    return longest_execution_;
  }

  static double ExecutionSeconds(const v1::Receipt& receipt) {
    return 1e-9 * static_cast<double>(receipt.h2d_ns() + receipt.prepare_ns() +
                                      receipt.execute_ns() + receipt.d2h_ns());
  }

 private:
  const std::unique_ptr<Client> client_;
  std::atomic<bool> is_over_ = false;
  double longest_execution_ = 0;  // the thread's
  std::thread thread_;
};

struct Look {
  double lane_seconds[2] = {};  // of tenants a and b so far, on all devices
  bool do_wait = true;          // both have requests waiting on every device
};

Look LookAtShares(const SlowDaemon& daemon) {
  const v1::AdminStatus status = daemon.Status();
  Look look;
  for (const int tenant : {0, 1}) {
    for (const auto& device : status.tenants(tenant).devices()) {
      look.lane_seconds[tenant] += device.lane_seconds();
      look.do_wait = look.do_wait && device.queued_requests() > 0;
    }
  }
  return look;
}

// One tenant's requests are 100 times as large as the other's.
void MeasureShares(const char* name, int64_t count_a, int64_t count_b, int devices) {
  // A request of 1 MiB takes 50 ms, one of 10 KiB 0.5 ms: small ones keep three lanes busy beside
  // large ones only if the daemon and its clients have the processor time for 6,000 a second.
  const SlowDaemon daemon("copies,rate=32M", kTwoTenants, devices);
  const auto window = [](int64_t count) { return count == kLargeElements ? 32 : 128; };
  Flood a(daemon, "a", count_a, window(count_a));
  Flood b(daemon, "b", count_b, window(count_b));
  absl::SleepFor(absl::Seconds(2));  // what they cost is learned
  constexpr size_t kTenSeconds = 20;
  std::vector<Look> looks;  // one each half a second
  const absl::Time end = absl::Now() + std::max(g_load_time, absl::Seconds(12));
  while (absl::Now() < end || looks.size() <= kTenSeconds) {
    looks.push_back(LookAtShares(daemon));
    absl::SleepFor(absl::Milliseconds(500));
  }
  double worst = 0;
  double ratio = 0;
  for (size_t i = kTenSeconds; i < looks.size(); ++i) {
    const Look& first = looks[i - kTenSeconds];
    const double used_a = looks[i].lane_seconds[0] - first.lane_seconds[0];
    const double used_b = looks[i].lane_seconds[1] - first.lane_seconds[1];
    // Both are off by the same time, which is more of the smaller share.
    const double error = std::abs(used_a / (used_a + used_b) / 0.25 - 1);
    if (error < worst) continue;
    worst = error;
    ratio = used_b / used_a;
  }
  const auto gaps =
      std::count_if(looks.begin(), looks.end(), [](const Look& look) { return !look.do_wait; });
  std::printf(
      "shares     %s, %d device%s: worst of %zu windows of 10 s 1:%.2f, %.1f %% of a share (5); "
      "a tenant had nothing waiting on a device at %td of %zu looks\n",
      name, devices, devices == 1 ? "" : "s", looks.size() - kTenSeconds, ratio, 100 * worst, gaps,
      looks.size());
  std::fflush(stdout);
}

void MeasureShares() {
  for (const int devices : {1, 2}) {
    MeasureShares("weight 3 small", kLargeElements, kLargeElements / 100, devices);
    MeasureShares("weight 3 large", kLargeElements / 100, kLargeElements, devices);
  }
}

void MeasureQuietTenant() {
  const SlowDaemon daemon("kernel=*,slow=10000,count=all", kTwoTenants);
  Flood flood(daemon, "b", kSmall, 128);
  const auto quiet = daemon.Connect("a");
  Request request = OnesRequest(kSmall);
  request.want_receipt = true;
  std::vector<double> waits;
  const absl::Time end = absl::Now() + g_load_time;
  while (absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(250));  // 4 of the 400 a second
    const Response response = Required(quiet->Execute(request));
    waits.push_back(1e-9 * static_cast<double>(response.receipt->queue_ns()));
  }
  const double longest = flood.End();
  std::printf(
      "quiet      p99 of its time in the queue %.1f ms, %.2f of its bound (1): twice the longest "
      "execution and 1 ms; no request refused\n",
      1e3 * Percentile(waits, 0.99), Percentile(waits, 0.99) / (2 * longest + 1e-3));
}

constexpr struct {
  const char* name;
  void (*measure)();
} kSections[] = {{"overload", &MeasureOverload},
                 {"refusals", &MeasureRefusals},
                 {"shares", &MeasureShares},
                 {"quiet", &MeasureQuietTenant}};

int Main(int argc, char** argv) {
  std::set<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    int seconds = 0;
    if (absl::ConsumePrefix(&argument, "--seconds=")) {
      if (!absl::SimpleAtoi(argument, &seconds) || seconds < 12) {
        std::fprintf(stderr, "overload_benchmark: --seconds takes a number from 12 on\n");
        return 2;
      }
      g_load_time = absl::Seconds(seconds);
    } else {
      wanted.insert(argv[i]);
    }
  }
  for (const auto& section : kSections) {
    if (wanted.empty() || wanted.contains(section.name)) section.measure();
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace opserve::server

int main(int argc, char** argv) { return opserve::server::Main(argc, argv); }
