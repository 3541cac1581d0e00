#include "client/cli/commands/daemon_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"

namespace opserve::cli {
namespace {

// Copies the program's output as it comes.
void CopyOutput(int descriptor, std::ostream& out) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t size = read(descriptor, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    // 0: the program has closed its output, mostly by its end.
    if (size <= 0) return;
    out.write(buffer.data(), size);
    out.flush();
  }
}

}  // namespace

std::string DaemonProgram() {
  std::error_code error;
  // By the link: argv[0] may be anything.
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = own.parent_path() / "opserved";
  return !error && std::filesystem::exists(beside, error) ? beside.string() : "opserved";
}

std::variant<int, Failure> RunDaemonProgram(const std::vector<std::string>& arguments,
                                            std::ostream& out) {
  const std::string program = DaemonProgram();
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failure{.status = absl::ErrnoToStatus(errno, "pipe2")};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Only standard output: errors go where this program's go.
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  // The copy in this process would keep the pipe open after the program's end.
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return UsageFailure(absl::ErrnoToStatus(error, program),
                        "install the daemon on this machine, or add it to $PATH");
  }
  CopyOutput(ends[0], out);
  close(ends[0]);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace opserve::cli
