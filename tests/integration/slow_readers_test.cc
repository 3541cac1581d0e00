// Clients that ask and do not take the answers: what they hold, and for how long.

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/access/file_descriptor.h"
#include "tests/bytes.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/unix_connection.h"

namespace opserve::server {
namespace {

constexpr int64_t kElements = kMiB / sizeof(float);  // a result of 1 MiB

// Between one connection of a client and the daemon; passes on all that the client sends, and what
// the daemon sends until it is told to stop.
class StoppingProxy {
 public:
  explicit StoppingProxy(const ListenAddress& daemon)
      : path_(absl::StrCat(testing::TempDir(), "/proxy-", getpid(), ".sock")),
        listener_(socket(AF_UNIX, SOCK_STREAM, 0)),
        server_(ConnectToUnixSocket(daemon.path)) {
    unlink(path_.c_str());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~StoppingProxy() {
    thread_.join();
    unlink(path_.c_str());
  }

  std::string target() const { return absl::StrCat("unix:", path_); }
  void Stop() { is_stopped_ = true; }

 private:
  // Ends when one side has closed.
  void Run() {
    client_ = FileDescriptor(accept(listener_.get(), nullptr, nullptr));
    listener_ = FileDescriptor();
    bool is_open = true;
    while (is_open) {
      const bool is_stopped = is_stopped_;
      const auto from_server = static_cast<short>(is_stopped ? POLLRDHUP : POLLIN);
      std::array<pollfd, 2> sides = {{{client_.get(), POLLIN, 0}, {server_.get(), from_server, 0}}};
      if (poll(sides.data(), sides.size(), /*timeout=*/10) <= 0) continue;
      if (sides[0].revents != 0) is_open = Pass(client_, server_);
      if (is_open && sides[1].revents != 0) is_open = !is_stopped && Pass(server_, client_);
    }
    client_ = FileDescriptor();
    server_ = FileDescriptor();
  }

  static bool Pass(const FileDescriptor& from, const FileDescriptor& to) {
    std::array<char, 65536> bytes;
    const ssize_t count = read(from.get(), bytes.data(), bytes.size());
    for (ssize_t sent = 0; sent < count;) {
      const ssize_t more = send(to.get(), bytes.data() + sent, count - sent, MSG_NOSIGNAL);
      if (more <= 0) return false;
      sent += more;
    }
    return count > 0;
  }

  const std::string path_;
  FileDescriptor listener_;
  FileDescriptor server_;
  FileDescriptor client_;
  std::atomic<bool> is_stopped_ = false;
  std::thread thread_;
};

double PinnedBytes(const InProcessDaemon& daemon, const std::string& tenant) {
  return MetricValue(daemon.daemon(), "opserve_tenant_memory_bytes",
                     {{"tenant", tenant}, {"kind", "pinned"}});
}

double Stalls(const InProcessDaemon& daemon, const std::string& kind) {
  return MetricValue(daemon.daemon(), "opserve_write_stalls_total", {{"kind", kind}});
}

// Until the stream ends, if it does.
void SendRequests(TestStream* stream, uint64_t count) {
  for (uint64_t id = 1; id <= count; ++id) {
    if (!stream->Send(OnesStreamRequest(id, kElements))) return;
  }
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

  while (Stalls(daemon, "call") == 0) {
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10)) << "others are served";
  }
  while (PinnedBytes(daemon, "default") != 0 || daemon.HeldByRequests() != 0) {
  }
  while (stream.Receive().outcome_case() != v1::ExecuteStreamResponse::OUTCOME_NOT_SET) {
  }
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Stalls(daemon, "connection"), 0) << "the connection itself was read";
}

TEST(SlowReadersTest, AConnectionThatIsNotReadIsEnded) {
  const Config config = WithShortPatience();
  InProcessDaemon daemon(config);
  StoppingProxy proxy(config.listen[0]);
  const auto client = *Client::Connect(proxy.target(), {.retry = {.max_attempts = 1}});
  ASSERT_TRUE(IsAllOnes(client->Execute(OnesRequest(10)), 10));
  proxy.Stop();
  std::vector<std::future<absl::StatusOr<Response>>> answers;
  for (int i = 0; i < 12; ++i) answers.push_back(client->ExecuteAsync(OnesRequest(kElements)));

  while (Stalls(daemon, "connection") == 0) {
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10)) << "others are served";
  }
  for (auto& answer : answers) EXPECT_FALSE(answer.get().ok());
  while (PinnedBytes(daemon, "default") != 0 || daemon.HeldByRequests() != 0) {
  }
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
  while (PinnedBytes(daemon, "slow") < 4 * kMiB) {
  }

  const auto other =
      *Client::Connect(daemon.target(), {.token = "b", .retry = {.max_attempts = 1}});
  for (int i = 0; i < 20; ++i) {
    const auto response = other->Execute(OnesRequest(kElements));
    EXPECT_TRUE(IsAllOnes(response, kElements)) << response.status();
  }
  EXPECT_LE(PinnedBytes(daemon, "slow"), 4 * kMiB);

  // What had no room has waited, and nothing is lost.
  for (uint64_t i = 0; i < kRequests; ++i) EXPECT_TRUE(IsAllOnes(slow.Receive(), kElements)) << i;
  EXPECT_TRUE(slow.Finish().ok());
  sender.join();
  while (PinnedBytes(daemon, "slow") != 0 || PinnedBytes(daemon, "b") != 0) {
  }
  EXPECT_EQ(MetricValue(daemon.daemon(), "opserve_tenant_memory_bytes",
                        {{"tenant", "slow"}, {"kind", "hbm"}}),
            0);
}

TEST_F(PinnedZoneTest, ResultsThatCanNeverFitAreRefusedForGood) {
  InProcessDaemon daemon(TwoTenants());
  const absl::Status refused = daemon.client().Execute(OnesRequest(kElements * 4 + 1)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(ErrorDetailOf(refused)->reason(), "tenant_memory");
  EXPECT_EQ(ErrorDetailOf(refused)->retry_pushback_ms(), -1);
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(kElements * 4)), kElements * 4));
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
