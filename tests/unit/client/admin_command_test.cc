#include <cstdlib>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/client/command_line_fixture.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class AdminCommandTest : public CommandLineTest {
 protected:
  Output RunAdmin(const std::string& command) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{.out = out, .err = err};
    return RunAdmin(command, terminal, out, err);
  }

  // The same before a person who types `answer`.
  Output RunAdminAndType(const std::string& command, const std::string& answer) {
    std::ostringstream out;
    std::ostringstream err;
    std::istringstream answers(answer);
    Terminal terminal{.out = out, .err = err, .answers = &answers};
    return RunAdmin(command, terminal, out, err);
  }

  // The first line of each answer.
  std::string Who() const { return "daemon npu7 at " + server_.admin_target() + "\n"; }

 private:
  Output RunAdmin(const std::string& command, Terminal& terminal, const std::ostringstream& out,
                  const std::ostringstream& err) {
    const std::string line = "admin " + command + " --admin-target=" + server_.admin_target();
    const ExitCode code = RunCommandLine(absl::StrSplit(line, ' ', absl::SkipEmpty()), terminal);
    return {code, out.str(), err.str()};
  }
};

TEST_F(AdminCommandTest, EachCommandSaysWhatItDid) {
  struct Case {
    const char* command;
    const char* text;
    const char* json;
  };
  const Case kCases[] = {
      {"drain 0 --yes",
       "device 0 is drained; 3 of its requests went to other devices\n"
       "2 resident tensors (1.5 KiB) cannot be used until it is resumed\n",
       R"({"device":0,"moved_requests":3,"resident_tensors":2,"resident_bytes":1536)"},
      {"resume 0", "device 0 is ready\n", R"({"device":0)"},
      {"trim 0", "the pool of device 0 gave back 4 KiB\n", R"({"device":0,"trimmed_bytes":4096)"},
      {"log-level debug", "the log level is debug\n", R"({"log_level":"debug")"},
  };
  for (const Case& c : kCases) {
    const Output text = RunAdmin(c.command);
    EXPECT_EQ(text.exit_code, ExitCode::kOk) << text.err;
    EXPECT_EQ(text.out, Who() + c.text);
    const Output json = RunAdmin(std::string(c.command) + " --format=json");
    EXPECT_EQ(
        nlohmann::ordered_json::parse(json.out).dump(),
        absl::StrCat(c.json, R"(,"daemon":"npu7","socket":")", server_.admin_target(), "\"}"));
  }
}

TEST_F(AdminCommandTest, SnapshotShowsEveryBlock) {
  EXPECT_EQ(RunAdmin("snapshot 0").out,
            Who() +
                "REGION  OFFSET  BYTES  STATE      STREAM  OWNER  AGE    REQUESTED\n"
                "     0       0   2048  allocated          0      1m40s  1500\n"
                "     0    2048   2048  idle\n"
                "     0    4096   2048  retired         3\n"
                "6 KiB reserved: 2 KiB allocated, 2 KiB idle, 2 KiB retired\n");

  const auto json = nlohmann::json::parse(RunAdmin("snapshot 0 --format=json").out);
  EXPECT_EQ(json["reserved_bytes"], 6144);
  EXPECT_EQ(json["regions"][0]["blocks"][2]["state"], "RETIRED");
}

TEST_F(AdminCommandTest, TensorsSayWhoHasTheMemory) {
  EXPECT_EQ(RunAdmin("tensors").out,
            Who() +
                "TENANT    HANDLE  TENSOR        SIZE  DEVICE    AGE  LEASE LEFT\n"
                "batch   5f1c09a2  BF16 [8, 4]  512 B       1  1m40s  over\n"
                "... and 2 smaller ones\n"
                "3 resident tensors (1 KiB)\n");
  EXPECT_EQ(RunAdmin("tensors --tenant=online").out, Who() + "0 resident tensors (0 B)\n");
  const Output unknown = RunAdmin("tensors --tenant none");
  EXPECT_EQ(unknown.exit_code, ExitCode::kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("NOT_FOUND: there is no tenant none"));
  const auto json = nlohmann::json::parse(RunAdmin("tensors --format=json").out);
  EXPECT_EQ(json["total_bytes"], 1024);
  EXPECT_EQ(json["tensors"][0]["handle_start"], "5f1c09a2");
  EXPECT_EQ(json["tensors"][0]["age_seconds"], 100);
}

TEST_F(AdminCommandTest, StatusIsOneSampleWithMeansSinceTheStart) {
  EXPECT_EQ(
      RunAdmin("status").out,
      Who() +
          "opserved 1.2.3 on host CANN, up 00:01:40, 0 connections, log level info\n"
          "2023-11-14 22:15:00 UTC, means since the start, pinned 0/0 B\n"
          "\n"
          "DEV  STATE  LANES  QUEUED  REQ/S   POOL  MEMORY  RESIDENT\n"
          "  0  ready    0/4       0   10.0  0/0 B   0/0 B         2\n"
          "\n"
          "TENANT  PENDING  QUEUED  REQ/S  FAIL/S  SHARE  MEMORY  LATENCY  BYTES/S  LAG  WEIGHT"
          "  RESIDENT  PREPARED\n"
          "batch         0       0    5.0     0.0  50.0%     0 B        -      0 B  0ms       1"
          "       0 B         0\n"
          "online        0       0    5.0     0.0  50.0%     0 B        -      0 B  0ms       1"
          "       0 B         0\n");
  const auto json = nlohmann::json::parse(RunAdmin("status --format=json").out);
  EXPECT_EQ(json["tenants"][0]["requests"], 510);
  EXPECT_EQ(json["daemon"], "npu7");
  EXPECT_EQ(json["socket"], server_.admin_target());
}

TEST_F(AdminCommandTest, RefusalsAreReported) {
  EXPECT_THAT(RunAdmin("reload").err, HasSubstr("FAILED_PRECONDITION: listen needs a restart"));
  EXPECT_THAT(RunAdmin("log-level loud").err, HasSubstr("unknown log level loud"));

  const Output unknown = RunAdmin("trim 7");
  EXPECT_EQ(unknown.exit_code, ExitCode::kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("NOT_FOUND: no device 7\n  from: " + Who()));
  const auto json = nlohmann::json::parse(RunAdmin("trim 7 --format=json").err);
  EXPECT_EQ(json["error"]["from"].get<std::string>() + "\n", Who());

  const Output draining = RunAdmin("drain 1 --timeout=20s");
  EXPECT_EQ(draining.exit_code, ExitCode::kFailed);
  EXPECT_THAT(draining.err,
              AllOf(HasSubstr("still draining"), HasSubstr("hint: --timeout was 20s")));
}

TEST_F(AdminCommandTest, TheLastReadyDeviceIsDrainedForThoseWhoSaySo) {
  const Output script = RunAdmin("drain 0");
  EXPECT_EQ(script.exit_code, ExitCode::kFailed);
  EXPECT_THAT(script.err,
              AllOf(HasSubstr("device 0 is the last ready device of the daemon npu7 at unix:"),
                    HasSubstr("2 resident tensors (1.5 KiB) cannot be used"), HasSubstr("--yes")));

  for (const char* answer : {"npu8\n", "\n", ""}) {
    const Output person = RunAdminAndType("drain 0", answer);
    EXPECT_EQ(person.exit_code, ExitCode::kFailed);
    EXPECT_THAT(person.err, AllOf(HasSubstr("To drain it, type the daemon's name, npu7: "),
                                  HasSubstr("is not the daemon's name, npu7")));
  }
  EXPECT_EQ(server_.admin().drains(), 0);

  const Output person = RunAdminAndType("drain 0", " npu7 \n");
  EXPECT_EQ(person.exit_code, ExitCode::kOk) << person.err;
  EXPECT_EQ(RunAdminAndType("drain 0 --yes", "").exit_code, ExitCode::kOk);
  EXPECT_EQ(server_.admin().drains(), 2);
}

TEST_F(AdminCommandTest, ADaemonIsDrainedForThoseWhoSaySoAndWhatIsLostIsAFailure) {
  const Output script = RunAdmin("drain-daemon");
  EXPECT_EQ(script.exit_code, ExitCode::kFailed);
  EXPECT_THAT(script.err, AllOf(HasSubstr("the daemon npu7 at unix:"),
                                HasSubstr("serves nothing from then on"), HasSubstr("--yes")));
  EXPECT_EQ(RunAdminAndType("drain-daemon", "npu8\n").exit_code, ExitCode::kFailed);

  const Output drained = RunAdminAndType("drain-daemon", "npu7\n");
  const Output lossy = RunAdmin("drain-daemon --yes");

  EXPECT_EQ(drained.exit_code, ExitCode::kOk) << drained.err;
  EXPECT_EQ(drained.out, Who() +
                             "the daemon is drained and waits for SIGTERM; 2 resident tensors (1.5 "
                             "KiB) and 1 prepared program went to two:1\n");
  EXPECT_EQ(lossy.exit_code, ExitCode::kFailed);
  EXPECT_THAT(lossy.err, HasSubstr("1 resident tensor lost, 0 calls cut off"));
}

// They would act on the daemon of this machine instead.
TEST_F(AdminCommandTest, TargetsOfClientsAreRefused) {
  const std::string named = " --admin-target=" + server_.admin_target();
  for (const std::string command :
       {"admin status", "admin drain 0 --yes", "admin resume 0", "top", "admin reload"}) {
    for (const std::string& more : {std::string(), named}) {
      const Output remote = RunProgram(
          absl::StrSplit(command + more + " --target=npu7.example:50051", ' ', absl::SkipEmpty()));
      EXPECT_EQ(remote.exit_code, ExitCode::kUsage) << command;
      EXPECT_THAT(remote.err, AllOf(HasSubstr("--target=npu7.example:50051 is where clients"),
                                    HasSubstr("--admin-target=unix:PATH")));
    }
    const Output local = RunProgram(absl::StrSplit(command + " --target=" + server_.target(), ' '));
    EXPECT_EQ(local.exit_code, ExitCode::kUsage) << command;
    EXPECT_THAT(local.err, HasSubstr("say --admin-target=" + server_.target() + ".admin\n"));
  }
  EXPECT_EQ(server_.admin().drains(), 0);
}

TEST_F(AdminCommandTest, ATargetOfTheEnvironmentCountsIfItIsASocket) {
  for (const char* target : {"npu7.example:50051", "127.0.0.1:1", "unix:/a,unix:/b"}) {
    ASSERT_EQ(setenv("OPSERVE_TARGET", target, 1), 0);
    for (const char* command : {"admin status", "admin drain 0 --yes", "admin resume 0", "top"}) {
      const Output output = RunProgram(absl::StrSplit(command, ' '));
      EXPECT_EQ(output.exit_code, ExitCode::kUsage) << command;
      EXPECT_THAT(output.err, AllOf(HasSubstr(absl::StrCat("OPSERVE_TARGET is ", target)),
                                    HasSubstr("--admin-target")));
    }
    EXPECT_EQ(RunAdmin("status").exit_code, ExitCode::kOk);
  }
  ASSERT_EQ(setenv("OPSERVE_TARGET", "unix:/nowhere/a.sock", 1), 0);
  const Output output = RunProgram({"admin", "status"});
  ASSERT_EQ(unsetenv("OPSERVE_TARGET"), 0);
  EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(output.err, HasSubstr("cannot reach the daemon at unix:/nowhere/a.sock.admin"));
}

TEST_F(AdminCommandTest, AnAdminTargetMustBeOne) {
  const Output output = RunProgram({"admin", "drain", "0", "--admin-target=nowhere"});
  EXPECT_EQ(output.exit_code, ExitCode::kUsage);
  EXPECT_THAT(output.err, HasSubstr("nowhere"));
}

TEST_F(AdminCommandTest, WithoutADaemonItSaysWhereItLooked) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("none");

  const Output output = RunProgram({"admin", "resume", "0", "--admin-target", target});

  EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(output.err, AllOf(HasSubstr("cannot reach the daemon at " + target),
                                HasSubstr("--admin-target")));
}

}  // namespace
}  // namespace opserve::cli
