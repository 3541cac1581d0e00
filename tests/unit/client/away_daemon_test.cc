// All kinds of calls reach a daemon that is away in one way, and fail with one error if it stays
// away.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::StartsWith;

Request ScaleWithin(absl::Duration timeout) {
  return {.invocations = {{.operator_name = "Scale",
                           .inputs = {{"x", Tensor::Owning<float>({1}, {1})}}}},
          .timeout = timeout};
}

struct KindOfCall {
  const char* name;
  absl::Status (*make)(Client& client, absl::Duration timeout);
};

const KindOfCall kKinds[] = {
    {"Execute",
     [](Client& client, absl::Duration timeout) {
       return client.Execute(ScaleWithin(timeout)).status();
     }},
    {"ExecuteAsync",
     [](Client& client, absl::Duration timeout) {
       return client.ExecuteAsync(ScaleWithin(timeout)).get().status();
     }},
    {"ListTensors",
     [](Client& client, absl::Duration timeout) { return client.ListTensors(timeout).status(); }},
    {"OpenStream",
     [](Client& client, absl::Duration timeout) {
       const auto stream = *client.OpenStream({.timeout = timeout});
       return stream->Execute(ScaleWithin(timeout)).get().status();
     }},
    {"Upload",
     [](Client& client, absl::Duration timeout) {
       return client.Upload(Tensor::Owning<float>({1}, {1}), {.timeout = timeout}).status();
     }},
    // The tensor is unknown to a daemon that is there.
    {"Download",
     [](Client& client, absl::Duration timeout) {
       const absl::Status status = client.Download("none", {.timeout = timeout}).status();
       return absl::IsNotFound(status) ? absl::OkStatus() : status;
     }},
};

// A socket at `path` that takes connections and never says a word.
class SilentSocket {
 public:
  explicit SilentSocket(const std::string& path) : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 64), 0);
  }
  ~SilentSocket() { close(listener_); }

 private:
  const int listener_;
};

constexpr absl::Duration kShort = absl::Milliseconds(300);
constexpr absl::Duration kLong = absl::Seconds(60);

class AwayDaemonTest : public testing::TestWithParam<KindOfCall> {
 protected:
  // A client of a daemon that is not there. `appear` runs when the client begins to wait.
  std::unique_ptr<Client> ConnectTo(const std::string& path, std::function<void()> appear) {
    ConnectOptions options;
    options.retry.waiting = [this, appear = std::move(appear)](const absl::Status&) {
      ++waits_;
      if (appear) appear();
    };
    return *Client::Connect("unix:" + path, options);
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.File("daemon");
  int waits_ = 0;
};

TEST_P(AwayDaemonTest, OneThatStaysAwayIsUnavailable) {
  const auto client = ConnectTo(path_, {});

  const absl::Status status = GetParam().make(*client, kShort);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("failed to connect to all addresses"),
                    EndsWith(" (waited for it until the deadline)")));
  EXPECT_EQ(waits_, 1);
}

TEST_P(AwayDaemonTest, OneThatNeverAnswersAConnectionIsUnavailable) {
  const SilentSocket silent(path_);
  const auto client = ConnectTo(path_, {});

  EXPECT_EQ(GetParam().make(*client, kShort),
            absl::UnavailableError("no connection was made (waited for it until the deadline)"));
}

TEST_P(AwayDaemonTest, TheCauseOfTheWaitIsToldIfItEndsWithinAnAttempt) {
  std::unique_ptr<SilentSocket> silent;
  const auto client = ConnectTo(path_, [&] { silent = std::make_unique<SilentSocket>(path_); });

  const absl::Status status = GetParam().make(*client, absl::Seconds(2));

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("failed to connect to all addresses"),
                    EndsWith(" (waited for it until the deadline)")));
}

TEST_P(AwayDaemonTest, OneThatComesBackServesTheCall) {
  const TestServer server;
  const std::string socket = server.target().substr(std::strlen("unix:"));
  const auto client = ConnectTo(path_, [&] { std::filesystem::create_symlink(socket, path_); });

  EXPECT_EQ(GetParam().make(*client, kLong), absl::OkStatus());
  EXPECT_EQ(waits_, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AwayDaemonTest, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(AwayDaemonStreamTest, AWaitEndsWithTheStream) {
  const TemporaryDirectory directory;
  absl::Notification waits;
  ConnectOptions options;
  options.retry.waiting = [&](const absl::Status&) { waits.Notify(); };
  const auto client = *Client::Connect("unix:" + directory.File("daemon"), options);
  auto stream = *client->OpenStream();
  auto answer = stream->Execute(ScaleWithin(kLong));
  waits.WaitForNotification();

  stream = nullptr;

  EXPECT_EQ(answer.get().status().code(), absl::StatusCode::kCancelled);
}

TEST(AwayDaemonStreamTest, RequestsBeforeTheConnectionAreAnswered) {
  const TestServer server;
  const TemporaryDirectory directory;
  const std::string path = directory.File("daemon");
  const std::string socket = server.target().substr(std::strlen("unix:"));
  absl::BlockingCounter waits(10);
  ConnectOptions options;
  options.retry.waiting = [&](const absl::Status&) { waits.DecrementCount(); };
  auto client = *Client::Connect("unix:" + path, options);
  const auto stream = *client->OpenStream();
  std::vector<int> ended;
  for (int i = 0; i < 10; ++i) {
    stream->Execute(ScaleWithin(kLong), [&ended, i](const absl::StatusOr<Response>& response) {
      if (response.ok()) ended.push_back(i);
    });
  }
  waits.Wait();
  client = nullptr;  // the stream outlives it

  std::filesystem::create_symlink(socket, path);

  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_THAT(ended, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

}  // namespace
}  // namespace opserve
