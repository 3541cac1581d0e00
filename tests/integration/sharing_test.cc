// Tenants that share a device, as they see it.

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "client/cpp/client.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/observability/tenant_slot.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

// printf %s a | sha256sum, and of b
constexpr char kUnequalTenants[] = R"(
  tenant { name: "a" weight: 1
           token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
  tenant { name: "b" weight: 3
           token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" })";

Config UnequalTenants() {
  Config config = InProcessDaemon::OneLane();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kUnequalTenants, &config.values));
  config.tenants = *TenantsFrom(config.values);
  return config;
}

// Keeps requests of `count` elements waiting until it is told to stop.
class Flood {
 public:
  Flood(const InProcessDaemon& daemon, Door door, const std::string& token, int64_t count)
      : client_(
            *Client::Connect(daemon.target(), {.token = token, .session = door == Door::kSession})),
        thread_([this, count] {
          std::deque<std::future<absl::StatusOr<Response>>> answers;
          while (!is_over_ || !answers.empty()) {
            if (!is_over_) answers.push_back(client_->ExecuteAsync(OnesRequest(count)));
            if (answers.size() < 24 && !is_over_) continue;
            wrong_ += IsAllOnes(answers.front().get(), count) ? 0 : 1;
            answers.pop_front();
          }
        }) {}

  // Ends the flood; returns how many answers were not right.
  int Stop() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
    return wrong_;
  }
  ~Flood() { Stop(); }

 private:
  const std::unique_ptr<Client> client_;
  std::atomic<bool> is_over_ = false;
  std::atomic<int> wrong_ = 0;
  std::thread thread_;
};

class SharingTest : public ::testing::TestWithParam<Door> {
 protected:
  void TearDown() override { ClearFaults(); }
  double LaneSeconds(size_t slot) const {
    return absl::ToDoubleSeconds(daemon_.daemon().scheduler().Find(0)->TenantTime(slot));
  }
  bool BothWait() const {
    static constexpr uint32_t kBoth[] = {0, 1};
    const auto states = daemon_.daemon().scheduler().Find(0)->queue().TenantStates(kBoth);
    return states[0].queued > 4 && states[1].queued > 4;
  }
  InProcessDaemon daemon_{UnequalTenants()};
};

// Executions are slow, so that the device is what limits.
TEST_P(SharingTest, LaneTimeFollowsTheWeights) {
  InjectFaults("kernel=*,slow=2000,count=all");
  Flood small(daemon_, GetParam(), "a", 100);
  Flood large(daemon_, GetParam(), "b", 10000);
  // What they get while both have requests waiting; a flood may fall behind on a busy machine.
  double a = 0;
  double b = 0;
  double last_a = 0;
  double last_b = 0;
  bool did_wait = false;
  EXPECT_TRUE(Await([&] {
    const bool do_wait = BothWait();
    const double now_a = LaneSeconds(0);
    const double now_b = LaneSeconds(1);
    if (did_wait && do_wait) {
      a += now_a - last_a;
      b += now_b - last_b;
    }
    last_a = now_a;
    last_b = now_b;
    did_wait = do_wait;
    return a + b >= 3;
  }));
  EXPECT_EQ(small.Stop(), 0);
  EXPECT_EQ(large.Stop(), 0);
  EXPECT_NEAR(b / (a + b), 0.75, 0.05);
}

TEST_P(SharingTest, AQuietTenantIsNotRefusedBesideAFlood) {
  InjectFaults("kernel=*,slow=1000,count=all");
  Flood flood(daemon_, GetParam(), "b", 1000);
  EXPECT_TRUE(Await([&] { return daemon_.daemon().scheduler().Find(0)->queued() >= 16; }));
  DoorCaller quiet(daemon_.target(), GetParam(), "a");
  for (int i = 0; i < 100; ++i) {
    const grpc::Status status = quiet.ExecuteOnes(10);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(flood.Stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Doors, SharingTest, BothDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
