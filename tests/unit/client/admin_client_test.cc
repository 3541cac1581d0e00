#include "client/cpp/admin_client.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

TEST(AdminClientTest, EachCallAsksAndAnswers) {
  const TestServer server;
  const auto admin = *AdminClient::Connect(server.admin_target());

  EXPECT_EQ(*admin->DrainDevice(0), 3u);
  EXPECT_EQ(admin->DrainDevice(0, kDefaultTimeout, AdminClient::Last::kSpare).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(admin->DrainDaemon()->deposit().moved_tensors(), 2u);
  EXPECT_EQ(admin->ResumeDevice(0), absl::OkStatus());
  EXPECT_EQ(*admin->TrimPool(0), 4096u);
  const auto snapshot = admin->GetPoolSnapshot(0);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->regions(0).blocks_size(), 3);
  EXPECT_EQ(admin->GetStatus()->version(), "1.2.3");
  EXPECT_EQ(admin->SetLogLevel("debug"), absl::OkStatus());
  EXPECT_TRUE(admin->IsConnected());
}

TEST(AdminClientTest, AWatcherSeesUntilItHasEnoughOrTheDaemonStops) {
  const TestServer server;
  const auto admin = *AdminClient::Connect(server.admin_target());
  std::vector<int64_t> times;
  size_t wanted = 2;
  const auto go_on = [&](const v1::AdminStatus& status) {
    times.push_back(status.time().seconds() - 1700000100);
    return times.size() != wanted;
  };

  EXPECT_EQ(admin->Watch(absl::Seconds(1), go_on), absl::OkStatus());
  EXPECT_EQ(times, std::vector<int64_t>({0, 1}));

  times.clear();
  wanted = 9;
  EXPECT_EQ(admin->Watch(absl::Seconds(1), go_on).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(times.size(), 3u);
}

TEST(AdminClientTest, TheDaemonsErrorsAreGiven) {
  const TestServer server;
  const auto admin = *AdminClient::Connect(server.admin_target());

  EXPECT_EQ(admin->DrainDevice(7).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(admin->ResumeDevice(7).message(), "no device 7");
  EXPECT_EQ(admin->TrimPool(7).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(admin->GetPoolSnapshot(7).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(admin->DrainDevice(1).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(admin->SetLogLevel("loud").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(admin->Reload().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(admin->Watch(absl::Seconds(7), [](const auto&) { return true; }).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(AdminClientTest, TargetsAreCheckedAndNobodyIsUnavailable) {
  const TemporaryDirectory directory;

  EXPECT_EQ(AdminClient::Connect("nowhere").status().code(), absl::StatusCode::kInvalidArgument);
  const auto admin = *AdminClient::Connect("unix:" + directory.File("nobody"));
  EXPECT_EQ(admin->TrimPool(0).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(admin->IsConnected());
}

}  // namespace
}  // namespace opserve
