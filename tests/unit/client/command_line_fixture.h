// Runs of the program `opserve` in the test's own process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/command_line.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve::cli {

// The path of an array of tests/data.
inline std::string Fixture(const std::string& name) {
  return absl::StrCat(OPSERVE_TEST_DATA_DIR, "/arrays/", name, ".npy");
}

struct Output {
  ExitCode exit_code;
  std::string out;
  std::string err;
};

inline Output RunProgram(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{.out = out, .err = err};
  const ExitCode exit_code = RunCommandLine(arguments, terminal);
  return {exit_code, out.str(), err.str()};
}

// Runs commands, written as in a shell without quotes, against a daemon.
class CommandLineTest : public testing::Test {
 protected:
  Output RunHere(const std::string& command) {
    std::vector<std::string> arguments = absl::StrSplit(command, ' ', absl::SkipEmpty());
    arguments.push_back("--target=" + server_.target());
    return RunProgram(arguments);
  }

  TestServer server_;
};

}  // namespace opserve::cli
