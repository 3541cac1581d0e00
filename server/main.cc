// opserved: the daemon's process. Flags in, signals, exit codes out.

#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/stubs/logging.h"
#include "server/config/config.h"
#include "server/config/config_text.h"
#include "server/config/flags.h"
#include "server/daemon.h"
#include "server/diagnosis/self_test.h"
#include "server/observability/log.h"
#include "server/rpc/grpc_server.h"
#include "server/service_manager.h"

namespace opserve::server {
namespace {

enum ExitCode { kEndedWell = 0, kCannotStart = 1, kBadFlags = 2, kCutOff = 3 };

// Signals are taken by threads that wait for them, so they interrupt nothing.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// Waits for a signal that ends the daemon; SIGHUP reloads meanwhile.
int AwaitEnd(const sigset_t& signals, Daemon* daemon) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
    if (daemon != nullptr) daemon->Reload(LoadConfig()).IgnoreError();  // logged and counted
  }
  return signal;
}

// Message buffers are large and come again at once: memory that went back to the system would have
// to be mapped and zeroed anew, which costs more than copying the message. Of the arenas only the
// main one keeps it: others unmap each 64 MiB that are free. What is small comes from the threads'
// own caches, so they seldom meet there.
void KeepFreedMemory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
}

// Debian's abseil looks for lock cycles at every lock, which the tests' ThreadSanitizer does, too.
void TrustMutexes() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

ExitCode Fail(ExitCode code, const absl::Status& status) {
  FlushLog();  // what led to it comes first
  std::fprintf(stderr, "opserved: %s\n", std::string(status.message()).c_str());
  return code;
}

ExitCode TestItself(const Config& config) {
  const std::string format = SelfTestFormat();
  if (format != "text" && format != "json") {
    return Fail(kBadFlags, absl::InvalidArgumentError(absl::StrCat("--self_test_format=", format,
                                                                   ": must be text or json")));
  }
  // Its lanes, the polling threads' own, and that of golden values.
  const uint32_t streams = config.streams_per_device + GrpcServer::NumPollers() + 1;
  SetLogLevel("off").IgnoreError();  // the report says it better
  const bool is_healthy = RunSelfTest(
      config, streams, format == "json" ? Report::Format::kJson : Report::Format::kText, stdout);
  return is_healthy ? kEndedWell : kCannotStart;
}

ExitCode Run() {
  const sigset_t signals = BlockSignals();
  const auto flush =
      absl::MakeCleanup([] { FlushLog(); });  // after what the daemon's end has to say
  KeepFreedMemory();
  TrustMutexes();
  // What protobuf would print of malformed messages, their senders are told; the log stays JSON.
  google::protobuf::SetLogHandler(nullptr);
  const absl::StatusOr<Config> config = LoadConfig();
  if (!config.ok()) return Fail(kBadFlags, config.status());
  if (ShouldOnlyValidate()) {
    config::ServerConfig values = config->values;
    FillDefaults(&values);
    for (const std::string& warning : TenantWarnings(config->values)) {
      std::fprintf(stderr, "opserved: warning: %s\n", warning.c_str());
    }
    std::fputs(ToText(values).c_str(), stdout);
    return kEndedWell;
  }
  if (absl::Status status = SetLogLevel(config->log_level); !status.ok()) {
    return Fail(kBadFlags, status);
  }
  for (const std::string& warning : TenantWarnings(config->values)) {
    LogWarning("config_warning", {{"warning", warning}});
  }
  if (ShouldOnlyTestItself()) return TestItself(*config);
  const absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(*config, &LoadConfig);
  if (!daemon.ok()) return Fail(kCannotStart, daemon.status());

  ServiceManager manager([&daemon](absl::Duration timeout) { return (*daemon)->IsAlive(timeout); });
  LogInfo("signal", {{"number", AwaitEnd(signals, daemon->get())}});
  manager.TellStopping();
  std::thread([signals] {
    LogWarning("ended_at_once", {{"number", AwaitEnd(signals, nullptr)}});
    FlushLog();
    _exit(kCutOff);
  }).detach();
  // What did not end in time would not end soon either: the process goes, and callers see their
  // connection break, which tells them to repeat the call elsewhere.
  if ((*daemon)->Drain() > 0) {
    FlushLog();
    _exit(kCutOff);
  }
  return kEndedWell;
}

}  // namespace
}  // namespace opserve::server

int main(int argc, char** argv) {
  opserve::server::SetUsage();
  const std::vector<char*> positional = opserve::server::ParseFlags(argc, argv);
  if (positional.size() > 1) {
    std::fprintf(stderr, "opserved: unexpected argument \"%s\"; see --help\n", positional[1]);
    return 2;
  }
  return opserve::server::Run();
}
