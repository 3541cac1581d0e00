// The flags of `opserve` that say how the daemon is trusted and who asks.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/command_line_fixture.h"
#include "tests/unit/client/test_server.h"

namespace opserve::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ConnectionFlagsTest : public CommandLineTest {
 protected:
  ConnectionFlagsTest() {
    server_.set_execute([this](grpc::ServerContext* context, const auto& request, auto* response) {
      const auto found = context->client_metadata().find("authorization");
      if (found != context->client_metadata().end()) {
        authorization_.assign(found->second.data(), found->second.size());
      }
      return TestServer::Echo(context, request, response);
    });
  }
  ~ConnectionFlagsTest() override { unsetenv("OPSERVE_TOKEN"); }

  // A call with these flags; its authorization is in authorization_.
  Output RunScale(const std::string& flags) {
    authorization_ = "";
    return RunHere(absl::StrCat("run Scale --input x=", Fixture("f4_vector"),
                                " --input y=", Fixture("f8_scalar"), " ", flags));
  }

  std::string TokenFile(const std::string& content, std::filesystem::perms permissions) {
    const std::string path = directory_.File("token");
    std::ofstream(path) << content;
    std::filesystem::permissions(path, permissions);
    return path;
  }

  TemporaryDirectory directory_;
  std::string authorization_;
};

constexpr auto kMine = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;

TEST_F(ConnectionFlagsTest, ATokenIsSent) {
  const std::string path = TokenFile("  from-file\n", kMine);
  EXPECT_EQ(RunScale("").exit_code, ExitCode::kOk);
  EXPECT_EQ(authorization_, "");

  setenv("OPSERVE_TOKEN", "from-environment", 1);
  EXPECT_EQ(RunScale("").exit_code, ExitCode::kOk);
  EXPECT_EQ(authorization_, "Bearer from-environment");

  for (const char* flag : {"--token-file=", "--token_file=", "--token-file ", "--token_file "}) {
    const Output output = RunScale(flag + path);
    EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
    EXPECT_THAT(output.err, IsEmpty());
    EXPECT_EQ(authorization_, "Bearer from-file");
  }
}

TEST_F(ConnectionFlagsTest, ATokenThatEveryoneCanReadIsWarnedOf) {
  const std::string path = TokenFile("s3cret", kMine | std::filesystem::perms::others_read);

  const Output output = RunScale("--token-file " + path);

  EXPECT_EQ(output.exit_code, ExitCode::kOk);
  EXPECT_EQ(output.err, absl::StrCat("opserve: warning: every user of this machine can read the "
                                     "token in \"",
                                     path, "\"; see \"chmod 600\"\n"));
}

TEST_F(ConnectionFlagsTest, WhatCannotBeIsExplained) {
  struct Case {
    std::string flags;
    const char* why;
  };
  const std::string empty = TokenFile(" \n", kMine);
  const std::string missing = directory_.File("missing");
  const Case kCases[] = {
      {"--token-file " + empty, "has no token"},
      {"--token-file " + missing, "missing\" cannot be read"},
      {"--tls-ca " + missing, "missing\" cannot be read"},
      {"--tls_ca=" + missing, "missing\" cannot be read"},
      {"--tls-cert " + empty, "without a key file"},
      {"--tls-key " + empty, "without a certificate file"},
  };
  for (const Case& c : kCases) {
    const Output output = RunScale(c.flags);
    EXPECT_EQ(output.exit_code, ExitCode::kUsage) << c.flags;
    EXPECT_THAT(output.err, HasSubstr(c.why));
  }
  setenv("OPSERVE_TOKEN", "s3cret", 1);
  for (const char* command :
       {"status --target=npu.example:1", "admin drain 0 --admin-target=npu.example:1"}) {
    const Output output = RunProgram(absl::StrSplit(command, ' '));
    EXPECT_EQ(output.exit_code, ExitCode::kUsage) << output.err;
    EXPECT_THAT(output.err, HasSubstr("without TLS, a token is sent to Unix sockets"));
    EXPECT_THAT(output.err, Not(HasSubstr("s3cret")));
  }
}

TEST_F(ConnectionFlagsTest, EveryFlagOfTlsEncrypts) {
  for (const char* flags : {"--tls", "--tls-server-name=daemon.test"}) {
    const Output output = RunHere(absl::StrCat("status ", flags));
    EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
    EXPECT_THAT(output.err, HasSubstr("hint: the daemon answers without TLS"));
  }
}

TEST_F(ConnectionFlagsTest, HelpTells) {
  const std::string help = RunProgram({"--help"}).out;
  for (const char* text : {"--tls ", "--tls-ca FILE", "--tls-cert FILE", "--tls-key FILE",
                           "--tls-server-name NAME", "--token-file FILE", "OPSERVE_TOKEN"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
}

}  // namespace
}  // namespace opserve::cli
