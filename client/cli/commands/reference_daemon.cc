#include "client/cli/commands/reference_daemon.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands/daemon_program.h"

namespace opserve::cli {
namespace {

// Self-tests at the start take seconds on a busy machine.
constexpr absl::Duration kStartTime = absl::Seconds(20);
constexpr absl::Duration kAttempt = absl::Milliseconds(200);

// This process's environment, without settings that make the host CANN slow or faulty.
std::vector<char*> CleanEnvironment() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    // Faults and slow launches are for tests of daemons; the reference must be right.
    if (!absl::StartsWith(*variable, "OPSERVE_HOST_")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReferenceDaemon>> ReferenceDaemon::Start() {
  std::string directory = (std::filesystem::temp_directory_path() / "opserve-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return absl::ErrnoToStatus(errno, directory);
  // Owned from here on: a failure below removes the directory and ends the process.
  auto daemon = std::unique_ptr<ReferenceDaemon>(new ReferenceDaemon(std::move(directory)));
  absl::Status status = daemon->Launch();
  if (status.ok()) status = daemon->Connect();
  if (!status.ok()) return status;
  return daemon;
}

ReferenceDaemon::~ReferenceDaemon() {
  // The client first: it would take the daemon's end for a fault.
  client_.reset();
  if (process_ != 0) {
    // At once: it has nothing to save.
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

absl::Status ReferenceDaemon::Launch() {
  // All is made before the fork: after it only calls are allowed that need no lock.
  const std::string program = DaemonProgram();
  const std::string log = directory_ + "/log";
  std::vector<std::string> arguments = {
      program, absl::StrCat("--listen=unix:", directory_, "/socket"), "--metrics_listen=none",
      "--admin_listen=none", "--acl_library_dir=",
      // The largest: tensors in float64 take more than those of the call that is verified.
      "--max_message_bytes=2147483647"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::vector<char*> environment = CleanEnvironment();
  const pid_t parent = getpid();

  process_ = fork();
  if (process_ < 0) {
    process_ = 0;
    return absl::ErrnoToStatus(errno, "fork");
  }
  if (process_ > 0) return absl::OkStatus();
  // The reference ends with this process, however that ends.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it ended meanwhile
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  setpgid(0, 0);  // Ctrl-C is for this process, which then ends it
  execvpe(program.c_str(), argv.data(), environment.data());
  const char kMissing[] = "there is no opserved beside this program or in $PATH\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMissing, sizeof(kMissing) - 1);
  _exit(127);
}

absl::Status ReferenceDaemon::Connect() {
  const std::string target = absl::StrCat("unix:", directory_, "/socket");
  const absl::Time deadline = absl::Now() + kStartTime;
  while (absl::Now() < deadline) {
    // A daemon that cannot start is found at once instead of after the whole time.
    if (HasEnded()) break;
    auto client = Client::Connect(target, {.wait_for_ready = kAttempt});
    if (!client.ok()) continue;
    client_ = *std::move(client);
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the local reference, an opserved on the host CANN, does not start: ", LastWords()));
}

bool ReferenceDaemon::HasEnded() {
  if (process_ != 0 && waitpid(process_, nullptr, WNOHANG) == process_) process_ = 0;
  return process_ == 0;
}

std::string ReferenceDaemon::LastWords() const {
  std::ifstream log(directory_ + "/log");
  std::string last = "it says nothing";
  for (std::string line; std::getline(log, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace opserve::cli
