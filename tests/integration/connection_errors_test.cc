// Errors of `opserve` that cannot connect say the likely cause.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/certificates.h"
#include "tests/integration/scripted_server.h"
#include "tests/unit/client/command_line_fixture.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Its connections are made by the system, and it says nothing on them.
class SilentListener {
 public:
  SilentListener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const bool listens = bind(socket_, any, size) == 0 && listen(socket_, 8) == 0 &&
                         getsockname(socket_, any, &size) == 0;
    EXPECT_TRUE(listens);
    target_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentListener() { close(socket_); }
  SilentListener(const SilentListener&) = delete;
  SilentListener& operator=(const SilentListener&) = delete;

  const std::string& target() const { return target_; }

 private:
  const int socket_;
  std::string target_;
};

class ConnectionErrorsTest : public testing::Test {
 protected:
  static Output Status(const std::string& target, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"status", "--target=" + target});
    return RunProgram(flags);
  }

  Certificates certificates_;
};

TEST_F(ConnectionErrorsTest, TlsOnOneSideAloneIsNamed) {
  ScriptedServer encrypted("127.0.0.1:0", certificates_.ServerCredentials("server"));
  ScriptedServer plain;

  const Output without = Status(encrypted.target());
  EXPECT_EQ(without.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(without.err, HasSubstr("if the daemon expects TLS, say --tls or --tls-ca"));

  const Output with = Status(plain.target(), {"--tls-ca=" + certificates_.File("ca")});
  EXPECT_EQ(with.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(with.err, HasSubstr("answers without TLS; leave --tls and --tls-... out"));
}

TEST_F(ConnectionErrorsTest, CertificatesThatDoNotFitAreNamed) {
  ScriptedServer foreign("127.0.0.1:0", certificates_.ServerCredentials("foreign"));
  ScriptedServer elsewhere("127.0.0.1:0", certificates_.ServerCredentials("elsewhere"));

  for (const ScriptedServer* server : {&foreign, &elsewhere}) {
    const Output output = Status(server->target(), {"--tls-ca=" + certificates_.File("ca")});
    EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
    EXPECT_THAT(output.err, HasSubstr("see which authorities --tls-ca trusts"));
  }
}

TEST_F(ConnectionErrorsTest, ABrokenFileIsAMistakeOfTheCommandLine) {
  const std::string file = certificates_.File("none");
  std::ofstream(file) << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

  const Output output = Status("127.0.0.1:1", {"--tls-ca=" + file});

  EXPECT_EQ(output.exit_code, ExitCode::kUsage);
  EXPECT_THAT(output.err, HasSubstr(file + "\" has a broken certificate, number 1"));
}

TEST_F(ConnectionErrorsTest, AShortTimeoutDoesNotMeanThatThereIsNoDaemon) {
  const SilentListener listener;

  const Output output = Status(listener.target(), {"--timeout=100ms"});

  EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("cannot reach the daemon"), HasSubstr("no connection was made"),
                    HasSubstr("nothing answered within --timeout=100ms"),
                    Not(HasSubstr("start the daemon"))));
}

TEST_F(ConnectionErrorsTest, WhereNobodyListensTheDaemonIsToBeStarted) {
  std::string target;
  { target = ScriptedServer().target(); }

  const Output output = Status(target);

  EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(output.err, HasSubstr("start the daemon with \"opserved\""));
}

}  // namespace
}  // namespace opserve::cli
