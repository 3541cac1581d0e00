// Peers that send what costs them little: streams without requests, bodies that never come whole,
// resets, pings. The daemon's memory stays within its quota and others are served meanwhile.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/admin_client.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/raw_http2.h"
#include "tests/integration/requests.h"
#include "tests/process_memory.h"
#include "tests/unit/client/test_server.h"

namespace opserve::server {
namespace {

constexpr int kPeers = 10;
constexpr int kStreams = 1000;  // of each connection
constexpr int64_t kQuota = 256 << 20;

struct FloodCase {
  const char* name;
  // What one connection sends; `i`-th of kStreams times.
  std::function<void(RawHttp2& peer, int i)> send;
  // Whether the daemon ends such a connection.
  bool is_ended = false;
};

constexpr char kExecute[] = "/opserve.v1.OperatorService/Execute";
constexpr char kExecuteStream[] = "/opserve.v1.OperatorService/ExecuteStream";
constexpr char kUpload[] = "/opserve.v1.TensorService/Upload";

const FloodCase kCases[] = {
    {"StreamsWithoutRequests", [](RawHttp2& peer, int) { peer.Open(kExecuteStream); }},
    // The first bytes of a message that announces 32 MiB.
    {"BodiesThatStop",
     [](RawHttp2& peer, int) {
       peer.SendData(peer.Open(kExecute), std::string("\0\2\0\0\0", 5) + std::string(20, 'x'));
     }},
    {"UploadsThatStop",
     [](RawHttp2& peer, int) {
       peer.SendData(peer.Open(kUpload), std::string("\0\0\1\0\0", 5) + std::string(20, 'x'));
     }},
    // More than a connection without an identified call may send at once.
    {"Resets", [](RawHttp2& peer, int) { peer.Reset(peer.Open(kExecute)); }, /*is_ended=*/true},
    {"Pings",
     [](RawHttp2& peer, int) {
       for (int i = 0; i < 200; ++i) peer.Ping();
     },
     /*is_ended=*/true},
};

class FloodTest : public testing::TestWithParam<FloodCase> {
 protected:
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(All, FloodTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(FloodTest, LeavesMemoryInBoundsAndOthersServed) {
  const std::string path = directory_.File("socket");
  const std::string admin_target = "unix:" + directory_.File("admin");
  const DaemonProcess daemon({"--listen=unix:" + path, "--admin_listen=" + admin_target,
                              "--metrics_listen=none", "--log_level=off",
                              // The peers are to flood for as long as the test takes.
                              "--first_call_timeout=1h",
                              absl::StrCat("--max_streams_per_connection=", kStreams),
                              absl::StrCat("--grpc_memory_quota_bytes=", kQuota)});
  const auto healthy = *Client::Connect(
      "unix:" + path, {.wait_for_ready = absl::Seconds(60), .retry = {.max_attempts = 1}});
  const auto serves = [&] { return IsAllOnes(healthy->Execute(OnesRequest(100)), 100); };
  ASSERT_TRUE(serves());
  const int64_t resident_bytes = ResidentBytesOf(daemon.pid());

  std::vector<std::unique_ptr<RawHttp2>> peers;
  for (int i = 0; i < kPeers; ++i) peers.push_back(std::make_unique<RawHttp2>(path));
  for (int i = 0; i < kStreams; ++i) {
    for (const auto& peer : peers) GetParam().send(*peer, i);
    if (i % 50 != 0) continue;
    for (const auto& peer : peers) peer->Flush();
    EXPECT_TRUE(serves());
    if (kMemoryTells) {
      EXPECT_LT(ResidentBytesOf(daemon.pid()) - resident_bytes, kQuota);
    }
  }
  for (const auto& peer : peers) {
    // Each frame more shows whether the connection is still there.
    const auto is_open = [&] {
      peer->Ping();
      return peer->Flush();
    };
    if (GetParam().is_ended) {
      EXPECT_TRUE(Await([&] { return !is_open(); }));
    } else {
      EXPECT_TRUE(is_open()) << "the flood did not reach the daemon";
    }
  }
  EXPECT_TRUE(serves());
  peers.clear();

  const auto admin = *AdminClient::Connect(admin_target);
  const auto connections = [&] { return admin->GetStatus()->connections(); };
  EXPECT_TRUE(Await([&] { return connections() <= 1; }));
  EXPECT_TRUE(serves());
  if (kMemoryTells) {
    EXPECT_LT(ResidentBytesOf(daemon.pid()) - resident_bytes, kQuota);
  }
}

}  // namespace
}  // namespace opserve::server
