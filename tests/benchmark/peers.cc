#include "tests/benchmark/peers.h"

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "tests/benchmark/raw_server.h"
#include "tests/benchmark/report.h"
#include "tests/process_memory.h"

namespace opserve::benchmark {
namespace {

constexpr int kTcpPort = 18451;  // and the next one

}  // namespace

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "benchmark: %s\n", status.ToString().c_str());
  std::exit(1);
}

void KeepFreedMemory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--repetitions=")) {
      arguments.sections.insert(std::string(argument));
    } else if (!absl::SimpleAtoi(argument, &arguments.repetitions) || arguments.repetitions < 1) {
      std::fprintf(stderr, "%s: %s is no number of repetitions\n", argv[0], argv[i]);
      std::exit(2);
    }
  }
  return arguments;
}

Usage UsageOf(pid_t process) {
  std::string line;
  std::getline(std::ifstream(absl::StrCat("/proc/", process, "/stat")), line);
  const std::vector<std::string> fields = absl::StrSplit(line.substr(line.rfind(')') + 2), ' ');
  int64_t values[4] = {};
  for (int i = 0; i < 4; ++i) {
    constexpr int kFields[] = {7, 9, 11, 12};  // minor faults, major faults, user, system
    if (!absl::SimpleAtoi(fields[kFields[i]], &values[i])) std::abort();
  }
  return {.page_faults = values[0] + values[1],
          .seconds = static_cast<double>(values[2] + values[3]) /
                     static_cast<double>(sysconf(_SC_CLK_TCK))};
}

double OwnSeconds() { return UsageOf(getpid()).seconds; }

Peers::Peers(std::vector<std::string> flags) {
  StartDaemon(std::move(flags));
  raw_ = fork();
  if (raw_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ServeRaw(directory_ + "/raw", kTcpPort + 1);
}

Peers::Peers(WithoutRaw, const std::string& config) {
  const std::string path = absl::StrCat("/tmp/opserve-benchmark-", getpid(), ".txtpb");
  std::ofstream(path) << config;
  StartDaemon({"--config=" + path});
  Connect(OurUnix());  // it has read the file when it serves
  unlink(path.c_str());
}

void Peers::StartDaemon(std::vector<std::string> flags) {
  setenv("OPSERVE_HOST_DEVICES", "1", 1);  // so that it has all cores
  std::string pattern = "/tmp/opserve-benchmark-XXXXXX";
  directory_ = mkdtemp(pattern.data());
  flags.insert(flags.end(),
               {absl::StrCat("--listen=", OurUnix(), ",", OurTcp()), "--admin_listen=none",
                "--metrics_listen=none", "--drain_delay=0s", "--log_level=off",
                "--pinned_pool_bytes=1073741824", "--workspace_max_bytes=3221225472"});
  daemon_.emplace(std::move(flags));
}

Peers::~Peers() {
  if (raw_ > 0) {
    kill(raw_, SIGKILL);
    waitpid(raw_, nullptr, 0);
  }
  daemon_->End(SIGTERM);
  unlink((directory_ + "/raw").c_str());
  rmdir(directory_.c_str());
}

std::string Peers::OurTcp() { return absl::StrCat("127.0.0.1:", kTcpPort); }
std::string Peers::RawTcp() { return absl::StrCat("127.0.0.1:", kTcpPort + 1); }

std::unique_ptr<Client> Peers::Connect(const std::string& target, bool session,
                                       const std::string& token) {
  auto client = Client::Connect(
      target, {.wait_for_ready = absl::Seconds(60), .token = token, .session = session});
  Require(client.status());
  return *std::move(client);
}

int64_t Peers::ResidentBytes() const { return ResidentBytesOf(daemon_->pid()); }

Pair Compare(int repetitions, const std::function<double()>& ours,
             const std::function<double()>& peer) {
  std::vector<double> our_values;
  std::vector<double> peer_values;
  std::vector<double> ratios;
  for (int i = 0; i < repetitions; ++i) {
    our_values.push_back(ours());
    peer_values.push_back(peer());
    ratios.push_back(our_values.back() / peer_values.back());
  }
  return {Median(our_values), Median(peer_values), Median(ratios)};
}

}  // namespace opserve::benchmark
