// One client and several daemons.

#include <sys/wait.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/requests.h"
#include "tests/integration/scripted_server.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::HasSubstr;

// Calls until each of `servers` has had `calls` more; false: a call failed, or some had none for
// too long.
bool CallUntilEachHad(Client& client, const std::vector<ScriptedServer*>& servers, int calls) {
  std::vector<int> wanted;
  for (ScriptedServer* server : servers) wanted.push_back(server->num_calls() + calls);
  const auto is_done = [&] {
    for (size_t i = 0; i < servers.size(); ++i) {
      if (servers[i]->num_calls() < wanted[i]) return false;
    }
    return true;
  };
  bool is_right = true;
  return Await([&] {
           is_right = client.Execute(SmallRequest()).ok();
           return !is_right || is_done();
         }) &&
         is_right;
}

TEST(BalancingTest, CallsGoToAllAddressesOfAList) {
  const TemporaryDirectory directory;
  ScriptedServer tcp_a;
  ScriptedServer tcp_b;
  ScriptedServer unix_a("unix:" + directory.File("a"));
  ScriptedServer unix_b("unix:" + directory.File("b"));

  const auto tcp = *Client::Connect(absl::StrCat(tcp_a.target(), ",", tcp_b.target()));
  EXPECT_TRUE(CallUntilEachHad(*tcp, {&tcp_a, &tcp_b}, 5));
  const auto unix = *Client::Connect(absl::StrCat(unix_a.target(), ",", unix_b.target()));
  EXPECT_TRUE(CallUntilEachHad(*unix, {&unix_a, &unix_b}, 5));
}

TEST(BalancingTest, ANameIsResolved) {
  ScriptedServer server;
  const std::string port = server.target().substr(server.target().rfind(':') + 1);

  const auto client = *Client::Connect(absl::StrCat("dns:///localhost:", port));

  EXPECT_TRUE(client->Execute(SmallRequest()).ok());
  EXPECT_TRUE(client->IsConnected());
}

TEST(BalancingTest, WhoDoesNotServeGetsNoRequests) {
  ScriptedServer a;
  ScriptedServer b;
  const auto client = *Client::Connect(absl::StrCat(a.target(), ",", b.target()));
  ASSERT_TRUE(CallUntilEachHad(*client, {&a, &b}, 5));

  a.SetServing(false);
  // What health says comes on its own connection's time; from then on b has all.
  int in_a_row = 0;
  EXPECT_TRUE(Await([&] {
    const int before = a.num_calls();
    EXPECT_TRUE(client->Execute(SmallRequest()).ok());
    in_a_row = a.num_calls() == before ? in_a_row + 1 : 0;
    return in_a_row == 20;
  }));

  a.SetServing(true);
  EXPECT_TRUE(CallUntilEachHad(*client, {&a, &b}, 5));
}

TEST(BalancingTest, NobodyThatServesIsUnavailable) {
  ScriptedServer a;
  ScriptedServer b;
  a.SetServing(false);
  b.SetServing(false);
  const auto client = *Client::Connect(absl::StrCat(a.target(), ",", b.target()),
                                       {.retry = {.waits_for_daemon = false}});

  const absl::Status status = client->Execute(SmallRequest()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("unhealthy (after 5 attempts)"));
  EXPECT_EQ(a.num_calls() + b.num_calls(), 0);
}

// Its machine's kernel still takes what is sent; only the daemon itself can answer.
TEST(KeepaliveTest, ADaemonThatFallsSilentIsGivenUp) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("socket");
  const DaemonProcess daemon({"--listen=" + target, "--metrics_listen=none"});
  ASSERT_TRUE(Client::Connect(target, {.wait_for_ready = absl::Seconds(30)}).ok());
  const auto client = *Client::Connect(
      target, {.retry = {.max_attempts = 1},
               .keepalive = {.time = absl::Milliseconds(500), .timeout = absl::Milliseconds(500)}});
  ASSERT_TRUE(client->GetServerStatus().ok());

  kill(daemon.pid(), SIGSTOP);
  ASSERT_EQ(waitpid(daemon.pid(), nullptr, WUNTRACED),
            daemon.pid());  // all its threads have stopped

  // Not kDeadlineExceeded, which its timeout of 30 s would give it.
  EXPECT_EQ(client->GetServerStatus().status().code(), absl::StatusCode::kUnavailable);
  kill(daemon.pid(), SIGCONT);
}

TEST(KeepaliveTest, TimesArePositive) {
  for (const KeepaliveOptions& options : {KeepaliveOptions{.time = absl::ZeroDuration()},
                                          KeepaliveOptions{.timeout = absl::Milliseconds(-1)}}) {
    const absl::Status status = Client::Connect("unix:/a", {.keepalive = options}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected at least 1ms"));
  }
  EXPECT_TRUE(Client::Connect("unix:/a", {.keepalive = {.time = absl::InfiniteDuration()}}).ok());
}

TEST(BalancingTest, ListsThatCannotBeAreRefused) {
  for (const char* target : {"a.example:80,b.example:80", "unix:/a,127.0.0.1:80"}) {
    EXPECT_EQ(Client::Connect(target).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

struct Loss {
  const char* name;
  int daemons;
  int signal;
};

class DaemonsTest : public testing::TestWithParam<Loss> {
 protected:
  DaemonsTest() {
    std::vector<std::string> targets;
    for (int i = 0; i < GetParam().daemons; ++i) {
      targets.push_back("unix:" + directory_.File(absl::StrCat(i, ".sock")));
      // It says that it drains, and takes what comes until its clients have heard.
      daemons_.push_back(std::make_unique<DaemonProcess>(std::vector<std::string>{
          "--listen=" + targets.back(), "--metrics_listen=127.0.0.1:0", "--drain_delay=500ms"}));
    }
    for (const std::string& target : targets) {
      is_ready_ = is_ready_ && Client::Connect(target, {.wait_for_ready = absl::Seconds(30)}).ok();
    }
    client_ = *Client::Connect(absl::StrJoin(targets, ","), {.retry = {.budget = 1000}});
  }

  TemporaryDirectory directory_;
  std::vector<std::unique_ptr<DaemonProcess>> daemons_;
  std::unique_ptr<Client> client_;
  bool is_ready_ = true;
};

INSTANTIATE_TEST_SUITE_P(Loss, DaemonsTest,
                         testing::Values(Loss{"OneOfTwoDrains", 2, SIGTERM},
                                         Loss{"OneOfThreeDrains", 3, SIGTERM},
                                         Loss{"OneOfThreeDies", 3, SIGKILL}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(DaemonsTest, TakesNoRequestWithIt) {
  ASSERT_TRUE(is_ready_);
  std::atomic<bool> is_over = false;
  std::atomic<int> answers = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; !is_over; ++i) {
        const int64_t count = 1 + (t * 7919 + i * 104729) % 20000;
        const Request request = server::OnesRequest(count);
        const auto response =
            i % 2 == 0 ? client_->Execute(request) : client_->ExecuteAsync(request).get();
        EXPECT_TRUE(server::IsAllOnes(response, count)) << response.status();
        ++answers;
      }
    });
  }
  const auto await_more = [&answers] {
    const int wanted = answers + 100;
    EXPECT_TRUE(Await([&] { return answers >= wanted; }));
  };

  await_more();
  daemons_.front()->End(GetParam().signal);
  await_more();
  is_over = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace opserve
