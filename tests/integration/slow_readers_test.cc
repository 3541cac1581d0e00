// Clients that ask and do not take the answers: what they hold, and for how long.

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/bytes.h"
#include "tests/integration/broadcast_request.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/raw_http2.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

constexpr int64_t kElements = kMiB / sizeof(float);  // a result of 1 MiB

double Stalls(const InProcessDaemon& daemon, const std::string& kind) {
  return MetricValue(daemon.daemon(), "opserve_write_stalls_total", {{"kind", kind}});
}

// Until the stream ends, if it does.
void SendRequests(TestStream* stream, uint64_t count) {
  for (uint64_t id = 1; id <= count; ++id) {
    if (!stream->Send(OnesStreamRequest(id, kElements))) return;
  }
}

testing::AssertionResult AwaitNothingHeld(InProcessDaemon& daemon) {
  return Await(
      [&] { return PinnedBytes(daemon.daemon(), "default") == 0 && daemon.HeldByRequests() == 0; });
}

// Longer than a healthy client could need for a message, however busy the machine.
Config WithShortPatience() {
  Config config = InProcessDaemon::DefaultConfig();
  config.write_stall_timeout = absl::Seconds(1);
  return config;
}

TEST(SlowReadersTest, AStreamThatIsNotReadIsEnded) {
  InProcessDaemon daemon(WithShortPatience());
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  SendRequests(&stream, 32);

  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10)) << "others are served";
    return Stalls(daemon, "call") > 0;
  }));
  EXPECT_TRUE(AwaitNothingHeld(daemon));
  while (stream.Receive().outcome_case() != v1::ExecuteStreamResponse::OUTCOME_NOT_SET) {
  }
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Stalls(daemon, "connection"), 0) << "the connection itself was read";
}

TEST(SlowReadersTest, AConnectionThatIsNotReadIsEnded) {
  const Config config = WithShortPatience();
  InProcessDaemon daemon(config);
  RawHttp2 peer(config.listen[0].path, RawHttp2::Reading::kNothing);
  for (int i = 0; i < 24; ++i) {
    peer.SendOnlyMessage(peer.Open("/opserve.v1.OperatorService/Execute"),
                         BroadcastRequest(1, kElements).SerializeAsString());
  }
  ASSERT_TRUE(peer.Flush());

  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10)) << "others are served";
    return Stalls(daemon, "connection") > 0;
  }));
  EXPECT_TRUE(AwaitNothingHeld(daemon));
  EXPECT_EQ(Stalls(daemon, "connection"), 1);
}

TEST(SlowReadersTest, AReaderThatOnlyPausesLosesNothing) {
  InProcessDaemon daemon;  // with more patience than the pause takes
  const auto stub = NewStub(daemon.target());
  TestStream stream(*stub);
  SendRequests(&stream, 32);
  stream.SendNoMore();

  for (int i = 0; i < 32; ++i) EXPECT_TRUE(IsAllOnes(stream.Receive(), kElements));
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Stalls(daemon, "call"), 0);
}

class PinnedZoneTest : public ::testing::Test {
 protected:
  // Callers without a token are "slow"; printf %s b | sha256sum
  static Config TwoTenants() {
    Config config = InProcessDaemon::DefaultConfig();
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      tenant { name: "slow" pinned_memory { hard_bytes: 4194304 } }
      tenant { name: "b"
               token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" }
      anonymous_tenant: "slow")",
                                                              &config.values));
    config.tenants = *TenantsFrom(config.values);
    config.pinned_pool_bytes = 8 * kMiB;
    return config;
  }
};

TEST_F(PinnedZoneTest, ResultsThatAreNotReadDoNotStarveOthers) {
  InProcessDaemon daemon(TwoTenants());
  const auto stub = NewStub(daemon.target());
  TestStream slow(*stub);
  constexpr uint64_t kRequests = 48;
  std::thread sender([&] {
    SendRequests(&slow, kRequests);
    slow.SendNoMore();
  });
  // One connection has a quarter of its tenant's.
  EXPECT_TRUE(Await([&] { return PinnedBytes(daemon.daemon(), "slow") >= kMiB; }));

  const auto other =
      *Client::Connect(daemon.target(), {.token = "b", .retry = {.max_attempts = 1}});
  for (int i = 0; i < 20; ++i) {
    const auto response = other->Execute(OnesRequest(kElements));
    EXPECT_TRUE(IsAllOnes(response, kElements)) << response.status();
  }
  EXPECT_LE(PinnedBytes(daemon.daemon(), "slow"), kMiB);

  // What had no room has waited, and nothing is lost.
  for (uint64_t i = 0; i < kRequests; ++i) EXPECT_TRUE(IsAllOnes(slow.Receive(), kElements)) << i;
  EXPECT_TRUE(slow.Finish().ok());
  sender.join();
  EXPECT_TRUE(Await([&] {
    return PinnedBytes(daemon.daemon(), "slow") == 0 && PinnedBytes(daemon.daemon(), "b") == 0;
  }));
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_tenant_memory_bytes",
                        {{"tenant", "slow"}, {"kind", "hbm"}}),
            0);
}

TEST_F(PinnedZoneTest, ResultsThatCanNeverFitAreRefusedForGood) {
  InProcessDaemon daemon(TwoTenants());
  const auto stub = NewStub(daemon.target());
  const auto execute = [&](int64_t count, v1::ExecuteResponse* response) {
    grpc::ClientContext context;
    return stub->Execute(&context, OnesRequest(count, ""), response);
  };
  v1::ExecuteResponse response;
  const grpc::Status refused = execute(kElements * 4 + 1, &response);
  EXPECT_EQ(refused.error_code(), grpc::FAILED_PRECONDITION) << refused.error_message();
  EXPECT_EQ(DetailOf(refused).reason(), "tenant_memory");
  EXPECT_EQ(DetailOf(refused).retry_pushback_ms(), -1);
  EXPECT_TRUE(execute(kElements * 4, &response).ok());
  EXPECT_TRUE(IsAllOnes(response, kElements * 4));
}

TEST_F(PinnedZoneTest, ResultsThatCanNeverFitLeaveFromTheDeviceInASession) {
  InProcessDaemon daemon(TwoTenants());
  EXPECT_TRUE(
      IsAllOnes(daemon.client().Execute(OnesRequest(kElements * 4 + 1)), kElements * 4 + 1));
}

TEST_F(PinnedZoneTest, ResidentTensorsCountAsDeviceMemory) {
  InProcessDaemon daemon(TwoTenants());
  const auto tensor =
      daemon.client().Upload(Tensor::Owning<float>({kElements}, std::vector<float>(kElements)));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_tenant_memory_bytes",
                        {{"tenant", "slow"}, {"kind", "hbm"}}),
            kMiB);
  EXPECT_TRUE(daemon.client().Download(tensor->handle).ok());
}

}  // namespace
}  // namespace opserve::server
