// A daemon as a process of its own.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace opserve {

class DaemonProcess {
 public:
  // Starts bin/opserved with these arguments and this program's environment. It says nothing.
  // Aborts the program if there is no such daemon.
  explicit DaemonProcess(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), OPSERVE_BUILD_DIR "/bin/opserved");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) {
      std::perror(argv[0]);
      std::abort();
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  ~DaemonProcess() { End(SIGKILL); }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Sends a signal and waits for the end.
  void End(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

}  // namespace opserve
