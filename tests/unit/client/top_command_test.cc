#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/client/command_line_fixture.h"
#include "tests/unit/client/pseudo_terminal.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class TopCommandTest : public CommandLineTest {
 protected:
  Output RunTop(const std::string& flags) {
    return RunProgram(
        absl::StrSplit(absl::StrCat("top --admin-target=", server_.admin_target(), " ", flags), ' ',
                       absl::SkipEmpty()));
  }

  // Runs `opserve top` with standard input and output on `terminal`, until somebody quits.
  ExitCode RunOn(const PseudoTerminal& terminal, std::vector<std::string> arguments) {
    const int old_in = dup(STDIN_FILENO);
    const int old_out = dup(STDOUT_FILENO);
    dup2(terminal.fd(), STDIN_FILENO);
    dup2(terminal.fd(), STDOUT_FILENO);
    std::ostringstream out;
    std::ostringstream err;
    Terminal streams{.out = out, .err = err, .out_is_terminal = true};
    arguments.insert(arguments.begin(), "top");
    arguments.push_back("--admin-target=" + server_.admin_target());
    const ExitCode exit_code = RunCommandLine(arguments, streams);
    dup2(old_in, STDIN_FILENO);
    dup2(old_out, STDOUT_FILENO);
    close(old_in);
    close(old_out);
    EXPECT_EQ(out.str(), "");
    return exit_code;
  }
};

TEST_F(TopCommandTest, WithoutATerminalEachSampleIsATable) {
  const Output output = RunTop("--count=2");

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  const std::vector<std::string> samples = absl::StrSplit(output.out, "\n\ndaemon");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_THAT(samples[1], StartsWith(" npu7 at " + server_.admin_target() + "\n"));
  EXPECT_THAT(samples[0], AllOf(HasSubstr("means since the start"), Not(HasSubstr("keys"))));
  EXPECT_THAT(samples[1], AllOf(HasSubstr("rates over 1.0 s"), HasSubstr("100.0%"),
                                HasSubstr("  0  ready    0/4       0   10.0")));
  EXPECT_THAT(output.out, Not(HasSubstr("\x1b")));
}

TEST_F(TopCommandTest, JsonIsOneObjectALine) {
  const Output output = RunTop("--count=2 --format=json");

  const std::vector<std::string> lines = absl::StrSplit(output.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["time"], "2023-11-14T22:15:00Z");
  EXPECT_EQ(nlohmann::json::parse(lines[0])["daemon"], "npu7");
  EXPECT_EQ(nlohmann::json::parse(lines[0])["socket"], server_.admin_target());
  EXPECT_EQ(nlohmann::json::parse(lines[1])["devices"][0]["completed_requests"], 1010);
}

TEST_F(TopCommandTest, ADaemonThatStopsIsAnError) {
  const Output output = RunTop("--count=9");

  EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(output.err, HasSubstr("the daemon stops"));
}

TEST_F(TopCommandTest, WrongFlagsAreExplained) {
  struct Case {
    const char* flags;
    const char* error;
  };
  const Case kCases[] = {
      {"--sort=size", "\"size\" is not share, name, pending or memory"},
      {"--interval=99ms", "\"99ms\" is not between 100ms and 1h"},
      {"--interval=soon", "\"soon\" is not a time"},
      {"--count=0", "--count"},
  };
  for (const Case& c : kCases) {
    const Output output = RunTop(c.flags);
    EXPECT_EQ(output.exit_code, ExitCode::kUsage) << c.flags;
    EXPECT_THAT(output.err, AllOf(HasSubstr(c.error), HasSubstr("opserve help top")));
    EXPECT_THAT(output.out, IsEmpty());
  }
}

TEST_F(TopCommandTest, OnATerminalItIsDrawnInPlaceAndKeysSortIt) {
  ASSERT_EQ(setenv("TERM", "xterm", 1), 0);
  ASSERT_EQ(setenv("NO_COLOR", "1", 1), 0);
  PseudoTerminal terminal;
  std::string first;
  std::string sorted;
  std::thread person([&] {
    first = terminal.ReadUntil("\x1b[J");
    terminal.Type("n");
    sorted = terminal.ReadUntil("\x1b[J");
    terminal.Type("q");
  });

  EXPECT_EQ(RunOn(terminal, {"--interval=1h"}), ExitCode::kOk);

  person.join();
  EXPECT_THAT(first, AllOf(HasSubstr("\x1b[?1049h"), HasSubstr("daemon npu7 at unix:"),
                           HasSubstr("s share*"), HasSubstr("batch")));
  EXPECT_THAT(sorted, AllOf(HasSubstr("n name*"), Not(HasSubstr("\x1b[0m"))));
  EXPECT_THAT(terminal.ReadUntil("1049l"), EndsWith("\x1b[?1049l"));
}

TEST_F(TopCommandTest, ColorsAreForTerminals) {
  ASSERT_EQ(setenv("TERM", "xterm", 1), 0);
  ASSERT_EQ(unsetenv("NO_COLOR"), 0);
  PseudoTerminal terminal;
  terminal.Type("q");

  EXPECT_EQ(RunOn(terminal, {}), ExitCode::kOk);

  EXPECT_THAT(terminal.ReadUntil("1049l"), HasSubstr("\x1b[32mready\x1b[0m"));
}

}  // namespace
}  // namespace opserve::cli
