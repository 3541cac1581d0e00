#include <string>

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
    return RunHere("admin " + command + " --admin-target=" + server_.admin_target());
  }
};

TEST_F(AdminCommandTest, EachCommandSaysWhatItDid) {
  struct Case {
    const char* command;
    const char* text;
    const char* json;
  };
  const Case kCases[] = {
      {"drain 0", "device 0 is drained; 3 of its requests went to other devices\n",
       R"({"device":0,"moved_requests":3})"},
      {"resume 0", "device 0 is ready\n", R"({"device":0})"},
      {"trim 0", "the pool of device 0 gave back 4 KiB\n", R"({"device":0,"trimmed_bytes":4096})"},
      {"log-level debug", "the log level is debug\n", R"({"log_level":"debug"})"},
  };
  for (const Case& c : kCases) {
    const Output text = RunAdmin(c.command);
    EXPECT_EQ(text.exit_code, ExitCode::kOk) << text.err;
    EXPECT_EQ(text.out, c.text);
    const Output json = RunAdmin(std::string(c.command) + " --format=json");
    EXPECT_EQ(nlohmann::ordered_json::parse(json.out).dump(), c.json);
  }
}

TEST_F(AdminCommandTest, SnapshotShowsEveryBlock) {
  EXPECT_EQ(RunAdmin("snapshot 0").out,
            "REGION  OFFSET  BYTES  STATE      REQUESTED\n"
            "     0       0   2048  allocated  1500\n"
            "     0    2048   2048  idle\n"
            "     0    4096   2048  retired\n"
            "6 KiB reserved: 2 KiB allocated, 2 KiB idle, 2 KiB retired\n");

  const auto json = nlohmann::json::parse(RunAdmin("snapshot 0 --format=json").out);
  EXPECT_EQ(json["reserved_bytes"], 6144);
  EXPECT_EQ(json["regions"][0]["blocks"][2]["state"], "RETIRED");
}

TEST_F(AdminCommandTest, StatusIsOneSampleWithMeansSinceTheStart) {
  EXPECT_EQ(RunAdmin("status").out,
            "opserved 1.2.3 on host CANN, up 00:01:40, 0 connections, log level info\n"
            "2023-11-14 22:15:00 UTC, means since the start, pinned 0/0 B\n"
            "\n"
            "DEV  STATE  LANES  QUEUED  REQ/S   POOL  MEMORY  RESIDENT\n"
            "  0  ready    0/4       0   10.0  0/0 B   0/0 B         0\n"
            "\n"
            "TENANT  WEIGHT  PENDING  QUEUED  REQ/S  FAIL/S  SHARE  MEMORY  LAG\n"
            "batch        1        0       0    5.0     0.0  50.0%     0 B  0ms\n"
            "online       1        0       0    5.0     0.0  50.0%     0 B  0ms\n");
  const auto json = nlohmann::json::parse(RunAdmin("status --format=json").out);
  EXPECT_EQ(json["tenants"][0]["requests"], 510);
}

TEST_F(AdminCommandTest, RefusalsAreReported) {
  EXPECT_THAT(RunAdmin("reload").err, HasSubstr("FAILED_PRECONDITION: listen needs a restart"));
  EXPECT_THAT(RunAdmin("log-level loud").err, HasSubstr("unknown log level loud"));

  const Output unknown = RunAdmin("trim 7");
  EXPECT_EQ(unknown.exit_code, ExitCode::kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("NOT_FOUND: no device 7"));

  const Output draining = RunAdmin("drain 1 --timeout=20s");
  EXPECT_EQ(draining.exit_code, ExitCode::kFailed);
  EXPECT_THAT(draining.err,
              AllOf(HasSubstr("still draining"), HasSubstr("hint: --timeout was 20s")));
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
