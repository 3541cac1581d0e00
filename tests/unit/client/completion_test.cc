#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/command_line_fixture.h"

namespace opserve::cli {
namespace {

using testing::HasSubstr;

class CompletionTest : public CommandLineTest {
 protected:
  // What may stand for the last word of `line`, separated by spaces. A line that ends with a space
  // has an empty one.
  std::string Complete(const std::string& line) {
    std::vector<std::string> arguments = {"--target=" + server_.target(), "complete", "--"};
    for (const auto word : absl::StrSplit(line, ' ')) arguments.emplace_back(word);
    const Output output = RunProgram(arguments);
    EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
    const std::vector<std::string> lines = absl::StrSplit(output.out, '\n', absl::SkipEmpty());
    return absl::StrJoin(lines, " ");
  }
};

TEST_F(CompletionTest, TheLastWordIsCompleted) {
  struct Case {
    const char* line;
    const char* candidates;
  };
  const Case kCases[] = {
      {"", "admin bench completion doctor help ops program run status tensor top"},
      {"te", "tensor"},
      {"x", ""},
      {"tensor ", "download list load release renew rm save upload"},
      {"tensor upload ", ""},  // a file
      {"--format json tensor re", "release renew"},
      {"tensor r", "release renew rm"},
      {"--for", "--format"},
      {"--format ", "json text"},
      {"run --input x=y.npy --output-", "--output-dtype"},
      {"run --priority ", "high low normal"},
      {"run Scale --forma", "--format"},
      {"--format=", "--format=json --format=text"},
      {"run --input ", ""},
      {"run Scale --input ", "x= y="},
      {"run Scale --input=", "--input=x= --input=y="},
      {"run Scale --input x=x.npy --input y", "y="},
      {"run Scale --input x=", "x=random: x=tensor:"},
      {"run Scale --input x=t", "x=tensor:"},
      {"run Scale --input x=file", ""},
      {"run Scale --attr f", "factor="},
      {"run Scale --attr mode=", "mode=mean mode=none"},
      {"run Scale --attr negate=", "negate=false negate=true"},
      {"run Scale --keep ", "out"},
      {"run Scale --keep=o", "--keep=out"},
      {"run Nonsense --attr ", ""},
      {"run Nonsense --keep ", ""},
      {"run Scale ", ""},
      {"bench Scale --attr mode=m", "mode=mean"},
      {"tensor upload x.npy --device ", "0 1"},
      {"admin drain ", "0 1"},
      {"admin drain 0 ", ""},
      {"run ", "Absent Scale"},
      {"ops Sc", "Scale"},
      {"bench --transport s", "session shm"},
      {"bench --transport session S", "Scale"},
      {"help ", "admin bench completion doctor help ops program run status tensor top"},
      {"help tensor d", "download"},
      {"run --tar", "--target"},
      {"admin drain --tar", ""},  // which it refuses
      {"admin status --admin", "--admin-target"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Complete(c.line), c.candidates) << c.line;
}

TEST_F(CompletionTest, HandlesAreCompletedWhereTheyAreTaken) {
  RunHere(absl::StrCat("tensor upload ", Fixture("f2")));
  EXPECT_EQ(Complete("tensor download 7"), "74656e73");
  EXPECT_EQ(Complete("tensor download 74656e736f"), "74656e736f");
  EXPECT_EQ(Complete("tensor download 75"), "");
  RunHere(absl::StrCat("tensor upload ", Fixture("f2")));

  const std::string both = "74656e736f722d30 74656e736f722d31";
  for (const char* line : {"tensor download ", "tensor rm ", "tensor renew 00 74"}) {
    EXPECT_EQ(Complete(line), both) << line;
  }
  EXPECT_EQ(Complete("run Scale --input x=tensor:74"),
            "x=tensor:74656e736f722d30 x=tensor:74656e736f722d31");
}

TEST_F(CompletionTest, WithoutADaemonThereAreNoOperators) {
  const Output output = RunProgram({"--target=unix:/none", "complete", "--", "run", ""});
  EXPECT_EQ(output.exit_code, ExitCode::kOk);
  EXPECT_EQ(output.out + output.err, "");
}

TEST(CompletionScriptTest, ThereIsOneForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Output output = RunProgram({"completion", shell});
    EXPECT_EQ(output.exit_code, ExitCode::kOk);
    EXPECT_THAT(output.out, HasSubstr("opserve complete --"));
  }
  const Output refused = RunProgram({"completion", "tcsh"});
  EXPECT_EQ(refused.exit_code, ExitCode::kUsage);
  EXPECT_THAT(refused.err, HasSubstr("\"tcsh\" is not bash, zsh or fish"));
}

}  // namespace
}  // namespace opserve::cli
