#include "client/cli/command_doctor.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/daemon_program.h"

namespace opserve::cli {
namespace {

constexpr char kDoctorFooter[] =
    R"(Looks at this machine, as the daemon would use it: NPU drivers, CANN's libraries and
versions, limits and permissions; then opens every device, compares every operator's result
with a known one, and measures copies and launches. Says what is wrong and what to do;
--format=json always has every operator.
It needs no running daemon. Exit code 1: something is wrong.

Examples:
  opserve doctor                               the host CANN, this machine's processors
  opserve doctor --acl-library-dir=cann        this machine's NPUs
  opserve doctor --config=/etc/opserve/opserved.textproto
  opserve doctor --acl-library-dir=cann --format=json > report.json)";

struct DoctorArguments {
  std::string acl_library_dir;
  std::string config;
  bool is_verbose = false;
};

// Copies the program's output as it comes.
void CopyOutput(int descriptor, std::ostream& out) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t size = read(descriptor, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    out.write(buffer.data(), size);
    out.flush();
  }
}

std::optional<Failure> RunDoctor(const DoctorArguments& arguments, Session& session) {
  const std::string program = DaemonProgram();
  std::vector<std::string> words = {program, "--self_test"};
  if (session.format == OutputFormat::kJson) words.push_back("--self_test_format=json");
  if (arguments.is_verbose) words.push_back("--self_test_verbose");
  if (!arguments.config.empty()) words.push_back(absl::StrCat("--config=", arguments.config));
  if (!arguments.acl_library_dir.empty()) {
    words.push_back(absl::StrCat("--acl_library_dir=", arguments.acl_library_dir));
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failure{.status = absl::ErrnoToStatus(errno, "pipe2")};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return UsageFailure(absl::ErrnoToStatus(error, program),
                        "install the daemon on this machine, or add it to $PATH");
  }
  CopyOutput(ends[0], session.terminal.out);
  close(ends[0]);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
    return UsageFailure(absl::InvalidArgumentError("opserved does not understand these settings"));
  }
  if (WIFSIGNALED(status)) {
    return Failure{.status = absl::InternalError(absl::StrCat(
                       "opserved --self_test was ended by signal ", WTERMSIG(status)))};
  }
  return Failure{.status = absl::FailedPreconditionError("this machine is not healthy")};
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Command* command) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* doctor = app.add_subcommand("doctor", "Look whether this machine can serve");
  doctor
      ->add_option("--acl-library-dir", arguments->acl_library_dir,
                   "As opserved's: cann, an installation of CANN, or nothing for the host CANN")
      ->type_name("DIR");
  doctor->add_option("--config", arguments->config, "A configuration of opserved's to go by")
      ->type_name("FILE");
  doctor->add_flag("--verbose", arguments->is_verbose,
                   "A line for each operator, not only for those with something wrong");
  doctor->footer(kDoctorFooter);
  doctor->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunDoctor(*arguments, session); };
  });
}

}  // namespace opserve::cli
