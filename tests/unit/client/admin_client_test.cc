#include "client/cpp/admin_client.h"

#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

TEST(AdminClientTest, EachCallAsksAndAnswers) {
  const TestServer server;
  const auto admin = *AdminClient::Connect(server.admin_target());

  EXPECT_EQ(*admin->DrainDevice(0), 3u);
  EXPECT_EQ(admin->ResumeDevice(0), absl::OkStatus());
  EXPECT_EQ(*admin->TrimPool(0), 4096u);
  const auto snapshot = admin->GetPoolSnapshot(0);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(snapshot->regions(0).blocks_size(), 3);
  EXPECT_TRUE(admin->IsConnected());
}

TEST(AdminClientTest, TheDaemonsErrorsAreGiven) {
  const TestServer server;
  const auto admin = *AdminClient::Connect(server.admin_target());

  EXPECT_EQ(admin->DrainDevice(7).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(admin->ResumeDevice(7).message(), "no device 7");
  EXPECT_EQ(admin->TrimPool(7).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(admin->GetPoolSnapshot(7).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(admin->DrainDevice(1).status().code(), absl::StatusCode::kDeadlineExceeded);
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
