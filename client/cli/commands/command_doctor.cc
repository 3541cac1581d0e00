#include "client/cli/commands/commands.h"

#include <sys/wait.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/daemon_program.h"

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

// The daemon's program does the work: it alone loads ACL libraries, and they may crash it.
std::optional<Failure> RunDoctor(const DoctorArguments& arguments, Session& session) {
  std::vector<std::string> words = {"--self_test"};
  if (session.format == OutputFormat::kJson) words.push_back("--self_test_format=json");
  if (arguments.is_verbose) words.push_back("--self_test_verbose");
  if (!arguments.config.empty()) words.push_back(absl::StrCat("--config=", arguments.config));
  if (!arguments.acl_library_dir.empty()) {
    words.push_back(absl::StrCat("--acl_library_dir=", arguments.acl_library_dir));
  }
  const std::variant<int, Failure> end = RunDaemonProgram(words, session.terminal.out);
  if (const auto* failure = std::get_if<Failure>(&end)) return *failure;
  const int status = std::get<int>(end);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  // The daemon's code for settings that it cannot use.
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
    return UsageFailure(absl::InvalidArgumentError("opserved does not understand these settings"));
  }
  // Ended by a signal: the daemon or a library has crashed, which says nothing of the machine yet.
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
