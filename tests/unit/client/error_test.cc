#include "client/cpp/error.h"

#include <optional>
#include <string>

#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

class ErrorTest : public testing::Test {
 protected:
  ErrorTest() : client_(*Client::Connect(server_.target(), {.retry = {.max_attempts = 1}})) {}

  // The status of a call that the daemon refuses with these details and this pushback trailer.
  absl::Status Refused(const std::string& details, const std::string& pushback = "") {
    server_.set_execute([=](grpc::ServerContext* context, const auto&, auto*) {
      if (!pushback.empty()) context->AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full", details);
    });
    return client_->Execute({.operator_name = "Scale"}).status();
  }

  static std::string Details(const v1::ErrorDetail& detail) {
    v1::StatusDetails details;
    details.set_code(8);
    details.add_details()->PackFrom(detail);
    return details.SerializeAsString();
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ErrorTest, CodeMessageAndDetailArrive) {
  v1::ErrorDetail detail;
  detail.set_reason("queue_full");
  detail.set_operator_("Scale");
  detail.set_aclnn_status(161002);

  const absl::Status status = Refused(Details(detail));

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the queue is full");
  const auto read = ErrorDetailOf(status);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->SerializeAsString(), detail.SerializeAsString());
  EXPECT_EQ(RetryPushbackOf(status), std::nullopt);
}

TEST_F(ErrorTest, DetailsThatAreNoneAreIgnored) {
  v1::StatusDetails other;
  other.add_details()->PackFrom(v1::NamedValue());
  for (const std::string& details :
       {std::string(), std::string("\xff\xff"), other.SerializeAsString()}) {
    const absl::Status status = Refused(details);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ErrorDetailOf(status), std::nullopt);
  }
}

TEST_F(ErrorTest, PushbackComesFromTheTrailerElseFromTheDetail) {
  v1::ErrorDetail detail;
  detail.set_retry_pushback_ms(70);
  struct Case {
    std::string details;
    std::string trailer;
    std::optional<absl::Duration> pushback;
  };
  const Case kCases[] = {
      {"", "", std::nullopt},
      {"", "250", absl::Milliseconds(250)},
      {"", "0", absl::ZeroDuration()},
      {"", "-1", absl::InfiniteDuration()},
      {"", "soon", absl::InfiniteDuration()},
      {Details(detail), "", absl::Milliseconds(70)},
      {Details(detail), "250", absl::Milliseconds(250)},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(RetryPushbackOf(Refused(c.details, c.trailer)), c.pushback) << c.trailer;
  }
}

TEST(ErrorDetailTest, OkAndForeignStatusesHaveNone) {
  EXPECT_EQ(ErrorDetailOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ErrorDetailOf(absl::InternalError("x")), std::nullopt);
  EXPECT_EQ(RetryPushbackOf(absl::InternalError("x")), std::nullopt);
}

}  // namespace
}  // namespace opserve
