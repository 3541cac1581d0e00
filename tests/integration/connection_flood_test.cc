// Strangers flood the daemon over many connections at once: its memory stays where it was, its
// tenants' calls are answered, and the strangers' connections end.

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/certificates.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/floods.h"
#include "tests/integration/requests.h"
#include "tests/process_memory.h"
#include "tests/unit/client/test_server.h"

namespace opserve::server {
namespace {

constexpr int kConnections = 16;
constexpr int kPieces = 2000;  // of each connection, unless it is ended before
constexpr int64_t kMostBytes = 128 << 20;
constexpr int64_t kMostBytesKept = 32 << 20;

// printf %s alice-token | sha256sum
constexpr char kTenants[] = R"(
tenant { name: "alice"
         token_sha256: "9c220f200955d76c0a38d308225e0ef10c5f971acaf2f8d1d8f732affa5bd1dc" }
)";

enum class Transport { kUnix, kTcp, kTls };
constexpr const char* kTransportNames[] = {"Unix", "Tcp", "Tls"};

class ConnectionFloodTest : public testing::TestWithParam<std::tuple<Transport, FloodKind>> {
 protected:
  std::vector<std::string> Arguments(const WireTarget& target) const {
    std::ofstream(directory_.File("config")) << kTenants;
    std::vector<std::string> arguments = {
        "--config=" + directory_.File("config"), "--listen=unix:" + directory_.File("socket"),
        "--admin_listen=none", "--metrics_listen=none", "--log_level=off"};
    if (target.port != 0) {
      arguments.push_back(absl::StrCat("--listen=127.0.0.1:", target.port));
    }
    if (target.has_tls) {
      arguments.push_back("--tls_cert=" + certificates_.File("server"));
      arguments.push_back("--tls_key=" + certificates_.Key("server"));
    }
    return arguments;
  }

  WireTarget Target() const {
    const Transport transport = std::get<0>(GetParam());
    if (transport == Transport::kUnix) return {.unix_path = directory_.File("socket")};
    return {.unix_path = "", .port = UnusedPort(), .has_tls = transport == Transport::kTls};
  }

  TemporaryDirectory directory_;
  const Certificates certificates_;
};

INSTANTIATE_TEST_SUITE_P(
    All, ConnectionFloodTest,
    testing::Combine(testing::Values(Transport::kUnix, Transport::kTcp, Transport::kTls),
                     testing::ValuesIn(FloodKinds())),
    [](const auto& info) {
      return std::string(kTransportNames[static_cast<int>(std::get<0>(info.param))]) +
             std::get<1>(info.param).name;
    });

TEST_P(ConnectionFloodTest, LeavesMemoryAndTenantsAlone) {
  const WireTarget target = Target();
  const FloodKind& kind = std::get<1>(GetParam());
  const DaemonProcess daemon(Arguments(target));
  const auto alice = *Client::Connect(
      "unix:" + directory_.File("socket"),
      {.wait_for_ready = absl::Seconds(60), .token = "alice-token", .retry = {.max_attempts = 1}});
  const auto serves = [&] { return IsAllOnes(alice->Execute(OnesRequest(100)), 100); };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(serves());
  const int64_t before = ResidentBytesOf(daemon.pid());

  std::atomic<int> flooding = kConnections;
  std::atomic<int> ended = 0;
  std::vector<std::thread> strangers;
  for (int i = 0; i < kConnections; ++i) {
    strangers.emplace_back([&] {
      RawHttp2 peer(target);
      kind.begin(peer);
      bool is_open = peer.Flush();
      for (int piece = 0; piece < kPieces && is_open; ++piece) {
        kind.send(peer);
        is_open = peer.Flush();
      }
      // All of it may fit into the sockets' buffers before the daemon reads it.
      if (!is_open || Await([&] {
            peer.Ping();
            return !peer.Flush();
          })) {
        ++ended;
      }
      --flooding;
    });
  }
  int64_t peak = before;
  do {
    EXPECT_TRUE(serves());
    peak = std::max(peak, ResidentBytesOf(daemon.pid()));
  } while (flooding > 0);
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_EQ(ended, kConnections) << "connections that flood are ended";
  EXPECT_TRUE(serves());
  if (!kMemoryTells) return;
  EXPECT_LT(peak - before, kMostBytes);
  EXPECT_TRUE(Await([&] { return ResidentBytesOf(daemon.pid()) - before < kMostBytesKept; }));
}

}  // namespace
}  // namespace opserve::server
