// Runs the program that is named, or all, each in a process of its own, and counts those that ran.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "program.h"

namespace {

// Ends a program that does not end.
constexpr unsigned kLimitSeconds = 60;

std::vector<Program> AllPrograms() {
  std::vector<Program> all;
  for (const auto& programs :
       {CapturePrograms(), ContextPrograms(), CopyPrograms(), DevicePrograms(), MemoryPrograms(),
        OperatorPrograms(), ProcessPrograms(), StreamPrograms()}) {
    all.insert(all.end(), programs.begin(), programs.end());
  }
  return all;
}

bool RunsInAProcess(const Program& program) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kLimitSeconds);
    program.run();
    std::exit(0);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const named = argc > 1 ? argv[1] : nullptr;
  size_t num_programs = 0;
  bool all_ran = true;
  for (const Program& program : AllPrograms()) {
    if (named != nullptr && std::strcmp(named, program.name) != 0) continue;
    const bool ran = RunsInAProcess(program);
    std::printf("%s: %s\n", program.name, ran ? "ok" : "FAILED");
    std::fflush(stdout);  // a child must not print it again
    all_ran = all_ran && ran;
    ++num_programs;
  }
  if (named != nullptr && num_programs == 0) std::fprintf(stderr, "no program %s\n", named);
  std::printf("%zu programs\n", num_programs);
  return all_ran && num_programs > 0 ? 0 : 1;
}
