// Clients that keep their windows closed: what their unread results may take from others.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/bytes.h"
#include "tests/integration/broadcast_request.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/raw_http2.h"
#include "tests/integration/requests.h"
#include "tests/integration/two_tenants.h"

namespace opserve::server {
namespace {

constexpr int64_t kResultElements = kMiB / sizeof(float);  // a result of 1 MiB
constexpr uint64_t kPinnedBytes = 32 * kMiB;

// On a Unix socket and, since only TCP tells one connection from another, on a port.
Config OnTcp() {
  Config config = InProcessDaemon::DefaultConfig();
  config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
  config.pinned_pool_bytes = kPinnedBytes;
  return config;
}

std::string TcpTarget(const InProcessDaemon& daemon) { return daemon.daemon().addresses()[1]; }

uint16_t TcpPort(const InProcessDaemon& daemon) {
  const std::vector<std::string> parts = absl::StrSplit(TcpTarget(daemon), ':');
  uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(parts.back(), &port)) << TcpTarget(daemon);
  return static_cast<uint16_t>(port);
}

uint64_t Completed(const InProcessDaemon& daemon) {
  uint64_t completed = 0;
  for (const auto& service : daemon.daemon().scheduler().devices()) {
    completed += service->completed();
  }
  return completed;
}

double AreReadersWaitedFor(const InProcessDaemon& daemon) {
  return MetricValue(daemon.daemon(), "opserve_overload_action_active",
                     {{"action", "wait_for_readers"}});
}

// Asks for more 1 MiB results than all page-locked memory holds, in a few kilobytes.
void AskAndNotRead(RawHttp2* peer, const std::string& token) {
  for (uint64_t i = 0; i < 2 * kPinnedBytes / kMiB; ++i) {
    peer->SendOnlyMessage(peer->Open("/opserve.v1.OperatorService/Execute", token),
                          BroadcastRequest(1, kResultElements).SerializeAsString());
  }
  ASSERT_TRUE(peer->Flush());
}

// All that can run for the readers has run: their memory does not grow any more.
bool IsFull(const InProcessDaemon& daemon, const std::string& tenant, uint64_t least) {
  return Await([&] {
    if (PinnedBytes(daemon.daemon(), tenant) < static_cast<double>(least)) return false;
    uint32_t executing = 0;
    for (const auto& service : daemon.daemon().scheduler().devices()) {
      executing += service->executing();
    }
    return executing == 0;
  });
}

absl::StatusOr<Response> Ask(const std::string& target, const std::string& token, int64_t count) {
  const auto client = *Client::Connect(target, {.token = token, .retry = {.max_attempts = 1}});
  Request request = OnesRequest(count);
  request.timeout = absl::Seconds(20);
  return client->Execute(std::move(request));
}

TEST(UnreadResultsTest, ATenantsReadersStopNoOtherTenant) {
  Config config = OnTcp();
  AddTwoTenants(&config);
  InProcessDaemon daemon(config);
  std::vector<std::unique_ptr<RawHttp2>> readers;
  for (int i = 0; i < 8; ++i) {
    readers.push_back(std::make_unique<RawHttp2>(WireTarget{.port = TcpPort(daemon)},
                                                 RawHttp2::Reading::kZeroWindow));
    AskAndNotRead(readers.back().get(), "a");
  }
  ASSERT_TRUE(IsFull(daemon, "a", 8 * kMiB));

  // Results as large as the part of the memory that is always the other tenant's.
  for (int i = 0; i < 8; ++i) {
    const auto response = Ask(TcpTarget(daemon), "b", kResultElements * 4);
    ASSERT_TRUE(IsAllOnes(response, kResultElements * 4)) << response.status();
  }
  EXPECT_LE(PinnedBytes(daemon.daemon(), "a"), 0.75 * kPinnedBytes);
}

TEST(UnreadResultsTest, AConnectionThatDoesNotReadStopsNoOtherConnection) {
  InProcessDaemon daemon(OnTcp());
  RawHttp2 reader(WireTarget{.port = TcpPort(daemon)}, RawHttp2::Reading::kZeroWindow);
  AskAndNotRead(&reader, "");
  ASSERT_TRUE(IsFull(daemon, "default", kPinnedBytes / 4));

  for (int i = 0; i < 8; ++i) {
    const auto response = Ask(TcpTarget(daemon), "", kResultElements * 4);
    ASSERT_TRUE(IsAllOnes(response, kResultElements * 4)) << response.status();
  }
  // The last answer's memory comes back a moment after its client has it.
  EXPECT_TRUE(Await([&] { return PinnedBytes(daemon.daemon(), "default") <= kPinnedBytes / 4; }));
  EXPECT_EQ(AreReadersWaitedFor(daemon), 1);
}

// What was set aside goes on where it stood when the reader reads again.
TEST(UnreadResultsTest, AReaderThatReadsAgainGetsEverything) {
  InProcessDaemon daemon(OnTcp());
  const auto stub = NewStub(TcpTarget(daemon));
  TestStream stream(*stub);
  std::thread sender([&stream] {
    for (uint64_t id = 1; id <= 48; ++id) {
      EXPECT_TRUE(stream.Send(OnesStreamRequest(id, kResultElements)));
    }
  });
  for (int i = 0; i < 48; ++i) EXPECT_TRUE(IsAllOnes(stream.Receive(), kResultElements));
  sender.join();
  EXPECT_TRUE(Await([&] { return PinnedBytes(daemon.daemon(), "default") == 0; }));
  EXPECT_EQ(AreReadersWaitedFor(daemon), 0);
}

TEST(UnreadResultsTest, RequestsOfAReaderThatIsGoneEnd) {
  InProcessDaemon daemon(OnTcp());
  {
    RawHttp2 reader(WireTarget{.port = TcpPort(daemon)}, RawHttp2::Reading::kZeroWindow);
    AskAndNotRead(&reader, "");
    ASSERT_TRUE(IsFull(daemon, "default", kPinnedBytes / 4));
  }
  EXPECT_TRUE(Await([&] {
    return PinnedBytes(daemon.daemon(), "default") == 0 && AreReadersWaitedFor(daemon) == 0 &&
           daemon.HeldByRequests() == 0;
  }));
  const uint64_t completed = Completed(daemon);
  EXPECT_TRUE(IsAllOnes(Ask(TcpTarget(daemon), "", 16), 16));
  EXPECT_EQ(Completed(daemon), completed + 1) << "nothing of the reader's was left";
}

}  // namespace
}  // namespace opserve::server
