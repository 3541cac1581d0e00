// The daemon and the raw server, each a process of its own, and how benchmarks compare with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "client/cpp/client.h"
#include "tests/integration/daemon_process.h"

namespace opserve::benchmark {

// Ends the program with a message unless the status is OK.
void Require(const absl::Status& status);

// To be called first: as the daemon does, and as large tensors in a client want it.
void KeepFreedMemory();

// --repetitions=N (default 5) and the sections wanted (none: all). Ends the program with 2 if they
// are none.
struct Arguments {
  int repetitions = 5;
  std::set<std::string> sections;
};
Arguments ParseArguments(int argc, char** argv);

// What a process has used so far.
struct Usage {
  int64_t page_faults = 0;  // minor and major
  double seconds = 0;       // user and system time
};
Usage UsageOf(pid_t process);
double OwnSeconds();

class Peers {
 public:
  // `flags`: of the daemon, beside its listeners. The raw server is forked, so nothing may have
  // used gRPC before.
  explicit Peers(std::vector<std::string> flags = {});
  // A daemon alone, with this text as its configuration file.
  struct WithoutRaw {};
  Peers(WithoutRaw, const std::string& config);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  std::string OurUnix() const { return "unix:" + directory_ + "/socket"; }
  std::string RawUnix() const { return "unix:" + directory_ + "/raw"; }
  static std::string OurTcp();
  static std::string RawTcp();

  // `session`, `token`: as of ConnectOptions.
  static std::unique_ptr<Client> Connect(const std::string& target, bool session = false,
                                         const std::string& token = "");

  int64_t ResidentBytes() const;  // of the daemon
  Usage OurUsage() const { return UsageOf(daemon_->pid()); }
  Usage RawUsage() const { return UsageOf(raw_); }

 private:
  void StartDaemon(std::vector<std::string> flags);

  std::string directory_;
  std::optional<DaemonProcess> daemon_;
  pid_t raw_ = 0;  // 0: none
};

struct Pair {
  double ours = 0;  // medians
  double peer = 0;
  double ratio = 0;  // median of the repetitions' own
};

// Measures both in turn, so that what disturbs the machine disturbs both.
Pair Compare(int repetitions, const std::function<double()>& ours,
             const std::function<double()>& peer);

}  // namespace opserve::benchmark
