// opserved: the daemon's process. Flags in, signals, exit codes out.

#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "google/protobuf/stubs/logging.h"
#include "server/config/config.h"
#include "server/config/config_text.h"
#include "server/config/flags.h"
#include "server/config/flags_help.h"
#include "server/daemon.h"
#include "server/device/memory/allocation_replay.h"
#include "server/diagnosis/pack_trial.h"
#include "server/diagnosis/self_test.h"
#include "server/grpc/grpc_log.h"
#include "server/listeners/grpc_server.h"
#include "server/observability/log.h"
#include "server/program/operator_pack.h"
#include "server/telemetry/service_manager.h"

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
// `on_reload` may be null.
int AwaitEnd(const sigset_t& signals, const std::function<void()>& on_reload) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
    if (on_reload) on_reload();
  }
  return signal;
}

// Message buffers are large and come again at once: memory that went back to the system would have
// to be mapped and zeroed anew, which costs more than copying the message. Of the arenas only the
// main one keeps it: others unmap each 64 MiB that are free. Small allocations come from the
// threads' own caches, so threads seldom meet there.
void KeepFreedMemory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
}

// Debian's abseil looks for lock cycles at every lock, which the tests' ThreadSanitizer does, too.
void TrustMutexes() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

ExitCode Fail(ExitCode code, const absl::Status& status) {
  FlushLog();  // the lines that led to it come first
  std::fprintf(stderr, "opserved: %s\n", std::string(status.message()).c_str());
  return code;
}

// The program of this process, even if another one is at its path by now.
constexpr char kOwnProgram[] = "/proc/self/exe";

void TryPack(const Config& config, OperatorPack* pack) {
  TryPackInChild(kOwnProgram, config, kPackTrialTime + absl::Seconds(2), pack);
}

// Ends without taking down the state that a foreign library has set up in this process.
[[noreturn]] void EndCheck(ExitCode code) {
  std::fflush(stdout);
  FlushLog();
  _exit(code);
}

[[noreturn]] void CheckPack(const Config& config, const std::string& path) {
  SetLogLevel("off").IgnoreError();  // the last line says it better
  absl::StatusOr<std::vector<OperatorPack>> packs =
      ReadOperatorPacks({path}, config.max_pack_operators);
  if (!packs.ok()) EndCheck(Fail(kBadFlags, packs.status()));
  const absl::Status status = TryPacks(config, *std::move(packs), stdout);
  if (status.ok()) EndCheck(kEndedWell);
  EndCheck(Fail(absl::IsInvalidArgument(status) ? kBadFlags : kCannotStart, status));
}

ExitCode TestItself(const Config& config, std::vector<OperatorPack> packs,
                    const config::Command& command) {
  const absl::string_view format = command.self_test_format();
  if (format != "text" && format != "json") {
    return Fail(kBadFlags, absl::InvalidArgumentError(absl::StrCat("--self_test_format=", format,
                                                                   ": must be text or json")));
  }
  // Its lanes, the polling threads' own, and that of golden values.
  const uint32_t streams = config.streams_per_device + GrpcServer::NumPollers() + 1;
  SetLogLevel("off").IgnoreError();  // the report says it better
  for (OperatorPack& pack : packs) TryPack(config, &pack);
  const bool is_healthy = RunSelfTest(config, std::move(packs), streams,
                                      format == "json"              ? Report::Format::kJson
                                      : command.self_test_verbose() ? Report::Format::kVerboseText
                                                                    : Report::Format::kText,
                                      stdout);
  return is_healthy ? kEndedWell : kCannotStart;
}

ExitCode ReplayLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(kBadFlags, absl::NotFoundError(absl::StrCat("cannot read ", path)));
  const absl::StatusOr<AllocationReplay> replay = ReplayAllocationLog(file);
  if (!replay.ok()) {
    return Fail(absl::IsDataLoss(replay.status()) ? kCannotStart : kBadFlags, replay.status());
  }
  const MemoryHeap::Bytes& bytes = replay->bytes;
  const std::string text = absl::StrCat(
      replay->lines, " lines, ", replay->lendings, " lendings, ", replay->merges,
      " merges; sums compared at ", replay->states, " places, equal",
      replay->is_full ? "; the log was full" : "", "\nreserved ", bytes.reserved, ", allocated ",
      bytes.allocated, " (requested ", bytes.requested, "), idle ", bytes.idle, " (largest ",
      replay->largest_idle_bytes, "), retired ", bytes.retired, " bytes\n");
  std::fputs(text.c_str(), stdout);
  return kEndedWell;
}

// Tells a person at a terminal; the log has it for programs.
void Tell(const std::string& text) {
  if (isatty(STDOUT_FILENO) == 0) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

ExitCode Run(const CommandLine& command_line) {
  const sigset_t signals = BlockSignals();
  const auto flush =
      absl::MakeCleanup([] { FlushLog(); });  // after the last lines of the daemon's end
  KeepFreedMemory();
  TrustMutexes();
  // Senders of malformed messages are told; protobuf's own text is no JSON for the log.
  google::protobuf::SetLogHandler(nullptr);
  LogGrpcMessages();
  const auto load_config = [&command_line] { return LoadConfig(command_line); };
  const config::Command& command = command_line.command();
  const absl::StatusOr<Config> config = load_config();
  if (!config.ok()) return Fail(kBadFlags, config.status());
  if (command.has_check_operator_pack()) CheckPack(*config, command.check_operator_pack());
  absl::StatusOr<std::vector<OperatorPack>> packs =
      ReadOperatorPacks(config->operator_packs, config->max_pack_operators);
  if (!packs.ok()) return Fail(kBadFlags, packs.status());
  if (command.validate_config()) {
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
  if (command.self_test()) return TestItself(*config, *std::move(packs), command);
  const absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(
      *config, load_config, {.packs = *std::move(packs), .try_pack = [&config](OperatorPack* pack) {
                               TryPack(*config, pack);
                             }});
  if (!daemon.ok()) return Fail(kCannotStart, daemon.status());

  Tell(absl::StrCat((*daemon)->Summary(),
                    "It serves until Ctrl-C, and then lets the calls that run end. The log (JSON "
                    "lines) is on standard error.\n"));
  // From here on systemd counts the daemon as started, and watches it.
  ServiceManager manager([&daemon](absl::Duration timeout) { return (*daemon)->IsAlive(timeout); });
  const auto reload = [&] { (*daemon)->Reload(load_config()).IgnoreError(); };  // logged, counted
  LogInfo("signal", {{"number", AwaitEnd(signals, reload)}});
  manager.TellStopping();
  Tell("opserved ends as soon as the calls that run have ended; Ctrl-C again cuts them off.\n");
  std::thread([signals] {
    LogWarning("ended_at_once", {{"number", AwaitEnd(signals, nullptr)}});
    FlushLog();
    _exit(kCutOff);
  }).detach();
  // A call that did not end in time would not end soon either: the process goes, and callers see
  // their connection break, which tells them to repeat the call elsewhere.
  if ((*daemon)->Drain() > 0) {
    FlushLog();
    _exit(kCutOff);
  }
  return kEndedWell;
}

}  // namespace
}  // namespace opserve::server

int main(int argc, char** argv) {
  using namespace opserve::server;  // NOLINT: the function stands for the namespace's program
  const size_t count = argc > 0 ? static_cast<size_t>(argc) - 1 : 0;
  const absl::StatusOr<CommandLine> command_line =
      CommandLine::Parse(absl::MakeConstSpan(argv + 1, count));
  if (!command_line.ok()) return Fail(kBadFlags, command_line.status());
  if (command_line->command().help()) {
    std::fputs(FlagsHelp().c_str(), stdout);
    return kEndedWell;
  }
  if (command_line->command().version()) {
    std::printf("opserved %s\n", OPSERVE_VERSION);
    return kEndedWell;
  }
  if (command_line->command().has_replay_allocation_log()) {
    return ReplayLog(command_line->command().replay_allocation_log());
  }
  return Run(*command_line);
}
