// What a daemon that ends says of the tensors that it deposits: the progress in its status while
// the receiver takes its time, and in the end, by name, those that are lost.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "opserve/v1/peer_service.grpc.pb.h"
#include "server/native/tensor_service.h"
#include "server/observability/log.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/owned_tensors.h"
#include "tests/integration/two_tenants.h"
#include "tests/unit/client/command_line_fixture.h"
#include "tests/unit/client/test_server.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A receiver that takes the first batch and then reads no more until it is told to.
class HesitantReceiver final : public v1::PeerService::Service {
 public:
  HesitantReceiver() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~HesitantReceiver() override {
    GoOn();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  std::string address() const { return "unix:" + directory_.File("receiver"); }
  // Once it reads no more.
  void AwaitPause() {
    EXPECT_TRUE(Await([this] { return pauses_.HasBeenNotified(); }));
  }
  void GoOn() {
    if (!goes_on_.HasBeenNotified()) goes_on_.Notify();
  }

  grpc::Status Deposit(
      grpc::ServerContext* /*context*/,
      grpc::ServerReaderWriter<v1::DepositResponse, v1::DepositRequest>* stream) override {
    uint64_t left = 0;  // bytes of the batch
    v1::DepositRequest request;
    while (stream->Read(&request)) {
      v1::DepositResponse response;
      switch (request.step_case()) {
        case v1::DepositRequest::kHello:
          response.mutable_welcome()->set_chunk_bytes(1 << 20);
          break;
        case v1::DepositRequest::kOffer:
          for (const v1::DepositedTensor& tensor : request.offer().tensors()) {
            left += static_cast<uint64_t>(tensor.shape(0)) * sizeof(float);
            response.mutable_verdict()->add_tensors()->set_answer(
                v1::TensorVerdict::ANSWER_ACCEPTED);
          }
          break;
        case v1::DepositRequest::kChunk:
          left -= request.data().size();
          if (left > 0) continue;
          response.mutable_sealed();
          break;
        default:
          response.mutable_committed();
          stream->Write(response);
          if (!pauses_.HasBeenNotified()) pauses_.Notify();
          goes_on_.WaitForNotification();
          continue;
      }
      stream->Write(response);
    }
    return grpc::Status::OK;
  }

 private:
  const TemporaryDirectory directory_;
  absl::Notification pauses_;
  absl::Notification goes_on_;
  std::unique_ptr<grpc::Server> server_;
};

// The lines that the daemon's log gets meanwhile, instead of on standard error.
class CapturedLog {
 public:
  CapturedLog() : standard_error_(dup(STDERR_FILENO)), level_(LogLevel()) {
    FlushLog();
    const int file = open(path().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
    EXPECT_TRUE(SetLogLevel("info").ok());
  }
  ~CapturedLog() {
    FlushLog();
    EXPECT_TRUE(SetLogLevel(level_).ok());
    dup2(standard_error_, STDERR_FILENO);
    close(standard_error_);
  }

  // Those of one event.
  std::vector<nlohmann::json> Lines(const std::string& event) const {
    FlushLog();
    std::vector<nlohmann::json> lines;
    std::ifstream file(path());
    for (std::string text; std::getline(file, text);) {
      nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (line.is_object() && line.value("event", "") == event) lines.push_back(std::move(line));
    }
    return lines;
  }

 private:
  std::string path() const { return directory_.File("log"); }

  const TemporaryDirectory directory_;
  const int standard_error_;
  const std::string level_;
};

// As logs and lists of tensors have it.
std::string NameOf(const Owned& owned) {
  return absl::BytesToHexString(absl::string_view(owned.handle).substr(0, kShownHandleBytes));
}

class DepositProgressTest : public ::testing::Test {
 protected:
  static Config TwoTenantsConfig() {
    Config config = InProcessDaemon::DefaultConfig();
    AddTwoTenants(&config);
    return config;
  }
  Config SenderConfig(absl::Duration grace) const {
    Config config = TwoTenantsConfig();
    config.drain_timeout = grace;
    config.deposit = DepositConfig{.address = receiver_.address(),
                                   .ca = "",
                                   .certificate = "",
                                   .key = "",
                                   .server_name = "",
                                   .client_address = receiver_.address()};
    return config;
  }
  // On one line.
  static std::string StatusText(const InProcessDaemon& daemon) {
    const cli::Output output = cli::RunProgram({"status", "--target=" + daemon.target()});
    EXPECT_EQ(output.exit_code, cli::ExitCode::kOk) << output.err;
    return absl::StrReplaceAll(output.out, {{"\n", " "}});
  }
  static double Sent(const InProcessDaemon& daemon, const char* result) {
    return MetricValue(daemon.daemon(), "opserve_deposits_total",
                       {{"direction", "out"}, {"result", result}});
  }

  HesitantReceiver receiver_;
};

TEST_F(DepositProgressTest, TheStatusShowsItWhileTheReceiverTakesItsTime) {
  InProcessDaemon sender(SenderConfig(absl::Minutes(2)));
  const std::vector<Owned> tensors = UploadSome(sender.target(), /*has_large=*/false);
  std::thread drain([&] { EXPECT_EQ(sender.daemon().Drain(), 0); });
  receiver_.AwaitPause();

  // The batch of one tenant has gone.
  EXPECT_TRUE(
      Await([&] { return sender.client().GetServerStatus()->deposit().moved_tensors() == 3; }));
  const v1::DepositStatus deposit = sender.client().GetServerStatus()->deposit();
  EXPECT_EQ(deposit.address(), receiver_.address());
  EXPECT_TRUE(deposit.connected());
  EXPECT_EQ(deposit.moved_bytes(), 4400u);
  EXPECT_EQ(deposit.left_tensors(), 3u);
  EXPECT_EQ(deposit.left_bytes(), 4400u);
  EXPECT_EQ(deposit.lost_tensors(), 0u);
  EXPECT_THAT(StatusText(sender), HasSubstr("resident tensors go to " + receiver_.address() +
                                            ": 3 tensors of 4.297 KiB moved, 3 of 4.297 KiB left"));

  receiver_.GoOn();
  drain.join();

  EXPECT_EQ(sender.client().GetServerStatus()->deposit().moved_tensors(), tensors.size());
  EXPECT_EQ(sender.client().GetServerStatus()->deposit().left_tensors(), 0u);
}

TEST_F(DepositProgressTest, TensorsThatDoNotFitInTheGracePeriodAreLostByName) {
  const CapturedLog log;
  InProcessDaemon other(TwoTenantsConfig());
  InProcessDaemon sender(SenderConfig(absl::Seconds(3)));
  const std::vector<Owned> tensors = UploadSome(sender.target(), /*has_large=*/false);

  sender.daemon().Drain();

  // Those of the tenant that used its tensors last have gone first.
  EXPECT_EQ(Sent(sender, "moved"), 3);
  EXPECT_EQ(Sent(sender, "lost"), 3);
  const std::vector<nlohmann::json> lines = log.Lines("tensors_lost");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["level"], "error");
  EXPECT_EQ(lines[0]["tenant"], "a");
  EXPECT_EQ(lines[0]["result"], "lost");
  EXPECT_NE(lines[0]["why"], "");
  EXPECT_THAT(lines[0]["tensors"].get<std::vector<std::string>>(),
              UnorderedElementsAre(NameOf(tensors[0]), NameOf(tensors[1]), NameOf(tensors[2])));
  const std::vector<nlohmann::json> ends = log.Lines("tensors_deposited");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0]["tensors"], 3);
  EXPECT_EQ(ends[0]["lost"], 3);
  EXPECT_EQ(sender.client().GetServerStatus()->deposit().lost_tensors(), 3u);
  EXPECT_THAT(StatusText(sender), HasSubstr("3 lost"));
  // The next use, at whatever daemon the client finds.
  for (const Owned& owned : tensors) {
    const absl::Status status = FindAt(other.target(), owned);
    EXPECT_EQ(ReasonOf(status), "tensor_lost") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("lost when its daemon ended"));
  }
}

}  // namespace
}  // namespace opserve::server
